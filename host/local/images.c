/* SPDX-License-Identifier: Apache-2.0 */
#include "host/local/images.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host/local/share.h"
#include "host/local/vmdir.h"
#include "lib/fd.h"
#include "lib/jsn.h"
#include "lib/str.h"

#define IMAGE_JSON_MAX 65536
#define IMAGES_MAX     65536

/* --- names --- */
static bool is_name(const char *s, size_t n)
{
	static const char first[] = "abcdefghijklmnopqrstuvwxyz0123456789";

	if (n == 0 || n > IMAGE_NAME_LEN || !memchr(first, s[0], sizeof(first) - 1) ||
	    (n == 5 && !memcmp(s, "blobs", n)) || (n == 4 && !memcmp(s, "lock", n)))
		return false; /* the last two are ours in the same folder */
	for (size_t i = 1; i < n; i++)
		if (!memchr(first, s[i], sizeof(first) - 1) &&
		    (!strchr("._-", s[i]) || (s[i] == '.' && s[i - 1] == '.')))
			return false;
	return true;
}

int image_ref_parse(const char *s, struct image_ref *ret, struct err *e)
{
	size_t n = strcspn(s, ":");
	uint64_t version = 0;

	if (!is_name(s, n) || (s[n] && str_to_u64(s + n + 1, 1, UINT32_MAX, &version) < 0)) {
		(void)err_set(
			e, ERR_INVALID, 0,
			"'%.150s' is not the name of a local image: NAME or NAME:VERSION, NAME of "
			"a-z 0-9 . _ - that begins with a letter or digit",
			s);
		return -EINVAL;
	}
	memcpy(ret->name, s, n);
	ret->name[n] = '\0';
	ret->version = version;
	return 0;
}

/* --- places --- */
int images_root(char ret[LOCAL_PATH_MAX], struct err *e)
{
	char base[LOCAL_PATH_MAX];
	int r = vmdir_base(base, e);

	if (r < 0)
		return r;
	r = str_format(ret, LOCAL_PATH_MAX, "%s/images", base);
	return r < 0 ? err_set(e, ERR_INVALID, -r, "%s", base) : 0;
}

int images_blob(const char *sha256, char ret[LOCAL_PATH_MAX], struct err *e)
{
	char root[LOCAL_PATH_MAX];
	int r = images_root(root, e);

	if (r < 0)
		return r;
	r = str_format(ret, LOCAL_PATH_MAX, "%s/blobs/%s.erofs", root, sha256);
	return r < 0 ? err_set(e, ERR_INVALID, -r, "%s", root) : 0;
}

static int installed_root(char ret[LOCAL_PATH_MAX], struct err *e)
{
	char share[LOCAL_PATH_MAX];
	int r = share_dir(share, e);

	if (r < 0)
		return r;
	r = str_format(ret, LOCAL_PATH_MAX, "%s/images", share);
	return r < 0 ? err_set(e, ERR_INVALID, -r, "%s", share) : 0;
}

/* --- image.json --- */
static int copy(char *out, size_t size, const char *s)
{
	return str_format(out, size, "%s", s);
}

static bool is_sha(const char *s)
{
	return strlen(s) == IMAGE_SHA_LEN && strspn(s, "0123456789abcdef") == IMAGE_SHA_LEN;
}

static int take(const cJSON *j, struct image *i, const char **ret_rootfs, struct err *e)
{
	const char *sha = "", *created = "", *source = "";

	*ret_rootfs = "rootfs.erofs";
	if (jsn_str(j, "rootfs", ret_rootfs, e) < 0 || jsn_str(j, "sha256", &sha, e) < 0 ||
	    jsn_str(j, "created", &created, e) < 0 || jsn_str(j, "source", &source, e) < 0 ||
	    jsn_u64(j, "version", 1, UINT32_MAX, &i->version, e) < 0)
		return -EINVAL;
	if ((*sha && !is_sha(sha)) || (!*sha && !i->installed) || strchr(*ret_rootfs, '/') ||
	    (*ret_rootfs)[0] == '.')
		return err_set(e, ERR_INVALID, EINVAL, "\"sha256\" or \"rootfs\" in it");
	if (copy(i->sha256, sizeof(i->sha256), sha) < 0 ||
	    copy(i->created, sizeof(i->created), created) < 0 ||
	    copy(i->source, sizeof(i->source), source) < 0)
		return err_set(e, ERR_INVALID, EINVAL, "\"created\" or \"source\" in it");
	return 0;
}

