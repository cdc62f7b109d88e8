/* SPDX-License-Identifier: Apache-2.0 */
#include <cJSON.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "fd.h"
#include "httpd_int.h"
#include "jsn.h"

/* What handlers call: reading the request, and answering it. When the answer goes out is httpd.c's
 * theory. */

/* --- reading --- */
void *httpd_server_arg(const struct httpd_req *r)
{
	return r->h->c.arg;
}

const char *httpd_method(const struct httpd_req *r)
{
	return r->x.method;
}

const char *httpd_path(const struct httpd_req *r)
{
	return r->x.target.path ? r->x.target.path : "";
}

const char *httpd_segment(const struct httpd_req *r, unsigned i)
{
	return i < r->x.target.nsegs ? r->x.target.segs[i] : NULL;
}

const char *httpd_query(const struct httpd_req *r, const char *name)
{
	for (unsigned i = 0; i < r->x.target.nparams; i++)
		if (!strcmp(r->x.target.params[i].name, name))
			return r->x.target.params[i].value;
	return NULL;
}

const char *httpd_header(const struct httpd_req *r, const char *name)
{
	return MHD_lookup_connection_value(r->con, MHD_HEADER_KIND, name);
}

const char *httpd_body_data(const struct httpd_req *r, size_t *ret_len)
{
	*ret_len = r->x.body.len;
	return r->x.body.p ? r->x.body.p : "";
}

int64_t httpd_content_length(const struct httpd_req *r)
{
	const char *s = httpd_header(r, "Content-Length");
	int64_t v = 0;

	if (!s || !*s)
		return -1;
	for (; *s;
	     s++) { /* the library has refused anything but digits, and what overflows 64 bits */
		if (*s < '0' || *s > '9')
			return -1;
		if (v > (INT64_MAX - 9) / 10)
			return INT64_MAX;
		v = v * 10 + (*s - '0');
	}
	return v;
}

void httpd_on_end(struct httpd_req *r, void (*fn)(void *arg), void *arg)
{
	r->x.on_end = fn;
	r->x.end_arg = arg;
}

void httpd_end_now(struct httpd_req *r)
{
	void (*fn)(void *arg) = r->x.on_end;

	r->x.on_end = NULL;
	if (fn)
		fn(r->x.end_arg);
}

void httpd_on_hup(struct httpd_req *r, void (*fn)(void *arg), void *arg)
{
	r->x.on_hup = fn;
	r->x.hup_arg = arg;
}

void httpd_set_sink(struct httpd_req *r, ssize_t (*sink)(void *arg, const char *p, size_t n),
		    void *arg)
{
	r->x.sink = sink;
	r->x.sink_arg = arg;
}

void httpd_set_timeout(struct httpd_req *r, unsigned seconds)
{
	if (r->timeout_s == seconds)
		return;
	(void)MHD_set_connection_option(r->con, MHD_CONNECTION_OPTION_TIMEOUT, seconds);
	r->timeout_s = seconds;
}

/* --- the words of the status line --- */
/*
 * The library's own table of them holds a relocated pointer for each of 110, most of which nobody
 * here answers: 6 KB of every program. So these two public functions of it are defined here; this
 * file is linked before the archive, whose member with the others is then left out.
 */
static const char phrases[] = "100Continue\0"
			      "101Switching Protocols\0"
			      "200OK\0"
			      "201Created\0"
			      "202Accepted\0"
			      "204No Content\0"
			      "206Partial Content\0"
			      "304Not Modified\0"
			      "400Bad Request\0"
			      "401Unauthorized\0"
			      "403Forbidden\0"
			      "404Not Found\0"
			      "405Method Not Allowed\0"
			      "408Request Timeout\0"
			      "409Conflict\0"
			      "410Gone\0"
			      "411Length Required\0"
			      "413Content Too Large\0"
			      "414URI Too Long\0"
			      "416Range Not Satisfiable\0"
			      "417Expectation Failed\0"
			      "422Unprocessable Content\0"
			      "426Upgrade Required\0"
			      "429Too Many Requests\0"
			      "431Request Header Fields Too Large\0"
			      "500Internal Server Error\0"
			      "501Not Implemented\0"
			      "502Bad Gateway\0"
			      "503Service Unavailable\0"
			      "504Gateway Timeout\0"
			      "505HTTP Version Not Supported\0"
			      "507Insufficient Storage\0";

static const char *phrase_of(unsigned code)
{
	for (const char *p = phrases; *p; p += strlen(p) + 1)
		if ((unsigned)(p[0] - '0') * 100 + (unsigned)(p[1] - '0') * 10 +
			    (unsigned)(p[2] - '0') ==
		    code)
			return p + 3;
	return NULL;
}

