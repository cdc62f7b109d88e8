/* SPDX-License-Identifier: Apache-2.0 */
#include "fd.h"
#include "httpd_int.h"

/* Answers from a file. Apart from the others so that programs without such do not carry the library's part of it. */

static struct MHD_Response *make(struct httpd_req *r)
{
	struct httpd_exchange *x = &r->x;
	struct MHD_Response *m =
		MHD_create_response_from_fd_at_offset64((uint64_t)x->length, x->file, x->file_at);

	if (m)
		x->file = -1;
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
