/* SPDX-License-Identifier: Apache-2.0 */
#include "host/local/snapfile.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host/backend.h"
#include "host/local/qcow2.h"
#include "lib/fd.h"
#include "lib/loop.h"
#include "lib/pack.h"
#include "lib/str.h"

/*
 * Reading believes nothing: the first member must be a manifest that passes snap_meta_parse, and whoever called decides
 * by that whether to go on, before a byte is written. Then each member must be the one that comes next, a plain file of
 * the length that the manifest says, and what came of it must have its checksum. libarchive only reads the format;
 * names of the stream are compared and never used.
 */

#define SHOW_NS 300000000LL
#define BLOCK	DIGEST_BLOCK

/* --- how far it is --- */
struct meter {
	const struct progress *p;
	uint64_t total, done;
	int64_t begun, shown;
};

static void meter_begin(struct meter *t, const struct progress *p, const struct snap_meta *m)
{
	*t = (struct meter){ .p = p, .begun = loop_now() };
	for (int i = 0; i < SNAP_PARTS; i++)
		t->total += m->part[i].bytes;
}

/* -EINTR: the user wants out. */
static int meter_add(struct meter *t, uint64_t n)
{
	int64_t now;
	char text[16];

	t->done += n;
	if (!t->p)
		return 0;
	if (t->p->cancel && *t->p->cancel)
		return -EINTR;
	now = loop_now();
	if (!t->p->fn || now - t->shown < SHOW_NS)
		return 0;
	t->shown = now;
	ignore_result(str_format(text, sizeof(text), "%d %%", /* fits */
				 (int)(100.0 * (double)t->done / ((double)t->total + 1))));
	t->p->fn(t->p->arg, text, (now - t->begun) / 1000000);
	return 0;
}

/* --- descriptors that may make us wait --- */
/* Until FD is ready, looking every 200 ms whether the user wants out: -EINTR. */
static int wait_for(int fd, short events, const volatile sig_atomic_t *cancel)
{
	struct pollfd pf = { .fd = fd, .events = events };
	int r;

	do {
		if (cancel && *cancel)
			return -EINTR;
		r = poll(&pf, 1, 200);
	} while (r == 0 || (r < 0 && errno == EINTR));
	return r < 0 ? -errno : 0;
}

ssize_t snapfile_read_fd(void *arg, void *p, size_t n)
{
	const struct snap_fd *s = arg;

	for (;;) {
		int r = wait_for(s->fd, POLLIN, s->cancel);
		ssize_t k = r < 0 ? r : read(s->fd, p, n);

		if (r < 0 || k >= 0)
			return k;
		if (errno != EINTR && errno != EAGAIN)
			return -errno;
	}
}

static int write_fd(int fd, const char *p, size_t n, const volatile sig_atomic_t *cancel)
{
	while (n) {
		int r = wait_for(fd, POLLOUT, cancel);
		ssize_t k = r < 0 ? r : write(fd, p, n);

		if (r < 0)
			return r;
		if (k < 0 && errno != EINTR && errno != EAGAIN)
			return -errno;
		p += k > 0 ? k : 0;
		n -= k > 0 ? (size_t)k : 0;
	}
	return 0;
}

/* --- writing --- */
struct snap_out {
	struct archive *a;
	struct meter meter;
	const struct snap_meta *meta;
	int fd, error; /* negative errno of writing */
	bool broken;
	unsigned char block[BLOCK];
};

static la_ssize_t write_cb(struct archive *a, void *arg, const void *p, size_t n)
{
	struct snap_out *o = arg;

	if (o->broken)
		return (la_ssize_t)n; /* no end behind half of it */
	o->error = write_fd(o->fd, p, n, o->meter.p ? o->meter.p->cancel : NULL);
	if (o->error == 0)
		return (la_ssize_t)n;
	archive_set_error(a, -o->error, "writing");
	return -1;
}

static int out_failed(const struct snap_out *o, struct err *e)
{
	const char *why = archive_error_string(o->a);

	if (o->error)
		return err_set(e, ERR_IO, -o->error, "writing the file");
	return err_set(e, ERR_INTERNAL, archive_errno(o->a) > 0 ? archive_errno(o->a) : EINVAL,
		       "packing: %s", why ? why : "unknown");
}

