/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "httpd_int.h"

/*
 * Large bodies. The library reads at most half of a connection's pool at a time, 16 KiB, and a GiB in such pieces takes three times
 * as long as it must. A larger pool would cost every request, for the library clears all of it after each. So when the library has
 * handed over what it had read of a body that says its length, and much is left, the connection is suspended and the rest is
 * read here.
 *
 * The library still waits for those bytes then and can serve no other request on that connection. So the answer goes out as one in the
 * middle of a body does (httpd_reply_early), and the connection ends, whatever else the client has sent.
 */

#define BULK_MIN  (1U << 20) /* less is not worth a new connection of the client's */
#define BULK_READ (256U << 10)
#define NS_PER_S  1000000000LL

static char piece[BULK_READ];

/* The library has the connection again. */
static void hand_back(struct httpd_req *r)
{
	r->x.in_bulk = false;
	r->hup.fn = r->x.on_hup_event;
	loop_disarm(&r->deadline);
	ignore_result(loop_set(&r->hup, EPOLLRDHUP));
}

/* The client has gone, or the sink wants no more. */
static void cut(struct httpd_req *r)
{
	hand_back(r);
	r->gone = true; /* the library may still find bytes */
	(void)shutdown(r->fd, SHUT_RDWR);
	httpd_resume(r);
}

/* Gives N bytes to the sink, 0 at the end. False when it is done with the body. */
static bool give(struct httpd_req *r, const char *p, size_t n)
{
	struct httpd_exchange *x = &r->x;
	ssize_t k;

	x->in_callback = true;
	k = x->sink(x->sink_arg, p, n);
	x->in_callback = false;
	x->body_bytes += n;
	if (httpd_has_reply(r)) {
		hand_back(r);
		httpd_settle(r);
	} else if (k != (ssize_t)n) {
		cut(r);
	} else {
		return true;
	}
	return false;
}

static uint64_t left(const struct httpd_req *r)
{
	return (uint64_t)httpd_content_length(r) - r->x.body_bytes;
}

static void on_readable(struct loop_watch *w, uint32_t events)
{
	struct httpd_req *r = w->arg;
	size_t max = left(r) < sizeof(piece) ? (size_t)left(r) : sizeof(piece);
	ssize_t n = recv(r->fd, piece, max, MSG_DONTWAIT);

	(void)events;
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		cut(r);
		return;
	}
	if (!give(r, piece, (size_t)n))
		return;
	if (left(r)) {
		loop_arm(r->h->loop, &r->deadline, (int64_t)r->h->c.idle_s * NS_PER_S);
		return;
	}
	hand_back(r); /* the answer may come later */
	(void)give(r, NULL, 0);
}

static void begin(struct httpd_req *r)
{
	if (httpd_content_length(r) < 0 || left(r) < BULK_MIN || r->eof || !r->hup.loop)
		return;
	if (loop_set(&r->hup, EPOLLIN) < 0)
		return;
	r->x.on_hup_event = r->hup.fn;
	r->hup.fn = on_readable;
	r->x.in_bulk = true;
	httpd_suspend(r);
	loop_arm(r->h->loop, &r->deadline, (int64_t)r->h->c.idle_s * NS_PER_S);
}

void httpd_in_bulk(struct httpd_req *r)
{
	r->x.bulk = begin;
}
