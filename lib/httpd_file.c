/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "fd.h"
#include "httpd_int.h"

/*
 * Answers from a file. Apart from the others so that programs without such do not carry it.
 *
 * Read and sent in large pieces, not by sendfile(2): when the file has become shorter, the library (0.9.75) takes the 0 that
 * sendfile(2) returns for progress, and tries again as fast as it can, for good.
 */

#define BLOCK (128U << 10)

struct body {
	int fd; /* owned */
	uint64_t at;
};

static ssize_t read_block(void *cls, uint64_t pos, char *p, size_t max)
{
	struct body *b = cls;
	ssize_t n;

	do
		n = pread(b->fd, p, max, (off_t)(b->at + pos));
	while (n < 0 && errno == EINTR);
	return n > 0 ? n : MHD_CONTENT_READER_END_WITH_ERROR;
}

static void free_body(void *cls)
{
	struct body *b = cls;

	fd_close(&b->fd);
	free(b);
}

static struct MHD_Response *make(struct httpd_req *r)
{
	struct httpd_exchange *x = &r->x;
	struct body *b = malloc(sizeof(*b));
	struct MHD_Response *m;

	if (!b)
		return NULL;
	*b = (struct body){ x->file, x->file_at };
	m = MHD_create_response_from_callback((uint64_t)x->length, BLOCK, read_block, b, free_body);
	if (m)
		x->file = -1;
	else
		free(b);
	return m;
}

void httpd_reply_file(struct httpd_req *r, int status, const char *content_type, int fd,
		      uint64_t offset, uint64_t length)
{
	struct httpd_exchange *x = &r->x;

	if (x->reply != HTTPD_REPLY_NONE || x->ended || length > INT64_MAX) {
		fd_close(&fd);
		return;
	}
	x->status = status;
	x->file = fd;
	x->file_at = offset;
	x->make = make;
	x->length = (int64_t)length;
	x->reply = HTTPD_REPLY_FILE;
	if (content_type && httpd_add_header(r, "Content-Type", content_type) < 0)
		r->gone = true;
	httpd_settle(r);
}