static int out_start(struct snap_out *o, struct err *e)
{
	o->a = archive_write_new();
	if (!o->a)
		return err_set(e, ERR_INTERNAL, ENOMEM, "packing");
	if (archive_write_add_filter_zstd(o->a) != ARCHIVE_OK ||
	    archive_write_set_format_pax_restricted(o->a) != ARCHIVE_OK ||
	    archive_write_set_bytes_per_block(o->a, BLOCK) != ARCHIVE_OK ||
	    archive_write_set_bytes_in_last_block(o->a, 1) != ARCHIVE_OK ||
	    archive_write_open2(o->a, o, NULL, write_cb, NULL, NULL) != ARCHIVE_OK)
		return out_failed(o, e);
	return 0;
}

/* FD: where its holes are; -1 = it has none. */
static int out_header(struct snap_out *o, const char *name, uint64_t bytes, int fd, struct err *e)
{
	struct archive_entry *en = archive_entry_new2(o->a);
	struct stat st;
	int r = 0;

	if (!en)
		return err_set(e, ERR_INTERNAL, ENOMEM, "packing");
	archive_entry_copy_pathname(en, name);
	archive_entry_set_mode(en, S_IFREG | 0600);
	archive_entry_set_mtime(en, o->meta->created_s, 0);
	archive_entry_set_size(en, (int64_t)bytes);
	if (fd >= 0 && fstat(fd, &st) == 0)
		pack_holes(en, fd, &st);
	if (archive_write_header(o->a, en) < ARCHIVE_WARN)
		r = out_failed(o, e);
	archive_entry_free(en);
	return r;
}

static int out_content(struct snap_out *o, int fd, const struct snap_part_meta *part,
		       const char *name, struct err *e)
{
	char sum[DIGEST_LEN + 1];
	struct digest d;
	int r = 0;

	digest_begin(&d);
	for (uint64_t at = 0; at < part->bytes && r == 0; at += BLOCK) {
		ssize_t n = fd_pread_all(fd, o->block, BLOCK, (off_t)at);

		if (n <= 0)
			return err_set(e, ERR_IO, n < 0 ? (int)-n : EIO, "%s of the snapshot",
				       name);
		digest_block(&d, at, o->block, (size_t)n);
		if (archive_write_data(o->a, o->block, (size_t)n) != n)
			return out_failed(o, e);
		r = meter_add(&o->meter, (uint64_t)n);
	}
	if (r < 0)
		return err_set(e, ERR_UNAVAILABLE, -r, "saving the snapshot");
	digest_end(&d, part->bytes, sum);
	if (strcmp(sum, part->sum) == 0)
		return 0;
	(void)err_set(
		e, ERR_CONFLICT, 0,
		"%s of the snapshot is damaged: it has another checksum than when it was made",
		name);
	return -EBADMSG;
}

