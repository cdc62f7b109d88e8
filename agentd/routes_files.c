/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "app.h"
#include "fsop.h"
#include "lib/fd.h"
#include "lib/str.h"
#include "limits.h"
#include "routes_files_head.h"

/*
 * GET and HEAD /v1/files: one regular file, whole or a range of it.
 *
 * The size that stat(2) tells is right for large files only: those below /proc claim to be empty,
 * those below /sys to have a page. So the first LIMIT_FILE_HEAD bytes are read before anything is
 * answered. Where that was all, they are the answer, and their number is the size. A larger file
 * goes out piece by piece as the client takes it. One that claims to be empty and is larger than that
 * is read to its end in chunks, without a length.
 *
 * Nothing but a regular file is opened: a FIFO would wait for its other end, and opening some
 * devices does something. The check comes before open(2), and once more behind it, for the file may
 * be another one by then. O_NONBLOCK keeps a lease (fcntl(2)) from delaying us.
 */

struct chunks { /* a file of unknown size */
	int fd; /* owned */
	size_t n, at;
	char first[];
};

static void free_chunks(void *arg)
{
	struct chunks *c = arg;

	fd_close(&c->fd);
	free(c);
}

static ssize_t pull(void *arg, char *p, size_t max)
{
	struct chunks *c = arg;
	ssize_t k;

	if (c->at < c->n) {
		size_t n = c->n - c->at < max ? c->n - c->at : max;

		memcpy(p, c->first + c->at, n);
		c->at += n;
		return (ssize_t)n;
	}
	do
		k = read(c->fd, p, max);
	while (k < 0 && errno == EINTR);
	if (k > 0)
		return k;
	/* nothing more now, in files that others feed, is the end: what would wake us? */
	return k == 0 || errno == EAGAIN ? HTTPD_PULL_END : HTTPD_PULL_ABORT;
}

/* Opens PATH, if it is a regular file; else a negative errno, -ENXIO for what is of another kind. */
static int open_regular(const char *path, struct stat *st)
{
	AUTO_FD fd = -1;

	for (int opened = 0;; opened++) {
		if ((opened ? fstat(fd, st) : stat(path, st)) < 0)
			return -errno;
		if (S_ISDIR(st->st_mode))
			return -EISDIR;
		if (!S_ISREG(st->st_mode))
			return -ENXIO;
		if (opened)
			return fd_take(&fd);
		fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
		if (fd < 0)
			return -errno;
	}
}

/* Up to MAX bytes from where FD stands; *RET_END when that was the end. A negative errno. */
static ssize_t read_head(int fd, char *p, size_t max, bool *ret_end)
{
	size_t n = 0;

	*ret_end = false;
	while (n < max) {
		ssize_t k = read(fd, p + n, max - n);

		if (k < 0 && errno == EINTR)
			continue;
		if (k < 0 && errno != EAGAIN)
			return -errno;
		if (k <= 0) {
			*ret_end = true;
			break;
		}
		n += (size_t)k;
	}
	return (ssize_t)n;
}

static bool add(struct httpd_req *r, const char *name, const char *value)
{
	return httpd_add_header(r, name, value) == 0;
}

/* What every answer about the file carries. */
static bool describe(struct httpd_req *r, const char *path, const struct stat *st)
{
	char etag[FILES_ETAG_MAX], date[FILES_DATE_MAX], name[FILES_DISPOSITION_MAX];
	char mode[16], uid[16], gid[16];
	const char *slash = strrchr(path, '/');

	files_etag(st, etag);
	files_date(st->st_mtim.tv_sec, date);
	files_disposition(slash ? slash + 1 : path, name);
	(void)snprintf(mode, sizeof(mode), "%04o", (unsigned)st->st_mode & 07777);
	(void)snprintf(uid, sizeof(uid), "%lu", (unsigned long)st->st_uid);
	(void)snprintf(gid, sizeof(gid), "%lu", (unsigned long)st->st_gid);
	return add(r, "ETag", etag) && add(r, "Last-Modified", date) &&
	       add(r, "Accept-Ranges", "bytes") && add(r, "Content-Disposition", name) &&
	       add(r, "X-File-Mode", mode) && add(r, "X-File-Uid", uid) &&
	       add(r, "X-File-Gid", gid);
}

