/* SPDX-License-Identifier: Apache-2.0 */
#include "pack.h"

#include <archive.h>
#include <archive_entry.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include "fd.h"

/*
 * The walk opens each entry relative to its directory and never follows a symbolic link, so that a workload that renames things
 * meanwhile can make it fail but not lead it elsewhere. What is written about a file comes from fstat(2) of the open descriptor.
 *
 * libarchive's link resolver remembers files with several names, and gives the second one as a link to the first. Names are
 * not converted: only the functions for raw bytes are used, and in the C locale, which these programs keep, libarchive writes
 * a name that is not ASCII as it is, and says hdrcharset=BINARY. To ask for that by option would make it say so for every
 * member, and GNU tar warns each time.
 */

#define BLOCK (64U << 10)

struct packer {
	const struct pack_spec *spec;
	struct pack_count *count;
	struct err *err;
	struct archive *a;
	struct archive_entry_linkresolver *links;
	bool in_member, failed;
	int write_error; /* negative errno of spec->write */
	size_t path_len;
	char path[PACK_PATH_MAX + 1]; /* of the member */
	size_t held;		      /* bytes of the member that are in BLOCK already */
	char block[BLOCK];
};

static int pack_entry(struct packer *p, int dir, const char *name, int depth, bool follow);

static int sys_failed(struct packer *p, int errnum, const char *what)
{
	return err_set(p->err, ERR_IO, errnum, "%s%s%s", p->path, what ? ": " : "",
		       what ? what : "");
}

static int lib_failed(struct packer *p)
{
	int n = archive_errno(p->a);

	if (p->write_error)
		return err_set(p->err, ERR_IO, -p->write_error, "writing the archive");
	return err_set(p->err, n == ENOMEM ? ERR_INTERNAL : ERR_INVALID, n > 0 ? n : EINVAL,
		       "%s: %s", p->path, archive_error_string(p->a));
}

static void tick(const struct packer *p)
{
	if (p->spec->tick)
		p->spec->tick(p->spec->arg);
}

/* --- one member --- */
static void describe(struct archive_entry *en, const struct packer *p, const struct stat *st)
{
	archive_entry_copy_pathname(en, p->path);
	archive_entry_set_mode(en, st->st_mode);
	archive_entry_set_uid(en, st->st_uid);
	archive_entry_set_gid(en, st->st_gid);
	archive_entry_set_mtime(en, st->st_mtim.tv_sec, st->st_mtim.tv_nsec);
	archive_entry_set_size(en, S_ISREG(st->st_mode) ? st->st_size : 0);
	archive_entry_set_dev(en, st->st_dev);
	archive_entry_set_ino64(en, (int64_t)st->st_ino);
	archive_entry_set_nlink(en, (unsigned)st->st_nlink);
	if (S_ISCHR(st->st_mode) || S_ISBLK(st->st_mode))
		archive_entry_set_rdev(en, st->st_rdev);
}

void pack_holes(struct archive_entry *en, int fd, const struct stat *st)
{
	off_t at = 0;

	if ((int64_t)st->st_blocks * 512 >= st->st_size)
		return;
	while (at < st->st_size) {
		off_t data = lseek(fd, at, SEEK_DATA), hole;

		if (data < 0 && errno != ENXIO) {
			archive_entry_sparse_clear(en);
			return;
		}
		if (data < 0 || data >= st->st_size)
			break;
		hole = lseek(fd, data, SEEK_HOLE);
		if (hole <= data || hole > st->st_size)
			hole = st->st_size;
		archive_entry_sparse_add_entry(en, data, hole - data);
		at = hole;
	}
	if (at < st->st_size && archive_entry_sparse_count(en) == 0)
		archive_entry_sparse_add_entry(en, st->st_size, 0); /* one hole */
}

/* Writes the N bytes at OFFSET, which may be a hole, that the library leaves out by itself. */
static int pack_block(struct packer *p, int fd, off_t offset, size_t n)
{
	size_t done = 0;

	while (done < n) {
		ssize_t k = pread(fd, p->block + done, n - done, offset + (off_t)done);

		if (k < 0 && errno == EINTR)
			continue;
		if (k < 0)
			return sys_failed(p, errno, "reading");
		if (k == 0)
			return sys_failed(p, EIO, "the file became shorter while it was read");
		done += (size_t)k;
	}
	if (archive_write_data(p->a, p->block, n) != (la_ssize_t)n)
		return lib_failed(p);
	p->count->bytes += n;
	tick(p);
	return 0;
}

