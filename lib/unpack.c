/* SPDX-License-Identifier: Apache-2.0 */
#include "unpack.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "beneath.h"
#include "fd.h"
#include "unpack_int.h"

/*
 * One member after the other: its name is checked and mapped (unpack_name.c), its directory opened by beneath.c, the new
 * file made under a temporary name there, filled, given its mode and time, and renamed (unpack_put.c). Directories get mode and time
 * when all is done, the last one first, because what is put into them changes both.
 *
 * libarchive only reads the format. Its own extraction (archive_write_disk) resolves names by paths and is not used.
 *
 * The end mark: libarchive takes a stream that ends between two members for complete. Whether it has consumed a block
 * of zeros there shows in how far it got.
 */

#define TRAILER_MAX (1U << 20) /* read behind the end mark, so that the sender can finish */
#define TAR_BLOCK   512

/* --- the stream --- */
static la_ssize_t read_cb(struct archive *a, void *arg, const void **ret)
{
	struct unpacker *u = arg;
	ssize_t k = u->spec->read(u->spec->arg, u->block, sizeof(u->block));

	if (k < 0) {
		u->read_error = (int)k;
		archive_set_error(a, (int)-k, "reading the archive");
		return -1;
	}
	*ret = u->block;
	return (la_ssize_t)k;
}

int unpack_lib_failed(struct unpacker *u)
{
	int n = archive_errno(u->a);
	const char *why = archive_error_string(u->a);

	if (u->read_error)
		return err_set(u->err, ERR_IO, -u->read_error, "reading the archive");
	if (n == ENOMEM)
		return err_set(u->err, ERR_INTERNAL, n, "reading the archive");
	if (!u->name[0])
		return err_set(u->err, ERR_INVALID, 0, "not a tar archive: %s",
			       why ? why : "unknown format");
	return err_set(u->err, ERR_INVALID, 0, "after \"%.400s\": %s", u->name,
		       why ? why : "broken archive");
}

static int start(struct unpacker *u)
{
	u->a = archive_read_new();
	if (!u->a)
		return err_set(u->err, ERR_INTERNAL, ENOMEM, "reading the archive");
	if (archive_read_support_format_tar(u->a) != ARCHIVE_OK ||
	    (u->spec->filters && u->spec->filters(u->a) != ARCHIVE_OK) ||
	    archive_read_open(u->a, u, NULL, read_cb, NULL) != ARCHIVE_OK)
		return unpack_lib_failed(u);
	return 0;
}

/* Reads what is behind the end mark. */
static int drain(struct unpacker *u)
{
	size_t n = 0;
	ssize_t k;

	do {
		k = u->spec->read(u->spec->arg, u->block, sizeof(u->block));
		n += k > 0 ? (size_t)k : 0;
	} while (k > 0 && n < TRAILER_MAX);
	return k < 0 ? err_set(u->err, ERR_IO, (int)-k, "reading the archive") : 0;
}

/* --- directories, at the end --- */
int unpack_remember_dir(struct unpacker *u, const struct unpack_attrs *at)
{
	struct unpack_dir *d;

	u->dirs_bytes += strlen(u->path) + 1;
	if (u->dirs_bytes > UNPACK_DIRS_MAX)
		return err_set(u->err, ERR_TOO_BIG, 0,
			       "the paths of its directories have more than %u MiB",
			       UNPACK_DIRS_MAX >> 20);
	if (u->dirs_len == u->dirs_size) {
		size_t size = u->dirs_size ? 2 * u->dirs_size : 64;

		d = realloc(u->dirs, size * sizeof(*d));
		if (!d)
			return err_set(u->err, ERR_INTERNAL, ENOMEM, "remembering directories");
		u->dirs = d;
		u->dirs_size = size;
	}
	d = &u->dirs[u->dirs_len];
	d->attrs = *at;
	d->path = strdup(u->path);
	if (!d->path)
		return err_set(u->err, ERR_INTERNAL, ENOMEM, "remembering directories");
	u->dirs_len++;
	return 0;
}