const char *MHD_get_reason_phrase_for(unsigned code)
{
	const char *p = phrase_of(code);

	return p ? p : "Unknown";
}

size_t MHD_get_reason_phrase_len_for(unsigned code)
{
	const char *p = phrase_of(code);

	return p ? strlen(p) : 0;
}

/* --- answering --- */
bool httpd_has_reply(const struct httpd_req *r)
{
	return r->x.reply != HTTPD_REPLY_NONE;
}

int httpd_add_header(struct httpd_req *r, const char *name, const char *value)
{
	struct httpd_exchange *x = &r->x;
	char *n, *v;

	for (const char *p = value; *p; p++)
		if ((unsigned char)*p < 0x20 || *p == 0x7f)
			return -EINVAL;
	if (x->nheaders == HTTPD_HEADERS_MAX)
		return -ENOSPC;
	n = strdup(name);
	v = strdup(value);
	if (!n || !v) {
		free(n);
		free(v);
		return -ENOMEM;
	}
	x->headers[x->nheaders].name = n;
	x->headers[x->nheaders++].value = v;
	return 0;
}

void httpd_reply_done(struct httpd_exchange *x)
{
	for (unsigned i = 0; i < x->nheaders; i++) {
		free(x->headers[i].name);
		free(x->headers[i].value);
	}
	x->nheaders = 0;
	free(x->data);
	x->data = NULL;
	loop_disarm(&x->push);
	loop_disarm(&x->stall);
	buf_done(&x->out);
	if (x->reply == HTTPD_REPLY_FILE)
		fd_close(&x->file);
}

/* The answer is complete in R->x: sends it on its way when no handler is on the stack to do that
 * afterwards. */
void httpd_settle(struct httpd_req *r)
{
	struct httpd_exchange *x = &r->x;

	if (x->in_callback)
		return;
	if (!x->body_done) /* a STREAM body is still coming, and the library takes no answer now */
		httpd_reply_early(r);
	httpd_resume(r);
}

/* DATA (malloc) is owned from here on. */
static void reply_owned(struct httpd_req *r, int status, const char *type, char *data, size_t n)
{
	struct httpd_exchange *x = &r->x;

	if (x->reply != HTTPD_REPLY_NONE || x->ended) {
		free(data);
		return;
	}
	x->data = data;
	x->data_len = n;
	x->status = status;
	x->reply = HTTPD_REPLY_READY;
	if (n && type && httpd_add_header(r, "Content-Type", type) < 0)
		x->status = 500;
	httpd_settle(r);
}

void httpd_reply(struct httpd_req *r, int status, const char *content_type, const void *p, size_t n)
{
	char *copy = malloc(n + 1);

	if (!copy) {
		reply_owned(r, 500, NULL, NULL, 0);
		return;
	}
	if (n)
		memcpy(copy, p, n);
	reply_owned(r, status, content_type, copy, n);
}

void httpd_reply_json(struct httpd_req *r, int status, struct cJSON *j)
{
	char *s = j ? cJSON_PrintUnformatted(j) : NULL;

	cJSON_Delete(j);
	if (!s) {
		static const char oom[] = "{\"detail\":\"out of memory\"}";

		httpd_reply(r, 500, "application/json", oom, sizeof(oom) - 1);
		return;
	}
	reply_owned(r, status, "application/json", s, strlen(s));
}

void httpd_reply_error(struct httpd_req *r, int status, const char *fmt, ...)
{
	char text[5120] = ""; /* a path of 4096 bytes and what went wrong with it */
	cJSON *j = cJSON_CreateObject();
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap); /* cut is fine */
	va_end(ap);
	if (j && !jsn_add_text(j, "detail", text, strlen(text)))
		jsn_free(&j);
	httpd_reply_json(r, status, j);
}

void httpd_reply_stream(struct httpd_req *r, int status, const char *content_type, int64_t length,
			ssize_t (*pull)(void *arg, char *p, size_t max), void *arg)
{
	struct httpd_exchange *x = &r->x;

	if (x->reply != HTTPD_REPLY_NONE || x->ended)
		return;
	x->status = status;
	x->pull = pull;
	x->pull_arg = arg;
	x->length = length;
	x->reply = HTTPD_REPLY_STREAM;
	if (content_type && httpd_add_header(r, "Content-Type", content_type) < 0)
		r->gone = true;
	httpd_settle(r);
}

void httpd_wake(struct httpd_req *r)
{
	bool duplex = r->x.reply == HTTPD_REPLY_DUPLEX;

	if (duplex)
		loop_arm(r->h->loop, &r->x.push, 0);
	if (!duplex || !r->x.body_done)
		httpd_resume(r);
}