/* The rest of I, of which name, dir and installed are there. WANT: the version it must have; 0 = any. */
static int load(struct image *i, uint64_t want, struct err *e)
{
	AUTO_BUF b;
	AUTO_JSN *j = NULL;
	char path[LOCAL_PATH_MAX];
	const char *rootfs;
	struct stat st;
	int r = str_format(path, sizeof(path), "%s/image.json", i->dir);

	buf_init(&b, IMAGE_JSON_MAX);
	if (r == 0)
		r = fd_read_file(AT_FDCWD, path, &b);
	if (r < 0)
		return err_set(e, r == -ENOENT ? ERR_NOT_FOUND : ERR_IO, -r, "%s", path);
	j = jsn_parse(b.p ? b.p : "", b.len, e);
	if (!j || take(j, i, &rootfs, e) < 0)
		return err_wrap(e, "%s", path);
	if (want && want != i->version)
		return err_set(e, ERR_INVALID, EINVAL, "%s: it is of version %llu", path,
			       (unsigned long long)i->version);
	r = i->installed ? str_format(i->rootfs, sizeof(i->rootfs), "%s/%s", i->dir, rootfs)
			 : images_blob(i->sha256, i->rootfs, e);
	if (r == 0 && (access(i->rootfs, R_OK) < 0 || stat(i->rootfs, &st) < 0))
		r = err_set(e, errno == ENOENT ? ERR_NOT_FOUND : ERR_DENIED, errno, "%s%s",
			    i->rootfs, i->installed ? " (made by `make image`)" : "");
	if (r == 0)
		i->bytes = (uint64_t)st.st_size;
	return r;
}

/* --- one image --- */
static int load_user(const char *name, uint64_t version, struct image *ret, struct err *e)
{
	char root[LOCAL_PATH_MAX];
	int r = images_root(root, e);

	*ret = (struct image){ .version = version };
	if (r == 0)
		r = copy(ret->name, sizeof(ret->name), name);
	if (r == 0)
		r = str_format(ret->dir, sizeof(ret->dir), "%s/%s/%llu", root, name,
			       (unsigned long long)version);
	return r < 0 ? r : load(ret, version, e);
}

static int load_installed(const char *name, struct image *ret, struct err *e)
{
	char root[LOCAL_PATH_MAX];
	int r = installed_root(root, e);

	*ret = (struct image){ .installed = true, .version = 1 }; /* unless it says another */
	if (r == 0)
		r = copy(ret->name, sizeof(ret->name), name);
	if (r == 0)
		r = str_format(ret->dir, sizeof(ret->dir), "%s/%s", root, name);
	return r < 0 ? r : load(ret, 0, e);
}

/* Versions of the user's NAME, the highest first; owned by the caller. */
static size_t user_versions(const char *root, const char *name, uint64_t **ret);

static uint64_t newest_user(const char *name)
{
	char root[LOCAL_PATH_MAX];
	uint64_t *all = NULL, newest = 0;

	if (images_root(root, NULL) == 0 && user_versions(root, name, &all))
		newest = all[0];
	free(all);
	return newest;
}

uint64_t images_newest(const char *name)
{
	static struct image i; /* too big for the stack */
	uint64_t newest = newest_user(name);

	if (load_installed(name, &i, NULL) == 0 && i.version > newest)
		newest = i.version;
	return newest;
}

static bool is_dir(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static int not_found(const struct image_ref *ref, struct err *e)
{
	uint64_t newest = images_newest(ref->name);

	if (!newest)
		return err_set(e, ERR_NOT_FOUND, ENOENT,
			       "there is no local image named '%s' (asb image ls)", ref->name);
	return err_set(e, ERR_NOT_FOUND, ENOENT,
		       "there is no version %llu of the local image '%s'; its newest is %llu",
		       (unsigned long long)ref->version, ref->name, (unsigned long long)newest);
}

int images_find(const struct image_ref *ref, struct image *ret, struct err *e)
{
	uint64_t version = ref->version ? ref->version : newest_user(ref->name);
	struct err why = ERR_INIT;
	int r;

	if (version) {
		r = load_user(ref->name, version, ret, &why);
		if (r < 0 && e)
			*e = why;
		if (r == 0 ||
		    is_dir(ret->dir)) /* another does not silently take the place of a damaged one */
			return r;
	}
	r = load_installed(ref->name, ret, e);
	if (!is_dir(ret->dir) || (r == 0 && ref->version && ref->version != ret->version))
		return not_found(ref, e);
	return r;
}

/* --- all of them --- */
static int by_number(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x < y) - (x > y);
}