static int finish_dir(struct unpacker *u, const struct unpack_dir *d)
{
	AUTO_FD place = -1, fd = -1;
	int r = beneath_open(u->spec->dir, d->path, &place);

	if (r == 0) {
		fd = openat(place, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		r = fd < 0 ? -errno : unpack_set_attrs(u, fd, &d->attrs);
	}
	if (r == -ENOENT || r == -ELOOP || r == -ENOTDIR)
		return 0; /* somebody has put something else there meanwhile: it is theirs */
	return r < 0 ? err_set(u->err, ERR_IO, -r, "\"%.400s\"", d->path) : 0;
}

/* Also after a failure, for what stands. */
static int finish_dirs(struct unpacker *u, int r)
{
	while (u->dirs_len) {
		struct unpack_dir *d = &u->dirs[--u->dirs_len];
		int k;

		if (r < 0)
			u->err = NULL; /* the first reason is told */
		k = finish_dir(u, d);
		r = r < 0 ? r : k;
		free(d->path);
	}
	free(u->dirs);
	return r;
}

/* --- the whole --- */
/* 1 = there is a member, 0 = the end. */
static int next_member(struct unpacker *u, struct archive_entry **ret)
{
	int64_t before = archive_filter_bytes(u->a, 0);
	int r = archive_read_next_header(u->a, ret);

	if (r == ARCHIVE_OK || r == ARCHIVE_WARN) /* a warning: a name that is not UTF-8 */
		return 1;
	if (r != ARCHIVE_EOF)
		return unpack_lib_failed(u);
	if (archive_filter_bytes(u->a, 0) - before < TAR_BLOCK)
		return err_set(u->err, ERR_INVALID, 0,
			       "the archive has no end mark: it was cut%s%.400s%s",
			       u->name[0] ? " after \"" : "", u->name, u->name[0] ? "\"" : "");
	return 0;
}

static int each_member(struct unpacker *u)
{
	struct archive_entry *en;
	int r;

	while ((r = next_member(u, &en)) > 0) {
		r = unpack_name(u, en);
		if (r == 0 && u->spec->skip &&
		    u->spec->skip(u->spec->arg, u->path, archive_entry_filetype(en)))
			continue;
		if (r == 0 && u->count->members == UNPACK_MEMBERS_MAX)
			r = err_set(u->err, ERR_TOO_BIG, 0, "more than %d members",
				    UNPACK_MEMBERS_MAX);
		if (r == 0)
			r = unpack_put(u, en);
		if (r < 0)
			break;
		u->count->members++;
		unpack_tick(u);
	}
	return r;
}

int unpack_tree(const struct unpack_spec *s, struct unpack_count *ret, struct err *e)
{
	struct unpacker *u = calloc(1, sizeof(*u));
	int r;

	*ret = (struct unpack_count){ 0 };
	if (!u)
		return err_set(e, ERR_INTERNAL, ENOMEM, "extracting");
	u->spec = s;
	u->count = ret;
	u->err = e;
	u->place = -1;
	r = unpack_put_init(u, e);
	if (r == 0)
		r = start(u);
	if (r == 0)
		r = each_member(u);
	if (r == 0)
		r = drain(u);
	r = finish_dirs(u, r);
	unpack_put_done(u);
	if (u->a)
		(void)archive_read_free(u->a);
	free(u);
	return r;
}

/* --- from memory --- */
struct bytes {
	const char *p;
	size_t n;
};

static ssize_t read_bytes(void *arg, void *p, size_t n)
{
	struct bytes *b = arg;

	if (n > b->n)
		n = b->n;
	if (n)
		memcpy(p, b->p, n);
	b->p += n;
	b->n -= n;
	return (ssize_t)n;
}

int unpack_bytes(int dir, const void *p, size_t n, unsigned flags, struct unpack_count *ret,
		 struct err *e)
{
	struct bytes b = { p, n };
	struct unpack_spec s = { .dir = dir, .flags = flags, .read = read_bytes, .arg = &b };

	return unpack_tree(&s, ret, e);
}
