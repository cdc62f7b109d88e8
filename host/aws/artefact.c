/* SPDX-License-Identifier: Apache-2.0 */
#include "host/aws/artefact.h"

#include <archive.h>
#include <archive_entry.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/fd.h"
#include "lib/str.h"

#define PATH_CAP     1024
#define IGNORE_MAX   (64U << 10)
#define PATTERNS_MAX 512
#define FIXED_TIME   1767225600 /* 2026-01-01 */
#define HASH_SHOWN   16		/* digits of it in a key */

struct zipping {
	struct archive *a;
	struct buf *out;
	struct buf *names; /* NULL = not wanted */
	struct buf ignore; /* the text of .dockerignore, cut into lines */
	const char *patterns[PATTERNS_MAX];
	size_t patterns_len, files;
	int root;			     /* borrowed */
	const volatile sig_atomic_t *cancel; /* NULL = never */
	struct err *e;
};

/* --- what is left out --- */

static int read_patterns(struct zipping *z, int dir)
{
	char *save = NULL;
	int r = fd_read_file(dir, ".dockerignore", &z->ignore);

	if (r == -ENOENT)
		return 0;
	if (r == -ENOSPC)
		return err_set(z->e, ERR_TOO_BIG, 0, ".dockerignore has over %u bytes", IGNORE_MAX);
	if (r < 0)
		return err_set(z->e, ERR_IO, -r, "cannot read .dockerignore");
	for (char *l = z->ignore.len ? strtok_r(z->ignore.p, "\r\n", &save) : NULL; l;
	     l = strtok_r(NULL, "\r\n", &save)) {
		size_t n = strlen(l);

		while (n && (l[n - 1] == ' ' || l[n - 1] == '/'))
			l[--n] = '\0';
		if (!n || *l == '#')
			continue;
		if (z->patterns_len == PATTERNS_MAX)
			return err_set(z->e, ERR_TOO_BIG, 0, ".dockerignore has over %d patterns",
				       PATTERNS_MAX);
		z->patterns[z->patterns_len++] = l;
	}
	return 0;
}

static bool matches(const char *pattern, const char *path)
{
	const char *base = strrchr(path, '/');

	while (*pattern == '/' || str_starts(pattern, "./"))
		pattern += *pattern == '/' ? 1 : 2;
	if (str_starts(pattern, "**/") &&
	    fnmatch(pattern + 3, base ? base + 1 : path, FNM_PATHNAME) == 0)
		return true;
	return fnmatch(pattern, path, FNM_PATHNAME) == 0;
}

/* The last pattern that matches decides, as with docker. */
static bool left_out(const struct zipping *z, const char *path, const char *name)
{
	bool out;

	if (strcmp(path, "Dockerfile") == 0)
		return false;
	out = strcmp(name, ".git") == 0 || strcmp(name, ".env") == 0 || str_starts(name, ".env.");

	for (size_t i = 0; i < z->patterns_len; i++) {
		const char *p = z->patterns[i];

		if (matches(*p == '!' ? p + 1 : p, path))
			out = *p != '!';
	}
	return out;
}

/* --- writing --- */

static la_ssize_t on_bytes(struct archive *a, void *arg, const void *p, size_t n)
{
	struct zipping *z = arg;

	if (buf_add(z->out, p, n) == 0)
		return (la_ssize_t)n;
	archive_set_error(a, EFBIG, "it is larger than %u MiB", ARTEFACT_MAX >> 20);
	return -1;
}

static int archive_failed(const struct zipping *z, const char *path)
{
	const char *why = archive_error_string(z->a);

	return err_set(z->e, ERR_TOO_BIG, 0, "packing %.200s: %s", path, why ? why : "failed");
}

static int cancelled(const struct zipping *z, const char *path)
{
	return z->cancel && *z->cancel ? err_set(z->e, ERR_UNAVAILABLE, EINTR, "packing %s", path)
				       : 0;
}