/* RFC 9110 §13.2.2: If-None-Match, else If-Modified-Since, which only ever repeats our own date. */
static bool unchanged(struct httpd_req *r, const struct stat *st)
{
	const char *tags = httpd_header(r, "If-None-Match");
	const char *since = httpd_header(r, "If-Modified-Since");
	char etag[FILES_ETAG_MAX], date[FILES_DATE_MAX];

	files_etag(st, etag);
	files_date(st->st_mtim.tv_sec, date);
	return tags ? files_etag_listed(tags, etag) : since && !strcmp(since, date);
}

/* The Range field, unless If-Range names another version. */
static const char *wanted_range(struct httpd_req *r, const struct stat *st)
{
	const char *range = httpd_header(r, "Range"), *only = httpd_header(r, "If-Range");
	char etag[FILES_ETAG_MAX], date[FILES_DATE_MAX];

	if (!range || !only)
		return range;
	files_etag(st, etag);
	files_date(st->st_mtim.tv_sec, date);
	return !strcmp(only, etag) || !strcmp(only, date) ? range : NULL;
}

static const char type[] = "application/octet-stream";

/* SIZE bytes: those at P, or when P is NULL those of FD, which is consumed. */
static void answer(struct httpd_req *r, const struct stat *st, const char *p, int fd, uint64_t size)
{
	uint64_t first = 0, len = size;
	int part = files_range(wanted_range(r, st), size, &first, &len);
	char range[80];

	if (part)
		ignore_result(str_format(range, sizeof(range),
					 part < 0 ? "bytes */%llu" : "bytes %llu-%llu/%llu",
					 (unsigned long long)(part < 0 ? size : first),
					 (unsigned long long)(first + len - 1),
					 (unsigned long long)size));
	if (part && !add(r, "Content-Range", range)) {
		httpd_reply_error(r, 503, "out of memory");
	} else if (part < 0) {
		httpd_reply_error(r, 416, "nothing of this range is in the file: it has %llu bytes",
				  (unsigned long long)size);
	} else if (p) {
		httpd_reply(r, part ? 206 : 200, type, p + first, (size_t)len);
	} else {
		httpd_reply_file(r, part ? 206 : 200, type, fd, first, len);
		return;
	}
	fd_close(&fd);
}

static void answer_chunks(struct httpd_req *r, int fd, const char *p, size_t n)
{
	struct chunks *c = malloc(sizeof(*c) + n);

	if (!c) {
		fd_close(&fd);
		httpd_reply_error(r, 503, "out of memory");
		return;
	}
	c->fd = fd;
	c->n = n;
	c->at = 0;
	memcpy(c->first, p, n);
	if (app_enter(r, free_chunks, c) < 0)
		free_chunks(c);
	else
		httpd_reply_stream(r, 200, type, -1, pull, c);
}

static void send_open(struct httpd_req *r, const char *path, int fd, const struct stat *st)
{
	static char first[LIMIT_FILE_HEAD];
	bool end = false;
	ssize_t n = read_head(fd, first, sizeof(first), &end);

	if (n < 0)
		fsop_fail(r, (int)-n, path);
	else if (!describe(r, path, st))
		httpd_reply_error(r, 503, "out of memory");
	else if (unchanged(r, st))
		httpd_reply(r, 304, NULL, NULL, 0);
	else if (!end && st->st_size == 0) {
		answer_chunks(r, fd, first, (size_t)n);
		return;
	} else if (!end) {
		if (app_enter(r, NULL, NULL) == 0) {
			answer(r, st, NULL, fd, (uint64_t)st->st_size);
			return;
		}
	} else {
		answer(r, st, first, -1, (uint64_t)n);
	}
	fd_close(&fd);
}

void route_files_get(struct httpd_req *r)
{
	struct err e = ERR_INIT;
	struct stat st;
	char *path;
	int fd;

	if (fsop_path_query(r, "path", &path, &e) < 0) {
		httpd_reply_error(r, err_http_status(e.code), "%s", e.msg);
		return;
	}
	fd = open_regular(path, &st);
	if (fd == -ENXIO)
		httpd_reply_error(r, 400, "%s: not a regular file", path);
	else if (fd < 0)
		fsop_fail(r, -fd, path);
	else
		send_open(r, path, fd, &st);
	free(path);
}
