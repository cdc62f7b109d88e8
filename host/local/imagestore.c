/* SPDX-License-Identifier: Apache-2.0 */
#include "host/local/imagestore.h"

#include <bearssl.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "host/local/template.h"
#include "host/local/tree.h"
#include "lib/fd.h"
#include "lib/loop.h"
#include "lib/pretty.h"
#include "lib/str.h"

/*
 * Every change is one rename(2) or link(2) under the lock, so a process may be killed between any two of them: what it
 * leaves is a hidden folder that nobody holds, an empty folder of a name, or a blob with one link. None of these is in
 * anybody's way, and the next build or prune removes them.
 *
 * The lock is never held while something slow goes on, so waiting for it has a short deadline. Hashing and syncing are
 * done before.
 */

#define HALF	 ".new-"
#define GONE	 ".gone-"
#define LOCK_NS	 30000000000LL
#define STEP_NS	 20000000L
#define META_MAX 65536

/* --- places --- */
static int make_dir(const char *path, struct err *e)
{
	return mkdir(path, 0700) < 0 && errno != EEXIST ? err_set(e, ERR_IO, errno, "%s", path) : 0;
}

static int lock_file(const char *path, int64_t wait_ns, int *ret)
{
	const struct timespec step = { .tv_nsec = STEP_NS };
	const int64_t end = loop_now() + wait_ns;
	AUTO_FD fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (fd < 0)
		return -errno;
	while (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		if (errno != EINTR && (errno != EWOULDBLOCK || loop_now() >= end))
			return -errno;
		(void)nanosleep(&step, NULL);
	}
	*ret = fd_take(&fd);
	return 0;
}

/* Makes the store when it is not there, and takes its lock. */
static int take(char root[LOCAL_PATH_MAX], int *ret, struct err *e)
{
	char path[LOCAL_PATH_MAX];
	int r = images_root(root, e);

	if (r == 0)
		r = make_dir(root, e);
	if (r == 0 && (r = str_format(path, sizeof(path), "%s/blobs", root)) == 0)
		r = make_dir(path, e);
	if (r < 0)
		return r;
	r = str_format(path, sizeof(path), "%s/lock", root);
	if (r == 0)
		r = lock_file(path, LOCK_NS, ret);
	return r < 0 ? err_set(e, r == -EWOULDBLOCK ? ERR_UNAVAILABLE : ERR_IO, -r, "%s", path) : 0;
}

static int random_name(const char *root, const char *prefix, char ret[LOCAL_PATH_MAX])
{
	unsigned char raw[8];
	char hex[2 * sizeof(raw) + 1];

	if (getrandom(raw, sizeof(raw), 0) != (ssize_t)sizeof(raw))
		return -errno;
	str_hex(raw, sizeof(raw), hex);
	if (str_format(ret, LOCAL_PATH_MAX, "%s/%s%s", root, prefix, hex) == 0)
		return 0;
	ret[0] = '\0'; /* a path that was cut is another one, and this one may be removed */
	return -ENAMETOOLONG;
}

static int sync_dir(const char *path)
{
	AUTO_FD fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 || fsync(fd) < 0 ? -errno : 0;
}

/* --- what nobody needs; the caller has the lock --- */
static void drop_blob(const char *root, const char *sha)
{
	char path[LOCAL_PATH_MAX];
	struct stat st;

	if (str_format(path, sizeof(path), "%s/blobs/%s.erofs", root, sha) == 0 &&
	    lstat(path, &st) == 0 && st.st_nlink == 1)
		(void)unlink(path);
}

struct collect {
	const char *root;
	int rootfd;
	unsigned flags;
	prune_fn *fn;
	void *arg;
};

static void tell(const struct collect *c, const char *kind, const char *name, uint64_t bytes)
{
	if (c->fn)
		c->fn(c->arg, kind, name, bytes);
}