/* --- giving answers to the library --- */
static ssize_t on_pull(void *cls, uint64_t pos, char *p, size_t max)
{
	struct httpd_req *r = cls;
	ssize_t n;

	(void)pos;
	if (r->gone || r->h->stopping)
		return MHD_CONTENT_READER_END_WITH_ERROR;
	r->x.in_callback = true;
	n = r->x.pull(r->x.pull_arg, p, max);
	r->x.in_callback = false;
	if (n > 0)
		return n;
	if (n == HTTPD_PULL_END)
		return MHD_CONTENT_READER_END_OF_STREAM;
	if (n != HTTPD_PULL_LATER)
		return MHD_CONTENT_READER_END_WITH_ERROR;
	httpd_suspend(r);
	return 0;
}

#define PULL_BLOCK \
	65536 /* only answers with a known length use it; chunks lie in the connection's pool */

/* The library's object for the answer that is ready; what it takes over is no longer ours. */
static struct MHD_Response *make_body(struct httpd_req *r)
{
	struct httpd_exchange *x = &r->x;
	static char nothing[1];
	struct MHD_Response *m;

	if (x->reply == HTTPD_REPLY_STREAM)
		return MHD_create_response_from_callback(x->length < 0 ? MHD_SIZE_UNKNOWN
								       : (uint64_t)x->length,
							 PULL_BLOCK, on_pull, r, NULL);
	if (x->make)
		return x->make(r);
	m = MHD_create_response_from_buffer(x->data_len, x->data ? x->data : nothing,
					    x->data ? MHD_RESPMEM_MUST_FREE
						    : MHD_RESPMEM_PERSISTENT);
	if (m)
		x->data = NULL;
	return m;
}

struct MHD_Response *httpd_make_response(struct httpd_req *r)
{
	struct httpd_exchange *x = &r->x;
	struct MHD_Response *m = make_body(r);

	if (!m)
		return NULL;
	for (unsigned i = 0; i < x->nheaders; i++)
		if (MHD_add_response_header(m, x->headers[i].name, x->headers[i].value) !=
		    MHD_YES) {
			MHD_destroy_response(m);
			return NULL;
		}
	if (x->more)
		x->more(x->more_arg, m);
	return m;
}

enum MHD_Result httpd_queue(struct httpd_req *r)
{
	struct MHD_Response *m = httpd_make_response(r);
	enum MHD_Result ok;

	if (!m)
		return MHD_NO;
	r->x.reply = HTTPD_REPLY_QUEUED;
	if (r->x.status == MHD_HTTP_SWITCHING_PROTOCOLS)
		loop_del(&r->hup); /* the socket will be somebody else's */
	ok = MHD_queue_response(r->con, (unsigned)r->x.status, m);
	MHD_destroy_response(m);
	return ok;
}

/* Written in one piece: nothing else has been sent on this connection since the last answer, so
 * that the socket's buffer has room for these few hundred bytes; where it has not, the client only
 * sees the end of the connection. */
void httpd_reply_early(struct httpd_req *r)
{
	struct httpd_exchange *x = &r->x;
	struct buf b;
	int ok;

	if (x->reply == HTTPD_REPLY_STREAM && x->duplex) {
		x->duplex(r);
		return;
	}
	buf_init(&b, 64U << 10);
	if (x->reply != HTTPD_REPLY_READY) /* cannot be sent from here */
		x->status = 500;
	if (x->reply == HTTPD_REPLY_FILE)
		fd_close(&x->file);
	ok = buf_addf(&b, "HTTP/1.1 %d %s\r\nConnection: close\r\nContent-Length: %zu\r\n",
		      x->status, MHD_get_reason_phrase_for((unsigned)x->status), x->data_len);
	for (unsigned i = 0; ok == 0 && i < x->nheaders; i++)
		if (strcasecmp(x->headers[i].name, "Connection"))
			ok = buf_addf(&b, "%s: %s\r\n", x->headers[i].name, x->headers[i].value);
	if (ok == 0)
		ok = buf_adds(&b, "\r\n");
	if (ok == 0)
		ok = buf_add(&b, x->data ? x->data : "", x->data_len);
	x->reply = HTTPD_REPLY_EARLY;
	if (ok == 0 && send(r->fd, b.p, b.len, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)b.len)
		(void)shutdown(r->fd, SHUT_WR);
	else
		(void)shutdown(r->fd, SHUT_RDWR);
	buf_done(&b);
	httpd_drain_soon(r);
}
