/* SPDX-License-Identifier: Apache-2.0 */
#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "beneath.h"
#include "fd.h"
#include "unpack_int.h"

/*
 * Making files. Everything but a directory is made under a temporary name beside its place and then renamed, so that
 * what was there before is replaced whole or not at all, and is never written into: it may have other names elsewhere.
 */

#define TMP_TRIES 100

/* For unpack_abandon: the one extraction of this process whose temporary file a signal would leave. */
static struct unpacker *volatile active;

static int failed(struct unpacker *u, int errnum)
{
	return err_set(u->err, ERR_IO, errnum, "member \"%.400s\"", u->name);
}

int unpack_put_init(struct unpacker *u, struct err *e)
{
	uint64_t random;

	if (getrandom(&random, sizeof(random), 0) != (ssize_t)sizeof(random))
		return err_set(e, ERR_INTERNAL, errno, "getrandom");
	(void)snprintf(u->tmp_prefix, sizeof(u->tmp_prefix), ".asb-%012llx",
		       (unsigned long long)(random & 0xffffffffffffULL));
	active = u;
	return 0;
}

static void drop_tmp(struct unpacker *u)
{
	if (u->tmp[0])
		(void)unlinkat(u->place, u->tmp, 0);
	u->tmp[0] = '\0';
}

void unpack_put_done(struct unpacker *u)
{
	drop_tmp(u);
	active = NULL;
	fd_close(&u->place);
}

void unpack_abandon(void)
{
	struct unpacker *u = active;

	if (u && u->tmp[0])
		(void)unlinkat(u->place, u->tmp, 0);
}

/* --- where --- */
static int explain_place(struct unpacker *u, int r)
{
	if (r == -ELOOP)
		return unpack_refuse(u, "would go through a symbolic link");
	return failed(u, -r);
}

/* Opens the directory that PATH is in, as u->place; *RET_NAME is the last component. */
static int find_place(struct unpacker *u, const char *path, const char **ret_name)
{
	const char *slash = strrchr(path, '/');
	size_t n = slash ? (size_t)(slash - path) : 0;
	int r;

	*ret_name = slash ? slash + 1 : path;
	if (u->place >= 0 && strlen(u->place_path) == n && !memcmp(u->place_path, path, n))
		return 0;
	fd_close(&u->place);
	memcpy(u->place_path, path, n);
	u->place_path[n] = '\0';
	r = beneath_make(u->spec->dir, u->place_path, 0777, &u->place);
	return r < 0 ? explain_place(u, r) : 0;
}

static void next_tmp(struct unpacker *u)
{
	char name[UNPACK_TMP];

	(void)snprintf(name, sizeof(name), "%s-%u", u->tmp_prefix, u->tmp_counter++);
	memcpy(u->tmp, name, sizeof(name));
}

/* --- attributes --- */
static void read_attrs(const struct unpacker *u, struct archive_entry *en, struct unpack_attrs *at)
{
	long ns = archive_entry_mtime_nsec(en);

	*at = (struct unpack_attrs){
		.mode = archive_entry_perm(en) &
			(u->spec->flags & UNPACK_NO_SETID ? 0777U : 07777U),
		.uid = (uid_t)archive_entry_uid(en),
		.gid = (gid_t)archive_entry_gid(en),
		.has_mtime = archive_entry_mtime_is_set(en),
		.mtime = { .tv_sec = archive_entry_mtime(en),
			   .tv_nsec = ns < 0 || ns > 999999999 ? 0 : ns },
	};
}

/* The owner first: changing it takes set-id bits away. */
int unpack_set_attrs(const struct unpacker *u, int fd, const struct unpack_attrs *at)
{
	struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, at->mtime };

	if ((u->spec->flags & UNPACK_OWNER) && fchown(fd, at->uid, at->gid) < 0)
		return -errno;
	if (fchmod(fd, at->mode) < 0)
		return -errno;
	return at->has_mtime && futimens(fd, times) < 0 ? -errno : 0;
}

