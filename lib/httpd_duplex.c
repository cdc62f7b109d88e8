/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "httpd_int.h"

/*
 * Streamed answers that begin before the request's body has ended. The library takes none then, so they go past it: it reads on and
 * gives the body to the sink, and the answer is written here. It knows of no answer and so can serve no other request on this
 * connection, which ends with the answer. What is left of the body is then dropped for a while, since a client that reads late would else
 * find a reset instead of the answer (RFC 9112 §9.6).
 *
 * The client's socket is already watched for its end; writability joins that watch. PULL is only asked from the loop.
 */

#define PIECE	 (16U << 10)
#define OUT_MAX	 (512U << 10) /* a head of the pool's size, and a piece */
#define LINGER_S 30
#define NS_PER_S 1000000000LL

static bool may_have_length(const struct httpd_exchange *x)
{
	return x->status != 204 && x->status != 304;
}

static bool has_body(const struct httpd_exchange *x)
{
	return may_have_length(x) && strcmp(x->method, "HEAD") != 0;
}

static bool is_chunked(const struct httpd_req *r)
{
	return r->x.length < 0 && has_body(&r->x) && httpd_is_http11(r);
}

/* --- what is written --- */

static enum MHD_Result on_header(void *cls, enum MHD_ValueKind kind, const char *name,
				 const char *value)
{
	(void)kind;
	return buf_addf(cls, "%s: %s\r\n", name, value) < 0 ? MHD_NO : MHD_YES;
}

static int put_head(struct httpd_req *r)
{
	struct httpd_exchange *x = &r->x;
	struct MHD_Response *m = httpd_make_response(r);
	int ok = m ? 0 : -ENOMEM;

	if (ok == 0)
		ok = buf_addf(&x->out, "HTTP/1.1 %d %s\r\nConnection: close\r\n", x->status,
			      MHD_get_reason_phrase_for((unsigned)x->status));
	if (ok == 0 && is_chunked(r))
		ok = buf_adds(&x->out, "Transfer-Encoding: chunked\r\n");
	else if (ok == 0 && x->length >= 0 && may_have_length(x))
		ok = buf_addf(&x->out, "Content-Length: %lld\r\n", (long long)x->length);
	if (ok == 0)
		(void)MHD_get_response_headers(m, on_header,
					       &x->out); /* cut: the next line fails */
	if (ok == 0)
		ok = buf_adds(&x->out, "\r\n");
	if (m)
		MHD_destroy_response(m);
	return ok;
}

/* The next piece into OUT. What PULL says, or a negative errno below HTTPD_PULL_ABORT. */
static ssize_t put_piece(struct httpd_req *r)
{
	static char piece[PIECE];
	struct httpd_exchange *x = &r->x;
	bool chunked = is_chunked(r);
	ssize_t n;
	int ok = 0;

	x->in_callback = true;
	n = x->pull(x->pull_arg, piece, sizeof(piece));
	x->in_callback = false;
	if (n > 0 && !has_body(x))
		n = HTTPD_PULL_END; /* none of it may be sent */
	if (n == HTTPD_PULL_END)
		ok = chunked ? buf_adds(&x->out, "0\r\n\r\n") : 0;
	if (n > 0 && chunked)
		ok = buf_addf(&x->out, "%zx\r\n", (size_t)n);
	if (n > 0 && ok == 0)
		ok = buf_add(&x->out, piece, (size_t)n);
	if (n > 0 && ok == 0 && chunked)
		ok = buf_adds(&x->out, "\r\n");
	return ok < 0 ? HTTPD_PULL_ABORT : n;
}

/* --- the connection --- */

/* No answer goes on. */
static void leave(struct httpd_req *r)
{
	loop_disarm(&r->x.push);
	loop_disarm(&r->x.stall);
	r->hup.fn = r->x.on_hup_event;
	if (r->hup.loop)
		ignore_result(loop_set(&r->hup, r->eof ? 0 : EPOLLRDHUP));
	r->x.reply = HTTPD_REPLY_EARLY;
}

static void cut(struct httpd_req *r)
{
	leave(r);
	httpd_reset(r);
}

static void finish(struct httpd_req *r)
{
	leave(r);
	(void)shutdown(r->fd, SHUT_WR);
	r->x.on_hup = NULL;
	r->x.sink = NULL;
	httpd_end_now(r);
	loop_arm(r->h->loop, &r->deadline, LINGER_S * NS_PER_S);
	httpd_resume(r);
}

static void limit(struct httpd_req *r)
{
	if (r->timeout_s)
		loop_arm(r->h->loop, &r->x.stall, (int64_t)r->timeout_s * NS_PER_S);
}

/* The library only sees the body, and would cut a client that sends none of it while it is sent an answer. Its limit begins
 * anew when there was none. */
static void library_limit(struct httpd_req *r)
{
	(void)MHD_set_connection_option(r->con, MHD_CONNECTION_OPTION_TIMEOUT, 0U);
	(void)MHD_set_connection_option(r->con, MHD_CONNECTION_OPTION_TIMEOUT, r->timeout_s);
}

/* False when the client has gone. */
static bool flush(struct httpd_req *r)
{
	struct buf *out = &r->x.out;
	size_t before = out->len;
	bool good = true;

	while (out->len) {
		ssize_t n = send(r->fd, out->p, out->len, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			good = errno == EAGAIN;
			break;
		}
		buf_drop(out, (size_t)n);
	}
	if (out->len < before) {
		limit(r);
		library_limit(r);
	}
	return good;
}

static void turn(struct httpd_req *r)
{
	struct httpd_exchange *x = &r->x;
	ssize_t n = 1;

	while (!r->gone && flush(r) && x->out.len == 0 && !x->pulled && n > 0) {
		n = put_piece(r);
		x->pulled = n == HTTPD_PULL_END;
		if (x->pulled)
			n = 1; /* what it has put is to be sent */
	}
	if (r->gone || n == HTTPD_PULL_ABORT || !flush(r)) {
		cut(r);
	} else if (x->pulled && x->out.len == 0) {
		finish(r);
	} else {
		unsigned events = (r->eof ? 0U : EPOLLRDHUP) | (x->out.len ? EPOLLOUT : 0U);

		if (!x->out.len)
			loop_disarm(&x->stall); /* it is the answer that takes its time */
		else if (!x->stall.loop)
			limit(r); /* the client has taken nothing of it yet */
		if (!r->hup.loop || loop_set(&r->hup, events) < 0)
			cut(r);
	}
}

static void on_push(struct loop_timer *t)
{
	turn(t->arg);
}

static void on_stall(struct loop_timer *t)
{
	cut(t->arg);
}

static void on_event(struct loop_watch *w, uint32_t events)
{
	struct httpd_req *r = w->arg;

	if (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR))
		r->x.on_hup_event(w, events);
	if (r->x.reply == HTTPD_REPLY_DUPLEX && r->hup.loop)
		turn(r);
}

static void begin(struct httpd_req *r)
{
	struct httpd_exchange *x = &r->x;

	buf_init(&x->out, OUT_MAX);
	x->push = (struct loop_timer)LOOP_TIMER_INIT;
	x->stall = x->push;
	x->push.fn = on_push;
	x->stall.fn = on_stall;
	x->push.arg = x->stall.arg = r;
	x->on_hup_event = r->hup.fn;
	r->hup.fn = on_event;
	if (put_head(r) < 0)
		r->gone = true; /* told from the loop, like all that comes */
	x->reply = HTTPD_REPLY_DUPLEX;
	loop_arm(r->h->loop, &x->push, 0);
}

void httpd_in_duplex(struct httpd_req *r)
{
	r->x.duplex = begin;
}
