/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fsop.h"
#include "fsop_new.h"
#include "lib/fd.h"
#include "lib/jsn.h"
#include "worker.h"

/*
 * POST /v1/fs/copy, in the worker. A link is copied as a link, on both sides: one that is put where a file or a
 * directory of the source or of the copy was does not lead us elsewhere. Each file appears when it is complete
 * (fsop_new.h). Mode and times are kept, owners if we may. Holes stay holes. What is neither file, directory nor link
 * is refused.
 *
 * A directory that is there is merged into, with "overwrite"; a file or a link in the way is replaced.
 */

#define STEP (8UL << 20) /* bytes between two signs of life */

struct copy {
	struct buf path; /* of the source; stays where an error was */
	const char *why; /* what an errno does not say, or NULL */
	const char *as;	 /* the last component of the copy */
	bool recursive, overwrite;
	uint64_t count, bytes;
	char buf[16 << 10];
};

/* --- content --- */
/* Up to N bytes at AT by way of our memory; how many, 0 at the end. */
static ssize_t copy_read(struct copy *c, int from, int to, off_t at, size_t n)
{
	ssize_t k;
	int r;

	do
		k = pread(from, c->buf, n < sizeof(c->buf) ? n : sizeof(c->buf), at);
	while (k < 0 && errno == EINTR);
	if (k < 0)
		return -errno;
	r = fd_pwrite_all(to, c->buf, (size_t)k, at);
	return r < 0 ? r : k;
}

/* The bytes from AT to END, or to the end of the file. */
static int copy_piece(struct copy *c, int from, int to, off_t at, off_t end, bool *in_kernel)
{
	while (at < end) {
		size_t n = end - at < (off_t)STEP ? (size_t)(end - at) : STEP;
		off_t in = at, out = at;
		ssize_t k = *in_kernel ? copy_file_range(from, &in, to, &out, n, 0) : 0;

		/* 0 too: files of /proc, see copy_file_range(2). A true end is found by reading. */
		if (k < 0 && (errno == ENOSPC || errno == EDQUOT || errno == EIO || errno == EFBIG))
			return -errno;
		if (k <= 0) {
			*in_kernel = k == 0 && *in_kernel;
			k = copy_read(c, from, to, at, n);
		}
		if (k <= 0)
			return (int)k;
		at += k;
		c->bytes += (uint64_t)k;
		work_alive();
	}
	return 0;
}

/* SIZE bytes, holes left out. What is in the file behind them (/proc, or a file that grows) only when SIZE is 0. */
static int copy_content(struct copy *c, int from, int to, off_t size)
{
	bool in_kernel = true;
	int r = 0;

	if (size == 0)
		return copy_piece(c, from, to, 0, INT64_MAX, &(bool){ false });
	for (off_t at = 0; r == 0 && at < size;) {
		off_t data = lseek(from, at, SEEK_DATA), hole;

		if (data < 0 && errno == ENXIO)
			break; /* a hole up to the end */
		if (data < 0)
			data = at;
		hole = lseek(from, data, SEEK_HOLE);
		if (hole <= data || hole > size)
			hole = size;
		r = copy_piece(c, from, to, data, hole, &in_kernel);
		at = hole;
	}
	return r == 0 && ftruncate(to, size) < 0 ? -errno : r;
}

/* --- attributes --- */
/* Owners first, they cost the set-user-ID bit; only who may gives files away. */
static int copy_attributes(int fd, const struct stat *st)
{
	const struct timespec times[] = { st->st_atim, st->st_mtim };

	if (fchown(fd, st->st_uid, st->st_gid) < 0 && errno != EPERM)
		return -errno;
	return fchmod(fd, st->st_mode & 07777) < 0 || futimens(fd, times) < 0 ? -errno : 0;
}