static int copy_bytes(struct zipping *z, int fd, const char *path, int64_t left)
{
	static char block[1 << 16];

	while (left > 0) {
		int r = cancelled(z, path);
		ssize_t n = r < 0 ? 0 : read(fd, block, sizeof(block));

		if (r < 0)
			return r;
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_set(z->e, ERR_IO, errno, "cannot read %s", path);
		if (n == 0 || n > left)
			return err_set(z->e, ERR_CONFLICT, 0, "%s changes while it is read", path);
		if (archive_write_data(z->a, block, (size_t)n) != n)
			return archive_failed(z, path);
		left -= n;
	}
	return 0;
}

static int add_file(struct zipping *z, int fd, const char *path, const struct stat *st)
{
	struct archive_entry *entry = archive_entry_new();
	int r = 0;

	if (!entry)
		return err_set(z->e, ERR_INTERNAL, ENOMEM, "packing %s", path);
	archive_entry_set_pathname(entry, path);
	archive_entry_set_filetype(entry, AE_IFREG);
	archive_entry_set_perm(entry, st->st_mode & 0100 ? 0755 : 0644);
	archive_entry_set_size(entry, st->st_size);
	archive_entry_set_mtime(entry, FIXED_TIME, 0);
	if (++z->files > ARTEFACT_FILES_MAX)
		r = err_set(z->e, ERR_TOO_BIG, 0, "the guest folder has over %d files",
			    ARTEFACT_FILES_MAX);
	else if (archive_write_header(z->a, entry) != ARCHIVE_OK)
		r = archive_failed(z, path);
	archive_entry_free(entry);
	if (r == 0 && z->names && buf_add(z->names, path, strlen(path) + 1) < 0)
		r = err_set(z->e, ERR_TOO_BIG, 0, "the guest folder's paths are too long");
	return r < 0 ? r : copy_bytes(z, fd, path, st->st_size);
}

static int add_folder(struct zipping *z, int dir, const char *path, unsigned depth);

/* A folder that somebody else wrote must not take files of this machine along. openat2(2) */
static int open_link(int root, const char *path)
{
	struct open_how how = { .flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY,
				.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS };

	return (int)syscall(SYS_openat2, root, path, &how, sizeof(how));
}

/* WHY: the errno of a file that could not be opened. */
static int not_opened(const struct zipping *z, const char *path, bool is_link, int why)
{
	static const char instead[] =
		"put the file itself there, or name the link in .dockerignore";

	if (why == EXDEV)
		return err_set(z->e, ERR_INVALID, 0,
			       "%s is a symbolic link out of the folder, or an absolute one: %s",
			       path, instead);
	if (is_link && (why == ENOSYS || why == EPERM)) /* before Linux 5.6, or a seccomp filter */
		return err_set(z->e, ERR_UNSUPPORTED, 0,
			       "%s is a symbolic link, and this system has no openat2 to follow it "
			       "safely: %s",
			       path, instead);
	return err_set(z->e, ERR_IO, why, "cannot read %s", path);
}

static int add_one(struct zipping *z, int dir, const char *name, const char *path, unsigned depth)
{
	AUTO_FD fd = -1;
	struct stat st, link;

	if (fstatat(dir, name, &link, AT_SYMLINK_NOFOLLOW) < 0 || fstatat(dir, name, &st, 0) < 0)
		return err_set(z->e, ERR_IO, errno, "cannot read %s", path);
	if (S_ISDIR(st.st_mode) && S_ISLNK(link.st_mode))
		return 0;
	if (!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode))
		return err_set(z->e, ERR_INVALID, 0, "%s is neither a file nor a folder", path);
	fd = S_ISLNK(link.st_mode)
		     ? open_link(z->root, path)
		     : openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	if (fd < 0 || fstat(fd, &st) < 0)
		return not_opened(z, path, S_ISLNK(link.st_mode), errno);
	if (S_ISDIR(st.st_mode))
		return add_folder(z, fd, path, depth + 1);
	return add_file(z, fd, path, &st);
}