static int pack_content(struct packer *p, int fd, off_t size)
{
	int r = 0;

	if (p->held) {
		p->count->bytes += p->held;
		return archive_write_data(p->a, p->block, p->held) < 0 ? lib_failed(p) : 0;
	}
	for (off_t at = 0; r == 0 && at < size;) {
		size_t n = size - at < (off_t)BLOCK ? (size_t)(size - at) : BLOCK;

		r = pack_block(p, fd, at, n);
		at += (off_t)n;
	}
	return r;
}

/* Files of /proc say that they are empty, and are not: what they hold is read before their size is told. */
static int read_sizeless(struct packer *p, int fd)
{
	ssize_t k = 1;

	while (k > 0 && p->held < BLOCK) {
		k = pread(fd, p->block + p->held, BLOCK - p->held, (off_t)p->held);
		if (k < 0)
			return sys_failed(p, errno, "reading");
		p->held += (size_t)k;
	}
	return p->held == BLOCK ? sys_failed(p, EFBIG, "it has no size") : 0;
}

/* Consumes EN. FD: of a regular file, else -1. */
static int pack_member(struct packer *p, struct archive_entry *en, int fd)
{
	struct archive_entry *later = NULL;
	int r = 0;

	archive_entry_linkify(p->links, &en, &later); /* may set the size to 0 */
	p->in_member = true;
	if (archive_write_header(p->a, en) < ARCHIVE_WARN)
		r = lib_failed(p);
	if (r == 0)
		p->count->members++;
	tick(p);
	if (r == 0 && fd >= 0 && !archive_entry_hardlink(en))
		r = pack_content(p, fd, (off_t)archive_entry_size(en));
	if (r == 0 && archive_write_finish_entry(p->a) < ARCHIVE_WARN)
		r = lib_failed(p);
	if (r == 0)
		p->in_member = false;
	archive_entry_free(en);
	archive_entry_free(later);
	return r;
}

/* --- the walk --- */
/* Appends "/NAME" to the member's path. */
static int path_push(struct packer *p, const char *name, size_t *ret_old)
{
	size_t n = strlen(name);

	*ret_old = p->path_len;
	if (p->path_len + 1 + n > PACK_PATH_MAX)
		return sys_failed(p, ENAMETOOLONG, name);
	if (p->path_len)
		p->path[p->path_len++] = '/';
	memcpy(p->path + p->path_len, name, n + 1);
	p->path_len += n;
	return 0;
}

static void path_pop(struct packer *p, size_t old)
{
	p->path_len = old;
	p->path[old] = '\0';
}

/* Everything in the directory FD (consumed). */
static int pack_children(struct packer *p, int fd, int depth)
{
	DIR *d = depth < PACK_DEPTH_MAX ? fdopendir(fd) : NULL;
	struct dirent *e;
	int r = 0;

	if (!d) {
		r = sys_failed(p, depth < PACK_DEPTH_MAX ? errno : ELOOP, "listing");
		fd_close(&fd);
		return r;
	}
	for (;;) {
		size_t old;

		errno = 0;
		e = readdir(d);
		if (!e)
			break;
		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
			continue;
		r = path_push(p, e->d_name, &old);
		if (r == 0)
			r = pack_entry(p, dirfd(d), e->d_name, depth + 1, false);
		path_pop(p, old);
		if (r < 0)
			break;
	}
	if (r == 0 && errno)
		r = sys_failed(p, errno, "listing");
	(void)closedir(d);
	return r;
}

static int pack_link(struct packer *p, struct archive_entry *en, int dir, const char *name)
{
	char target[PACK_PATH_MAX + 1];
	ssize_t k = readlinkat(dir, name, target, sizeof(target));

	if (k < 0 || k == (ssize_t)sizeof(target)) {
		archive_entry_free(en);
		return sys_failed(p, k < 0 ? errno : ENAMETOOLONG, "reading the link");
	}
	target[k] = '\0';
	archive_entry_copy_symlink(en, target);
	return pack_member(p, en, -1);
}