static size_t user_versions(const char *root, const char *name, uint64_t **ret)
{
	char path[LOCAL_PATH_MAX];
	uint64_t *all = NULL;
	struct dirent *d;
	size_t n = 0;
	DIR *dir = str_format(path, sizeof(path), "%s/%s", root, name) < 0 ? NULL : opendir(path);

	*ret = NULL;
	if (!dir)
		return 0;
	while (n < IMAGES_MAX && (d = readdir(dir))) {
		uint64_t v, *more;

		if (str_to_u64(d->d_name, 1, UINT32_MAX, &v) < 0 || d->d_name[0] == '0')
			continue;
		more = realloc(all, (n + 1) * sizeof(*all));
		if (!more)
			break;
		all = more;
		all[n++] = v;
	}
	(void)closedir(dir);
	if (n)
		qsort(all, n, sizeof(*all), by_number);
	*ret = all;
	return n;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

struct names {
	char **all; /* owned, each too */
	size_t len;
};

static void names_done(struct names *n)
{
	for (size_t i = 0; i < n->len; i++)
		free(n->all[i]);
	free(n->all);
}

static int add_names(struct names *names, const char *root)
{
	DIR *dir = opendir(root);
	struct dirent *d;
	int r = 0;

	while (dir && r == 0 && (d = readdir(dir))) {
		char **all;

		if (!is_name(d->d_name, strlen(d->d_name)) || names->len >= IMAGES_MAX)
			continue;
		all = realloc(names->all, (names->len + 1) * sizeof(*all));
		if (all)
			names->all = all;
		if (all && (all[names->len] = strdup(d->d_name)))
			names->len++;
		else
			r = -ENOMEM;
	}
	if (dir)
		(void)closedir(dir);
	return r;
}

struct walk {
	int (*fn)(void *arg, const struct image *i);
	void *arg;
	struct image *one; /* owned by images_each */
};

/* One that was just read, R is what came of it. */
static int give(const struct walk *w, int r, struct err *why)
{
	w->one->broken[0] = '\0';
	if (r == -ENOENT && !is_dir(w->one->dir)) /* none, or removed while we look */
		return 0;
	if (r < 0 && str_format(w->one->broken, sizeof(w->one->broken), "%.190s", why->msg) < 0)
		w->one->broken[0] = '?';
	return w->fn(w->arg, w->one);
}

static int each_of(const struct walk *w, const char *root, const char *name)
{
	uint64_t *all;
	size_t n = user_versions(root, name, &all);
	struct err why = ERR_INIT;
	int r = 0;

	for (size_t i = 0; i < n && r == 0; i++)
		r = give(w, load_user(name, all[i], w->one, &why), &why);
	free(all);
	if (r != 0)
		return r;
	return give(w, load_installed(name, w->one, &why), &why);
}

int images_each(int (*fn)(void *arg, const struct image *i), void *arg, struct err *e)
{
	struct walk w = { .fn = fn, .arg = arg, .one = malloc(sizeof(*w.one)) };
	struct names names = { .all = NULL };
	char root[LOCAL_PATH_MAX], installed[LOCAL_PATH_MAX];
	int r = w.one ? images_root(root, e) : -ENOMEM;

	if (r == 0)
		r = add_names(&names, root);
	if (r == 0 && installed_root(installed, NULL) == 0)
		r = add_names(&names, installed);
	if (r == -ENOMEM)
		(void)err_set(e, ERR_INTERNAL, ENOMEM, "the images");
	if (names.len)
		qsort(names.all, names.len, sizeof(*names.all), by_name);
	for (size_t i = 0; i < names.len && r == 0; i++)
		if (i == 0 || strcmp(names.all[i], names.all[i - 1]) != 0)
			r = each_of(&w, root, names.all[i]);
	names_done(&names);
	free(w.one);
	return r;
}