/* By bytes, whatever the locale. */
static int by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static int no_dots(const struct dirent *d)
{
	return strcmp(d->d_name, ".") != 0 && strcmp(d->d_name, "..") != 0;
}

static int add_folder(struct zipping *z, int dir, const char *path, unsigned depth)
{
	struct dirent **list = NULL;
	char proc[48], sub[PATH_CAP];
	int n, r = 0;

	if (depth > ARTEFACT_DEPTH_MAX)
		return err_set(z->e, ERR_TOO_BIG, 0, "%s is nested too deeply", path);
	ignore_result(str_format(proc, sizeof(proc), "/proc/self/fd/%d", dir)); /* fits */
	n = scandir(proc, &list, no_dots, by_name);
	if (n < 0)
		return err_set(z->e, ERR_IO, errno, "cannot read the guest folder's %s", path);
	for (int i = 0; i < n; i++) {
		const char *name = list[i]->d_name;

		if (r == 0 &&
		    str_format(sub, sizeof(sub), "%s%s%s", path, *path ? "/" : "", name) < 0)
			r = err_set(z->e, ERR_TOO_BIG, 0, "%s: the path is too long", path);
		if (r == 0)
			r = cancelled(z, sub);
		if (r == 0 && !left_out(z, sub, name))
			r = add_one(z, dir, name, sub, depth);
		free(list[i]);
	}
	free(list);
	return r;
}

bool artefact_has(const struct buf *names, const char *path)
{
	size_t n = strlen(path);

	for (const char *s = names->p; s && s < names->p + names->len; s += strlen(s) + 1)
		if (strncmp(s, path, n) == 0 && (s[n] == '\0' || s[n] == '/'))
			return true;
	return false;
}

int artefact_key(const char *image, const char *sha, char ret[static ARTEFACT_KEY_MAX])
{
	return str_format(ret, ARTEFACT_KEY_MAX, ARTEFACT_PREFIX "%s-%.*s.zip", image, HASH_SHOWN,
			  sha);
}

bool artefact_is_key(const char *image, const char *key)
{
	size_t n = strlen(image);

	if (!str_starts(key, ARTEFACT_PREFIX))
		return false;
	key += strlen(ARTEFACT_PREFIX);
	return strncmp(key, image, n) == 0 && key[n] == '-' &&
	       strspn(key + n + 1, "0123456789abcdef") == HASH_SHOWN &&
	       strcmp(key + n + 1 + HASH_SHOWN, ".zip") == 0;
}

int artefact_zip(const char *dir, const volatile sig_atomic_t *cancel, struct buf *ret,
		 struct buf *names, struct err *e)
{
	struct zipping z = {
		.out = ret, .names = names, .cancel = cancel, .e = e, .a = archive_write_new()
	};
	AUTO_FD fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int r = 0;

	buf_init(ret, ARTEFACT_MAX);
	buf_init(&z.ignore, IGNORE_MAX);
	if (fd < 0)
		r = err_set(e, ERR_IO, errno, "cannot read %s", dir);
	else if (!z.a || archive_write_set_format_zip(z.a) != ARCHIVE_OK ||
		 archive_write_open(z.a, &z, NULL, on_bytes, NULL) != ARCHIVE_OK)
		r = err_set(e, ERR_INTERNAL, ENOMEM, "packing %s", dir);
	z.root = fd;
	if (r == 0)
		r = read_patterns(&z, fd);
	if (r == 0)
		r = add_folder(&z, fd, "", 0);
	if (r == 0 && archive_write_close(z.a) != ARCHIVE_OK)
		r = archive_failed(&z, dir);
	if (z.a)
		ignore_result(archive_write_free(z.a));
	buf_done(&z.ignore);
	return r;
}