static void collect_half(const struct collect *c, const char *name)
{
	char path[LOCAL_PATH_MAX], lock[LOCAL_PATH_MAX];
	AUTO_FD fd = -1;

	if (str_format(path, sizeof(path), "%s/%s", c->root, name) < 0 ||
	    str_format(lock, sizeof(lock), "%s/lock", path) < 0)
		return;
	if (str_starts(name, HALF) && lock_file(lock, 0, &fd) == -EWOULDBLOCK)
		return; /* its builder lives */
	tell(c, "build", name, tree_own(c->rootfd, name));
	if (!(c->flags & PRUNE_DRY))
		ignore_result(tree_remove(path)); /* the next one tries again */
}

static void collect_blobs(const struct collect *c)
{
	const int fd = openat(c->rootfd, "blobs", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *d;
	struct stat st;

	while (dir && (d = readdir(dir))) {
		if (fstatat(fd, d->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode) ||
		    st.st_nlink != 1)
			continue;
		tell(c, "content", d->d_name, (uint64_t)st.st_blocks * 512);
		if (!(c->flags & PRUNE_DRY))
			(void)unlinkat(fd, d->d_name, 0);
	}
	if (dir)
		(void)closedir(dir);
}

static void collect(const struct collect *c, DIR *dir)
{
	struct dirent *d;

	while ((d = readdir(dir)))
		if (str_starts(d->d_name, HALF) || str_starts(d->d_name, GONE))
			collect_half(c, d->d_name);
		else if (d->d_name[0] != '.' && strcmp(d->d_name, "blobs") != 0 &&
			 !(c->flags & PRUNE_DRY))
			(void)unlinkat(c->rootfd, d->d_name,
				       AT_REMOVEDIR); /* a name without versions */
	collect_blobs(c);
}

static void collect_locked(const char *root, unsigned flags, prune_fn *fn, void *arg)
{
	struct collect c = { .root = root, .flags = flags, .fn = fn, .arg = arg };
	DIR *dir = opendir(root);

	if (!dir)
		return;
	c.rootfd = dirfd(dir);
	collect(&c, dir);
	(void)closedir(dir);
}

int imagestore_collect(unsigned flags, prune_fn *fn, void *arg, struct err *e)
{
	char root[LOCAL_PATH_MAX];
	AUTO_FD lock = -1;
	int r = images_root(root, e);

	if (r < 0 || access(root, F_OK) < 0)
		return r;
	r = take(root, &lock, e);
	if (r == 0)
		collect_locked(root, flags, fn, arg);
	return r;
}

/* --- a build --- */
int imagestore_begin(struct image_work *w, struct err *e)
{
	char root[LOCAL_PATH_MAX], path[LOCAL_PATH_MAX];
	AUTO_FD lock = -1;
	int r = take(root, &lock, e);

	if (r < 0)
		return r;
	collect_locked(root, 0, NULL, NULL);
	r = random_name(root, HALF, w->dir);
	if (r == 0 && mkdir(w->dir, 0700) < 0)
		r = -errno;
	if (r == 0)
		r = str_format(path, sizeof(path), "%s/lock", w->dir);
	if (r == 0)
		r = lock_file(path, 0, &w->lock);
	if (r == 0) {
		w->dirfd = open(w->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		r = w->dirfd < 0 ? -errno : 0;
	}
	return r < 0 ? err_set(e, ERR_IO, -r, "%s", w->dir) : 0;
}

/* A large one takes seconds: CANCEL (may be NULL) is looked at between pieces. */
static int hash(int fd, const volatile sig_atomic_t *cancel, char ret[IMAGE_SHA_LEN + 1])
{
	static unsigned char p[1 << 16];
	unsigned char sum[br_sha256_SIZE];
	br_sha256_context h;
	ssize_t n;

	br_sha256_init(&h);
	while ((n = read(fd, p, sizeof(p))) != 0) {
		if (cancel && *cancel)
			return -EINTR;
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		br_sha256_update(&h, p, (size_t)n);
	}
	br_sha256_out(&h, sum);
	str_hex(sum, sizeof(sum), ret);
	return 0;
}

/* Under the lock. The blob never has fewer than two links from here on. */
static int link_blob(struct image_work *w, const char *root)
{
	char path[LOCAL_PATH_MAX];
	struct stat ours, there;
	int r = str_format(path, sizeof(path), "%s/blobs/%s.erofs", root, w->sha256);

	if (r < 0 || fstatat(w->dirfd, IMAGE_ROOTFS, &ours, 0) < 0)
		return r < 0 ? r : -errno;
	if (linkat(w->dirfd, IMAGE_ROOTFS, AT_FDCWD, path, 0) == 0)
		return 0;
	if (errno != EEXIST)
		return -errno;
	if (stat(path, &there) < 0 || there.st_size != ours.st_size)
		return -EIO; /* damaged; whoever uses it must not get another one unasked */
	if (linkat(AT_FDCWD, path, w->dirfd, IMAGE_ROOTFS ".old", 0) < 0 ||
	    renameat(w->dirfd, IMAGE_ROOTFS ".old", w->dirfd, IMAGE_ROOTFS) < 0)
		return -errno;
	return 0;
}

int imagestore_add(struct image_work *w, const volatile sig_atomic_t *cancel, struct err *e)
{
	char root[LOCAL_PATH_MAX], blobs[LOCAL_PATH_MAX];
	AUTO_FD lock = -1;
	AUTO_FD fd = openat(w->dirfd, IMAGE_ROOTFS, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	int r = fd < 0 ? -errno : 0;

	if (r == 0)
		r = hash(fd, cancel, w->sha256);
	if (r == 0 && fsync(fd) < 0)
		r = -errno;
	if (r < 0) {
		w->sha256[0] = '\0';
		return err_set(e, ERR_IO, -r, "the root file system");
	}
	r = take(root, &lock, e);
	if (r < 0)
		return r;
	r = link_blob(w, root);
	if (r == 0)
		r = str_format(blobs, sizeof(blobs), "%s/blobs", root);
	if (r == 0)
		r = sync_dir(blobs);
	return r < 0 ? err_set(e, ERR_IO, -r, "%s/blobs/%s.erofs", root, w->sha256) : 0;
}

uint64_t imagestore_same(const struct image_work *w, const char *name)
{
	struct image *i = malloc(sizeof(*i));
	struct image_ref ref = { .version = 0 };
	uint64_t version = 0;

	if (i && str_format(ref.name, sizeof(ref.name), "%s", name) == 0 &&
	    images_find(&ref, i, NULL) == 0 && !i->installed && strcmp(i->sha256, w->sha256) == 0)
		version = i->version;
	free(i);
	return version;
}

static int write_meta(const struct image_work *w, const char *name, uint64_t version,
		      const cJSON *meta)
{
	AUTO_JSN *j = cJSON_Duplicate(meta, true);
	AUTO_BUF b;
	char path[LOCAL_PATH_MAX], when[32];
	time_t now = time(NULL);
	struct tm tm;
	int r = str_format(path, sizeof(path), "%s/image.json", w->dir);

	buf_init(&b, META_MAX);
	if (!gmtime_r(&now, &tm) || !strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%SZ", &tm))
		when[0] = '\0';
	if (!j || !jsn_add_str(j, "name", name) || !jsn_add_u64(j, "version", version) ||
	    !jsn_add_str(j, "arch", "x86_64") || !jsn_add_str(j, "rootfs", IMAGE_ROOTFS) ||
	    !jsn_add_str(j, "sha256", w->sha256) || !jsn_add_str(j, "created", when))
		return -ENOMEM;
	if (r == 0)
		r = pretty_json(j, &b);
	return r < 0 ? r : fd_replace_file(path, b.p, b.len, 0600);
}

static int place(struct image_work *w, const char *root, const char *name, uint64_t version)
{
	char parent[LOCAL_PATH_MAX], path[LOCAL_PATH_MAX];
	int r = str_format(parent, sizeof(parent), "%s/%s", root, name);

	if (r == 0)
		r = str_format(path, sizeof(path), "%s/%llu", parent, (unsigned long long)version);
	if (r < 0)
		return r;
	if (mkdir(parent, 0700) < 0 && errno != EEXIST)
		return -errno;
	if (unlinkat(w->dirfd, "lock", 0) < 0 || fsync(w->dirfd) < 0)
		return -errno;
	if (rename(w->dir, path) < 0) {
		r = -errno;
		(void)rmdir(parent); /* only when it is empty */
		return r;
	}
	ignore_result(sync_dir(parent)); /* it is there; a power cut may take it back as a whole */
	ignore_result(sync_dir(root));
	return 0;
}

static void over(struct image_work *w)
{
	fd_close(&w->dirfd);
	fd_close(&w->lock);
	w->dir[0] = '\0';
}

int imagestore_commit(struct image_work *w, const char *name, const cJSON *meta,
		      uint64_t *ret_version, bool *ret_unchanged, struct err *e)
{
	char root[LOCAL_PATH_MAX];
	AUTO_FD lock = -1;
	uint64_t version;
	int r = take(root, &lock, e);

	if (r < 0)
		return r;
	version = imagestore_same(w, name);
	*ret_unchanged = version != 0;
	if (!version) {
		version = images_newest(name) + 1;
		r = write_meta(w, name, version, meta);
		if (r == 0)
			r = place(w, root, name, version);
		if (r < 0)
			return err_set(e, ERR_IO, -r, "cannot give the image its name");
		over(w);
	}
	*ret_version = version;
	fd_close(&lock);
	imagestore_abort(w); /* of one that is not needed */
	return 0;
}

static int is_of(void *arg, const struct template_info *t)
{
	if (strcmp(t->rootfs, arg) == 0)
		template_discard(t->key);
	return 0;
}

/* The templates of a content that is gone. */
static void drop_templates(const char *sha)
{
	char path[LOCAL_PATH_MAX];

	if (images_blob(sha, path, NULL) == 0 && access(path, F_OK) < 0)
		ignore_result(template_each(is_of, path)); /* FN stops never */
}

void imagestore_abort(struct image_work *w)
{
	char root[LOCAL_PATH_MAX];
	AUTO_FD lock = -1;

	if (!w->dir[0])
		return;
	ignore_result(tree_remove(w->dir)); /* else the next build or prune does */
	if (w->sha256[0] && take(root, &lock, NULL) == 0) {
		drop_blob(root, w->sha256);
		drop_templates(w->sha256);
	}
	over(w);
}

int imagestore_remove(const struct image *i, struct err *e)
{
	char root[LOCAL_PATH_MAX], away[LOCAL_PATH_MAX], parent[LOCAL_PATH_MAX];
	AUTO_FD lock = -1;
	int r = take(root, &lock, e);

	if (r < 0)
		return r;
	r = random_name(root, GONE, away);
	if (r == 0)
		r = str_format(parent, sizeof(parent), "%s/%s", root, i->name);
	if (r == 0 && rename(i->dir, away) < 0 && errno != ENOENT)
		r = -errno;
	if (r < 0)
		return err_set(e, ERR_IO, -r, "cannot remove %s", i->dir);
	ignore_result(sync_dir(parent));
	(void)rmdir(parent); /* only when it was the last version */
	r = tree_remove(away);
	if (i->sha256[0]) {
		drop_blob(root, i->sha256);
		drop_templates(i->sha256);
	}
	return r < 0 ? err_set(e, ERR_IO, -r,
			       "cannot remove all of %s:%llu (asb prune tries again)", i->name,
			       (unsigned long long)i->version)
		     : 0;
}
