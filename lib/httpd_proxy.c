/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#include <sys/socket.h>

#include "httpd_int.h"

/* What only a server needs that hands its requests on to another: all of what came, answers with any headers, and an end that cannot be
 * taken for the end of an answer. */

const char *httpd_target(const struct httpd_req *r)
{
	return r->x.target.text;
}

struct each {
	int (*fn)(void *arg, const char *name, const char *value);
	void *arg;
	int result;
};

static enum MHD_Result on_each(void *cls, enum MHD_ValueKind kind, const char *name,
			       const char *value)
{
	struct each *e = cls;

	(void)kind;
	e->result = e->fn(e->arg, name, value ? value : "");
	return e->result ? MHD_NO : MHD_YES;
}

int httpd_each_header(struct httpd_req *r,
		      int (*fn)(void *arg, const char *name, const char *value), void *arg)
{
	struct each e = { .fn = fn, .arg = arg };

	(void)MHD_get_connection_values(r->con, MHD_HEADER_KIND, on_each, &e);
	return e.result;
}

void httpd_on_headers(struct httpd_req *r, void (*fn)(void *arg, struct MHD_Response *m), void *arg)
{
	r->x.more = fn;
	r->x.more_arg = arg;
}

bool httpd_put_header(struct MHD_Response *m, const char *name, const char *value)
{
	return MHD_add_response_header(m, name, value) == MHD_YES;
}

/*
 * The library shuts a connection down before it closes it, and an answer without a length ends with just that. A TCP socket that is
 * connected to nowhere sends a reset at once (Linux: tcp_disconnect); what the library does with it afterwards reaches nobody.
 */
void httpd_reset(struct httpd_req *r)
{
	const struct sockaddr nowhere = { .sa_family = AF_UNSPEC };

	r->gone = true;
	(void)connect(r->fd, &nowhere, sizeof(nowhere));
	httpd_resume(r);
}