/* Of the symbolic link u->tmp. Its name may have been given to another file meanwhile, whose owner must not change. */
static int set_link_attrs(struct unpacker *u, const struct unpack_attrs *at)
{
	struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, at->mtime };
	AUTO_FD fd = openat(u->place, u->tmp, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISLNK(st.st_mode))
		return -EBUSY;
	if ((u->spec->flags & UNPACK_OWNER) &&
	    fchownat(fd, "", at->uid, at->gid, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	return at->has_mtime && utimensat(u->place, u->tmp, times, AT_SYMLINK_NOFOLLOW) < 0 ? -errno
											    : 0;
}

static int set_fifo_attrs(struct unpacker *u, const struct unpack_attrs *at)
{
	AUTO_FD fd = openat(u->place, u->tmp, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	return S_ISFIFO(st.st_mode) ? unpack_set_attrs(u, fd, at) : -EBUSY;
}

/* --- kinds of members --- */
static int put_dir(struct unpacker *u, const char *name, const struct unpack_attrs *at)
{
	struct stat st;

	if (mkdirat(u->place, name, 0700) < 0) {
		if (errno != EEXIST || fstatat(u->place, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			return failed(u, errno);
		if (!S_ISDIR(st.st_mode))
			return err_set(u->err, ERR_CONFLICT, ENOTDIR,
				       "member \"%.400s\" is a directory and would replace a %s",
				       u->name, S_ISLNK(st.st_mode) ? "symbolic link" : "file");
	}
	return unpack_remember_dir(u, at);
}

/* Writes the blocks of the member into FD; between them are holes. */
static int put_content(struct unpacker *u, int fd, int64_t size)
{
	const void *p;
	size_t n;
	int64_t at;
	int r;

	while ((r = archive_read_data_block(u->a, &p, &n, &at)) == ARCHIVE_OK ||
	       r == ARCHIVE_WARN) {
		const char *c = p;

		while (n) {
			ssize_t k = pwrite(fd, c, n, at);

			if (k < 0 && errno == EINTR)
				continue;
			if (k < 0)
				return failed(u, errno);
			c += k;
			at += k;
			n -= (size_t)k;
			u->count->bytes += (uint64_t)k;
		}
		unpack_tick(u);
	}
	if (r != ARCHIVE_EOF)
		return unpack_lib_failed(u);
	return ftruncate(fd, size) < 0 ? failed(u, errno) : 0; /* a hole at the end */
}

static int put_file(struct unpacker *u, struct archive_entry *en, const struct unpack_attrs *at)
{
	AUTO_FD fd = -1;
	int r;

	for (int i = 0; i < TMP_TRIES && fd < 0; i++) {
		next_tmp(u);
		fd = openat(u->place, u->tmp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
			    0600);
		if (fd < 0) {
			int errnum = errno;

			u->tmp[0] = '\0';
			if (errnum != EEXIST)
				return failed(u, errnum);
		}
	}
	if (fd < 0)
		return failed(u, EEXIST);
	r = put_content(u, fd, archive_entry_size(en));
	if (r < 0)
		return r;
	r = unpack_set_attrs(u, fd, at);
	return r < 0 ? failed(u, -r) : 0;
}

static int put_symlink(struct unpacker *u, const char *target, const struct unpack_attrs *at)
{
	int r;

	if (!target[0] || strlen(target) > UNPACK_PATH_MAX)
		return unpack_refuse(u, "is a link with no target, or one that is too long");
	next_tmp(u);
	if (symlinkat(target, u->place, u->tmp) < 0) {
		r = errno;
		u->tmp[0] = '\0';
		return failed(u, r);
	}
	r = set_link_attrs(u, at);
	return r < 0 ? failed(u, -r) : 0;
}

static int put_fifo(struct unpacker *u, const struct unpack_attrs *at)
{
	int r;

	next_tmp(u);
	if (mknodat(u->place, u->tmp, S_IFIFO | 0600, 0) < 0) {
		r = errno;
		u->tmp[0] = '\0';
		return failed(u, r);
	}
	r = set_fifo_attrs(u, at);
	return r < 0 ? failed(u, -r) : 0;
}

/* TARGET names a member that came before, or another file below the directory. */
static int put_hardlink(struct unpacker *u, const char *target)
{
	char path[UNPACK_PATH_MAX + 1], *slash;
	AUTO_FD dir = -1;
	int r = unpack_map(u, target, path);

	if (r < 0)
		return r;
	slash = strrchr(path, '/');
	if (slash)
		*slash = '\0';
	r = beneath_open(u->spec->dir, slash ? path : "", &dir);
	if (r < 0)
		return explain_place(u, r);
	next_tmp(u);
	if (linkat(dir, slash ? slash + 1 : path, u->place, u->tmp, 0) < 0) {
		r = errno;
		u->tmp[0] = '\0';
		return err_set(u->err, ERR_INVALID, r, "member \"%.300s\" is a link to \"%.300s\"",
			       u->name, target);
	}
	return 0;
}

/* What is not a directory, as u->tmp. */
static int put_tmp(struct unpacker *u, struct archive_entry *en, const struct unpack_attrs *at)
{
	const char *link = archive_entry_hardlink(en);

	if (link)
		return put_hardlink(u, link);
	switch (archive_entry_filetype(en)) {
	case AE_IFREG:
		return put_file(u, en, at);
	case AE_IFLNK:
		link = archive_entry_symlink(en);
		return put_symlink(u, link ? link : "", at);
	case AE_IFIFO:
		return put_fifo(u, at);
	case AE_IFCHR:
	case AE_IFBLK:
		return unpack_refuse(u, "is a device");
	default:
		return unpack_refuse(u, "is of an unknown kind");
	}
}

static int put_name(struct unpacker *u, const char *name)
{
	if (renameat(u->place, u->tmp, u->place, name) < 0) {
		if (errno == EISDIR || errno == ENOTEMPTY || errno == EEXIST)
			return err_set(u->err, ERR_CONFLICT, EISDIR,
				       "member \"%.400s\" would replace a directory", u->name);
		return failed(u, errno);
	}
	drop_tmp(u); /* rename(2) of two links to one file does nothing */
	return 0;
}

int unpack_put(struct unpacker *u, struct archive_entry *en)
{
	bool is_dir = archive_entry_filetype(en) == AE_IFDIR && !archive_entry_hardlink(en);
	struct unpack_attrs at;
	const char *name;
	int r;

	if (!u->path[0])
		return is_dir ? 0 : unpack_refuse(u, "would replace the directory itself");
	r = find_place(u, u->path, &name);
	if (r < 0)
		return r;
	read_attrs(u, en, &at);
	if (is_dir)
		return put_dir(u, name, &at);
	r = put_tmp(u, en, &at);
	if (r == 0)
		r = put_name(u, name);
	if (r < 0)
		drop_tmp(u);
	return r;
}