/* A regular file or a directory, which is opened. */
static int pack_opened(struct packer *p, struct archive_entry *en, int dir, const char *name,
		       int depth, bool follow)
{
	AUTO_FD fd =
		openat(dir, name,
		       O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | (follow ? 0 : O_NOFOLLOW));
	struct stat st;
	int r = 0;

	if (fd < 0 || fstat(fd, &st) < 0)
		r = sys_failed(p, errno, NULL);
	else if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
		r = sys_failed(p, EINVAL, "it became another kind of file");
	if (r < 0) {
		archive_entry_free(en);
		return r;
	}
	describe(en, p, &st);
	p->held = 0;
	if (S_ISREG(st.st_mode) && st.st_size == 0)
		r = read_sizeless(p, fd);
	if (r < 0) {
		archive_entry_free(en);
		return r;
	}
	if (p->held)
		archive_entry_set_size(en, (int64_t)p->held);
	else if (S_ISREG(st.st_mode))
		pack_holes(en, fd, &st);
	r = pack_member(p, en, S_ISREG(st.st_mode) ? fd : -1);
	return r < 0 || S_ISREG(st.st_mode) ? r : pack_children(p, fd_take(&fd), depth);
}

static int pack_entry(struct packer *p, int dir, const char *name, int depth, bool follow)
{
	struct archive_entry *en;
	struct stat st;

	if (fstatat(dir, name, &st, follow ? 0 : AT_SYMLINK_NOFOLLOW) < 0)
		return sys_failed(p, errno, NULL);
	if (S_ISSOCK(st.st_mode)) {
		p->count->skipped++;
		return 0;
	}
	if (p->spec->skip && p->spec->skip(p->spec->arg, p->path, st.st_mode))
		return 0;
	en = archive_entry_new2(p->a);
	if (!en)
		return sys_failed(p, ENOMEM, "packing");
	describe(en, p, &st);
	if (S_ISLNK(st.st_mode))
		return pack_link(p, en, dir, name);
	if (S_ISREG(st.st_mode) || S_ISDIR(st.st_mode))
		return pack_opened(p, en, dir, name, depth, follow);
	return pack_member(p, en, -1);
}

/* --- the archive --- */
static la_ssize_t write_cb(struct archive *a, void *arg, const void *buf, size_t n)
{
	struct packer *p = arg;

	if (p->failed)
		return (la_ssize_t)n; /* no end mark behind half an archive */
	p->write_error = p->spec->write(p->spec->arg, buf, n);
	if (p->write_error == 0)
		return (la_ssize_t)n;
	archive_set_error(a, -p->write_error, "writing");
	return -1;
}

static int start(struct packer *p)
{
	p->a = archive_write_new();
	p->links = archive_entry_linkresolver_new();
	if (!p->a || !p->links)
		return err_set(p->err, ERR_INTERNAL, ENOMEM, "packing");
	archive_entry_linkresolver_set_strategy(p->links, ARCHIVE_FORMAT_TAR_PAX_RESTRICTED);
	if (archive_write_set_format_pax_restricted(p->a) != ARCHIVE_OK ||
	    archive_write_set_bytes_per_block(p->a, (int)BLOCK) != ARCHIVE_OK ||
	    archive_write_set_bytes_in_last_block(p->a, 1) != ARCHIVE_OK ||
	    archive_write_open2(p->a, p, NULL, write_cb, NULL, NULL) != ARCHIVE_OK)
		return lib_failed(p);
	return 0;
}

/*
 * After a failure inside a member, closing would first fill that member up with zeros, all of its size; archive_write_fail
 * prevents that, at the price of a block of memory that the library then forgets.
 */
static int finish(struct packer *p, int r)
{
	p->failed = r < 0;
	if (p->a && r < 0 && p->in_member)
		(void)archive_write_fail(p->a);
	else if (p->a && archive_write_close(p->a) != ARCHIVE_OK && r == 0)
		r = lib_failed(p);
	if (p->a)
		(void)archive_write_free(p->a);
	archive_entry_linkresolver_free(p->links);
	free(p);
	return r;
}

int pack_tree(const struct pack_spec *s, struct pack_count *ret, struct err *e)
{
	struct packer *p = calloc(1, sizeof(*p));
	size_t old;
	int r;

	*ret = (struct pack_count){ 0 };
	if (!p)
		return err_set(e, ERR_INTERNAL, ENOMEM, "packing");
	p->spec = s;
	p->count = ret;
	p->err = e;
	r = path_push(p, s->as ? s->as : s->name, &old);
	if (r == 0)
		r = start(p);
	if (r == 0)
		r = pack_entry(p, s->dir, s->name, 0, s->follow);
	return finish(p, r);
}