/* --- one of each kind --- */
static int copy_file(struct copy *c, int dir, const char *name, int to, const char *as)
{
	AUTO_FD from = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct fsop_new n = { .fd = -1 };
	struct stat st, there;
	int r;

	if (from < 0 || fstat(from, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode)) /* swapped since it was looked at */
		return -EBUSY;
	if (fstatat(to, as, &there, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(there.st_mode))
		return -EISDIR;
	r = fsop_new_open(&n, to);
	if (r == 0)
		r = copy_content(c, from, n.fd, st.st_size);
	if (r == 0)
		r = copy_attributes(n.fd, &st);
	if (r == 0)
		r = fsop_new_commit(&n, as, c->overwrite);
	fsop_new_done(&n);
	return r;
}

static int copy_link(struct copy *c, int dir, const char *name, int to, const char *as,
		     const struct stat *st)
{
	const struct timespec times[] = { st->st_atim, st->st_mtim };
	char target[FSOP_PATH_MAX + 1];
	ssize_t n = readlinkat(dir, name, target, sizeof(target) - 1);

	if (n < 0)
		return -errno;
	target[n] = '\0';
	/* not atomic, as a file is: who looks in between sees nothing there */
	if (c->overwrite && unlinkat(to, as, 0) < 0 && errno != ENOENT)
		return -errno;
	if (symlinkat(target, to, as) < 0)
		return -errno;
	if (fchownat(to, as, st->st_uid, st->st_gid, AT_SYMLINK_NOFOLLOW) < 0 && errno != EPERM)
		return -errno;
	return utimensat(to, as, times, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;
}

static int copy_one(struct copy *c, int dir, const char *name, int to, const char *as,
		    unsigned depth);

/* What is in FROM (consumed) into the directory TO. */
static int copy_children(struct copy *c, int from, int to, unsigned depth)
{
	DIR *d = fdopendir(from);
	const char *name;
	size_t old;
	int r;

	if (!d) {
		r = -errno;
		fd_close(&from);
		return r;
	}
	while ((r = fsop_next(d, &c->path, &name, &old)) > 0) {
		r = copy_one(c, dirfd(d), name, to, name, depth);
		if (r < 0)
			break;
		fsop_pop(&c->path, old);
	}
	(void)closedir(d);
	return r;
}

static int copy_dir(struct copy *c, int dir, const char *name, int to, const char *as,
		    const struct stat *st, unsigned depth)
{
	AUTO_FD from = -1, made = -1;
	int r;

	if (!c->recursive) {
		c->why = "a directory is only copied with \"recursive\"";
		return -EISDIR;
	}
	if (depth == FSOP_DEPTH_MAX) {
		c->why = "too many directories in each other";
		return -ELOOP;
	}
	from = fsop_open_dir(dir, name, false);
	if (from < 0)
		return from;
	if (mkdirat(to, as, 0700) < 0 && !(errno == EEXIST && c->overwrite))
		return -errno;
	made = fsop_open_dir(to, as, false);
	if (made < 0)
		return made == -ELOOP ? -ENOTDIR : made;
	r = copy_children(c, fd_take(&from), made, depth + 1);
	return r < 0 ? r : copy_attributes(made, st);
}

static int copy_one(struct copy *c, int dir, const char *name, int to, const char *as,
		    unsigned depth)
{
	struct stat st;
	int r;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT && depth ? 0 : -errno; /* it has just been removed */
	work_alive();
	if (S_ISREG(st.st_mode)) {
		r = copy_file(c, dir, name, to, as);
	} else if (S_ISLNK(st.st_mode)) {
		r = copy_link(c, dir, name, to, as, &st);
	} else if (S_ISDIR(st.st_mode)) {
		r = copy_dir(c, dir, name, to, as, &st, depth);
	} else {
		c->why = "neither a file nor a directory nor a link";
		return -EINVAL;
	}
	c->count += r == 0;
	return r;
}

/* --- start --- */
/* PATH as an open directory and a name in it. The name is cut off PATH. */
static int open_parent(char *path, const char **ret_name)
{
	size_t n = strlen(path);
	char *slash;
	int fd;

	while (n > 1 && path[n - 1] == '/')
		path[--n] = '\0';
	slash = strrchr(path, '/');
	*ret_name = slash + 1;
	if (!slash[1] || !strcmp(slash + 1, ".") || !strcmp(slash + 1, ".."))
		return -EINVAL;
	*slash = '\0';
	fd = open(slash == path ? "/" : path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* Is the directory TO within NAME of DIR, or the same? */
static bool within(int dir, const char *name, int to)
{
	struct stat self, st, last = { 0 };
	int fd = openat(to, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	bool found = false;

	if (fstatat(dir, name, &self, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISDIR(self.st_mode)) {
		fd_close(&fd);
		return false;
	}
	while (fd >= 0 && !found && fstat(fd, &st) == 0 &&
	       (st.st_dev != last.st_dev || st.st_ino != last.st_ino)) {
		int up = openat(fd, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);

		found = st.st_dev == self.st_dev && st.st_ino == self.st_ino;
		last = st;
		fd_close(&fd);
		fd = up;
	}
	fd_close(&fd);
	return found;
}

static int copy_tree(struct copy *c, char *from, char *to)
{
	const char *name;
	AUTO_FD dst = open_parent(to, &c->as);
	AUTO_FD src = open_parent(from, &name);
	struct stat a, b;

	if (src < 0 || dst < 0)
		return src < 0 ? src : dst;
	if (within(src, name, dst)) {
		c->why = "a directory cannot be copied into itself";
		return -EINVAL;
	}
	if (fstatat(src, name, &a, AT_SYMLINK_NOFOLLOW) == 0 &&
	    fstatat(dst, c->as, &b, AT_SYMLINK_NOFOLLOW) == 0 && a.st_dev == b.st_dev &&
	    a.st_ino == b.st_ino) {
		c->why = "both are the same file";
		return -EINVAL;
	}
	return copy_one(c, src, name, dst, c->as, 0);
}

int fsop_copy(int argc, char **argv)
{
	static struct copy c;
	cJSON *o;
	int r;

	if (argc != 4)
		return EXIT_FAILURE;
	c.as = "";
	c.recursive = argv[2][0] == '1';
	c.overwrite = argv[3][0] == '1';
	buf_init(&c.path, 256UL << 10);
	r = buf_adds(&c.path, argv[0]);
	if (r == 0)
		r = copy_tree(&c, argv[0], argv[1]);
	if (r < 0)
		return work_error(0, -r, "%s to %s/%s%s%s", c.path.p, argv[1], c.as,
				  c.why ? ": " : "", c.why ? c.why : "");
	o = cJSON_CreateObject();
	if (o && !(jsn_add_u64(o, "count", c.count) && jsn_add_u64(o, "bytes", c.bytes)))
		jsn_free(&o);
	return work_reply(200, o);
}