static int out_part(struct snap_out *o, int dirfd, int i, struct err *e)
{
	const struct snap_part_meta *part = &o->meta->part[i];
	const char *name = snap_part_names[i];
	AUTO_FD fd = openat(dirfd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;
	int r;

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_set(e, ERR_IO, errno, "%s of the snapshot", name);
	if ((uint64_t)st.st_size != part->bytes)
		return err_set(e, ERR_CONFLICT, EBADMSG, "%s of the snapshot has another length",
			       name);
	r = out_header(o, name, part->bytes, fd, e);
	return r < 0 ? r : out_content(o, fd, part, name, e);
}

static int out_meta(struct snap_out *o, struct err *e)
{
	AUTO_BUF b;
	int r;

	buf_init(&b, SNAP_META_MAX);
	r = snap_meta_print(o->meta, false, &b);
	if (r < 0)
		return err_set(e, ERR_INTERNAL, -r, SNAP_META);
	r = out_header(o, SNAP_META, b.len, -1, e);
	if (r == 0 && archive_write_data(o->a, b.p, b.len) != (la_ssize_t)b.len)
		r = out_failed(o, e);
	return r;
}

int snapfile_write(int dirfd, const struct snap_meta *m, int out, const struct progress *p,
		   struct err *e)
{
	struct snap_out *o = calloc(1, sizeof(*o));
	int r;

	if (!o)
		return err_set(e, ERR_INTERNAL, ENOMEM, "packing");
	o->meta = m;
	o->fd = out;
	meter_begin(&o->meter, p, m);
	r = out_start(o, e);
	if (r == 0)
		r = out_meta(o, e);
	for (int i = 0; i < SNAP_PARTS && r == 0; i++)
		if (m->part[i].there)
			r = out_part(o, dirfd, i, e);
	o->broken = r < 0;
	if (o->a && r < 0)
		(void)archive_write_fail(o->a); /* as in pack.c */
	else if (o->a && archive_write_close(o->a) != ARCHIVE_OK)
		r = out_failed(o, e);
	if (o->a)
		(void)archive_write_free(o->a);
	free(o);
	return r;
}

/* --- reading --- */
struct snap_in {
	struct archive *a;
	ssize_t (*read)(void *arg, void *p, size_t n);
	void *arg;
	int error; /* negative errno of read */
	unsigned char block[BLOCK];
};

static la_ssize_t read_cb(struct archive *a, void *arg, const void **ret)
{
	struct snap_in *in = arg;
	ssize_t n = in->read(in->arg, in->block, sizeof(in->block));

	if (n < 0) {
		in->error = (int)n;
		archive_set_error(a, (int)-n, "reading");
		return -1;
	}
	*ret = in->block;
	return (la_ssize_t)n;
}

static int in_failed(const struct snap_in *in, const char *where, struct err *e)
{
	const char *why = archive_error_string(in->a);

	if (in->error)
		return err_set(e, ERR_IO, -in->error, "reading the file");
	if (archive_errno(in->a) == ENOMEM)
		return err_set(e, ERR_INTERNAL, ENOMEM, "reading the file");
	(void)err_set(e, ERR_INVALID, 0, "the file is no whole snapshot: %s%.300s", where,
		      why ? why : "it is broken");
	return -EBADMSG;
}

static int refuse(struct err *e, const char *name, const char *why)
{
	(void)err_set(e, ERR_INVALID, 0, "the file is no whole snapshot: %s %s", name, why);
	return -EBADMSG;
}

/* The next member, which must be a plain file NAME of BYTES bytes (0: any number up to SNAP_META_MAX). */
static int next_member(struct snap_in *in, const char *name, uint64_t *bytes, struct err *e)
{
	struct archive_entry *en;
	int r = archive_read_next_header(in->a, &en);
	const char *is;
	int64_t size;

	if (r == ARCHIVE_EOF)
		return refuse(e, name, "is missing");
	if (r != ARCHIVE_OK && r != ARCHIVE_WARN)
		return in_failed(in, "", e);
	is = archive_entry_pathname(en);
	size = archive_entry_size(en);
	if (!is || strcmp(is, name) != 0)
		return refuse(e, name, "is not where it belongs");
	if (archive_entry_filetype(en) != AE_IFREG || archive_entry_hardlink(en) ||
	    archive_entry_symlink(en))
		return refuse(e, name, "is no plain file");
	if (size < 0 || (*bytes ? (uint64_t)size != *bytes : size > (int64_t)SNAP_META_MAX))
		return refuse(e, name, "has another length than it should");
	*bytes = (uint64_t)size;
	return 0;
}

static int read_meta(struct snap_in *in, struct snap_meta *meta, struct err *e)
{
	AUTO_BUF b;
	uint64_t bytes = 0;
	la_ssize_t n;
	int r = next_member(in, SNAP_META, &bytes, e);

	buf_init(&b, SNAP_META_MAX);
	if (r == 0 && buf_reserve(&b, (size_t)bytes + 1) < 0)
		r = err_set(e, ERR_INTERNAL, ENOMEM, SNAP_META);
	if (r < 0)
		return r;
	n = archive_read_data(in->a, b.p, (size_t)bytes);
	if (n != (la_ssize_t)bytes)
		return in_failed(in, SNAP_META ": ", e);
	r = snap_meta_parse(b.p, (size_t)bytes, meta, e);
	return r < 0 ? err_wrap(e, "the file cannot be loaded") : 0;
}

int snapfile_open(ssize_t (*read)(void *arg, void *p, size_t n), void *arg, struct snap_in **ret,
		  struct snap_meta *meta, struct err *e)
{
	struct snap_in *in = calloc(1, sizeof(*in));
	int r = 0;

	if (!in)
		return err_set(e, ERR_INTERNAL, ENOMEM, "reading the file");
	in->read = read;
	in->arg = arg;
	in->a = archive_read_new();
	if (!in->a)
		r = err_set(e, ERR_INTERNAL, ENOMEM, "reading the file");
	else if (archive_read_support_filter_zstd(in->a) != ARCHIVE_OK ||
		 archive_read_support_format_tar(in->a) != ARCHIVE_OK ||
		 archive_read_open(in->a, in, NULL, read_cb, NULL) != ARCHIVE_OK)
		r = in_failed(in, "", e);
	if (r == 0)
		r = read_meta(in, meta, e);
	if (r == 0)
		*ret = in;
	else
		snapfile_close(in);
	return r;
}

/* What is zero stays a hole. */
static int take_content(struct snap_in *in, int fd, const char *name, uint64_t bytes,
			struct meter *t, struct err *e)
{
	int64_t end = 0;

	if (ftruncate(fd, (off_t)bytes) < 0)
		return err_set(e, ERR_IO, errno, "%s", name);
	for (;;) {
		const void *p;
		int64_t at;
		size_t n;
		int r = archive_read_data_block(in->a, &p, &n, &at);

		if (r == ARCHIVE_EOF)
			return 0;
		if (r != ARCHIVE_OK && r != ARCHIVE_WARN)
			return in_failed(in, "", e);
		if (at < end || n > bytes || (uint64_t)at > bytes - n)
			return refuse(e, name, "has bytes where none can be");
		r = digest_is_zero(p, n) ? 0 : fd_pwrite_all(fd, p, n, at);
		if (r < 0)
			return err_set(e, ERR_IO, -r, "%s", name);
		r = meter_add(t, (uint64_t)at + n - (uint64_t)end);
		if (r < 0)
			return err_set(e, ERR_UNAVAILABLE, -r, "loading the snapshot");
		end = at + (int64_t)n;
	}
}

static int check_disk(int fd, struct err *e)
{
	unsigned char head[QCOW2_HEAD];
	ssize_t n = fd_pread_all(fd, head, sizeof(head), 0);

	return n < 0 ? err_set(e, ERR_IO, (int)-n, "the disk") : qcow2_check(head, (size_t)n, e);
}

static int take_part(struct snap_in *in, const struct snap_meta *meta, int i, int dirfd,
		     struct meter *t, struct err *e)
{
	const struct snap_part_meta *part = &meta->part[i];
	const char *name = snap_part_names[i];
	AUTO_FD fd = openat(dirfd, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	char sum[DIGEST_LEN + 1];
	uint64_t bytes;
	int r;

	if (fd < 0)
		return err_set(e, ERR_IO, errno, "%s", name);
	r = take_content(in, fd, name, part->bytes, t, e);
	if (r < 0)
		return r;
	r = digest_file(fd, t->p ? t->p->cancel : NULL, &bytes, sum);
	if (r < 0)
		return err_set(e, r == -EINTR ? ERR_UNAVAILABLE : ERR_IO, -r, "%s", name);
	if (bytes != part->bytes || strcmp(sum, part->sum) != 0)
		return refuse(e, name, "has another checksum than it should");
	return i == SNAP_DISK ? check_disk(fd, e) : 0;
}

int snapfile_take(struct snap_in *in, const struct snap_meta *meta, int dirfd, bool disk_only,
		  const struct progress *p, struct err *e)
{
	struct archive_entry *en;
	struct meter t;
	int r = 0;

	meter_begin(&t, p, meta);
	for (int i = 0; i < SNAP_PARTS && r == 0; i++) {
		uint64_t bytes = meta->part[i].bytes;

		if (!meta->part[i].there)
			continue;
		r = next_member(in, snap_part_names[i], &bytes, e);
		if (r == 0 && (!disk_only || i == SNAP_DISK))
			r = take_part(in, meta, i, dirfd, &t, e);
		else if (r == 0)
			r = meter_add(&t, bytes) < 0
				    ? err_set(e, ERR_UNAVAILABLE, EINTR, "loading the snapshot")
				    : 0;
	}
	if (r < 0)
		return r;
	r = archive_read_next_header(in->a, &en);
	if (r == ARCHIVE_EOF)
		return 0;
	if (r == ARCHIVE_OK || r == ARCHIVE_WARN)
		return refuse(e, "what comes behind its last part", "does not belong to it");
	return in_failed(in, "", e);
}

void snapfile_close(struct snap_in *in)
{
	if (!in)
		return;
	if (in->a)
		(void)archive_read_free(in->a);
	free(in);
}
