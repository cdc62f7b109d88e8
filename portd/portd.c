/* SPDX-License-Identifier: Apache-2.0 */
#include "portd.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../lib/bridge.h"
#include "../lib/chan.h"
#include "../lib/fd.h"
#include "../lib/log.h"

/*
 * A connection: CONNECT arrives -> connect(2) to 127.0.0.1, and when that is refused to ::1, since
 * a service may listen on IPv6 only -> accepted, and a bridge carries the bytes -> ended. There are
 * at most CHAN_STREAMS_MAX of them, which the channel sees to. Time is not limited: an idle
 * terminal may stay for days. Only connecting is, for a full backlog would otherwise hang.
 */

#define CONNECT_NS 10000000000LL

struct conn {
	struct portd *p;
	struct conn *next, **pprev;
	struct chan_stream *stream; /* unanswered while connecting */
	struct loop_watch watch;    /* while connecting */
	struct loop_timer deadline;
	struct bridge bridge; /* then */
	int fd;		      /* while connecting */
	uint16_t port;
	bool tried_v6;
};

struct portd {
	struct loop *loop;
	struct chan *chan;
	struct conn *conns;
};

static void conn_free(struct conn *c)
{
	loop_del(&c->watch);
	loop_disarm(&c->deadline);
	fd_close(&c->fd);
	bridge_stop(&c->bridge);
	*c->pprev = c->next;
	if (c->next)
		c->next->pprev = c->pprev;
	free(c);
}

static void on_ended(struct bridge *b, int error)
{
	(void)error;
	conn_free(CONTAINER_OF(b, struct conn, bridge));
}

static void refuse(struct conn *c, int errnum)
{
	chan_refuse(c->stream, errnum);
	conn_free(c);
}

static void connected(struct conn *c)
{
	const int one = 1;
	struct chan_stream *s = c->stream;

	loop_del(&c->watch);
	loop_disarm(&c->deadline);
	/* Only speeds things up. */
	(void)setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	if (chan_accept(s, &bridge_ops, &c->bridge) < 0 ||
	    bridge_start(&c->bridge, c->p->loop, s, fd_take(&c->fd), on_ended) < 0)
		conn_free(c);
}

static int start_v4(uint16_t port, int *ret_fd)
{
	const struct sockaddr_in to = { .sin_family = AF_INET,
					.sin_port = htons(port),
					.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };

	*ret_fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (*ret_fd < 0)
		return -errno;
	return connect(*ret_fd, (const struct sockaddr *)&to, sizeof(to)) < 0 ? -errno : 0;
}

static int start_v6(uint16_t port, int *ret_fd)
{
	const struct sockaddr_in6 to = { .sin6_family = AF_INET6,
					 .sin6_port = htons(port),
					 .sin6_addr = IN6ADDR_LOOPBACK_INIT };

	*ret_fd = socket(AF_INET6, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (*ret_fd < 0)
		return -errno;
	return connect(*ret_fd, (const struct sockaddr *)&to, sizeof(to)) < 0 ? -errno : 0;
}

/* What became of a connect(2) with result R; C may be gone afterwards. */
static void settle(struct conn *c, int r)
{
	if (r == -ECONNREFUSED && !c->tried_v6) {
		loop_del(&c->watch);
		fd_close(&c->fd);
		c->tried_v6 = true;
		r = start_v6(c->port, &c->fd);
		if (r < 0 && r != -EINPROGRESS)
			r = -ECONNREFUSED; /* IPv6 may be off altogether: what IPv4 said stands */
	}
	if (r == 0)
		connected(c);
	else if (r != -EINPROGRESS)
		refuse(c, -r);
	else if (loop_add(c->p->loop, &c->watch, c->fd, EPOLLOUT) < 0)
		refuse(c, EIO);
}

static void on_connecting(struct loop_watch *w, uint32_t events)
{
	struct conn *c = w->arg;
	int errnum = 0;
	socklen_t n = sizeof(errnum);

	(void)events;
	if (getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &errnum, &n) < 0)
		errnum = errno;
	settle(c, -errnum);
}

static void on_deadline(struct loop_timer *t)
{
	refuse(t->arg, ETIMEDOUT);
}

static void on_connect(void *arg, struct chan_stream *s, uint16_t port)
{
	struct portd *p = arg;
	struct conn *c = calloc(1, sizeof(*c));

	if (!c) {
		chan_refuse(s, ENOMEM);
		return;
	}
	c->p = p;
	c->stream = s;
	c->port = port;
	c->fd = -1;
	c->bridge.fd = -1;
	c->watch = (struct loop_watch)LOOP_WATCH_INIT;
	c->watch.fn = on_connecting;
	c->deadline.fn = on_deadline;
	c->watch.arg = c->deadline.arg = c;
	c->next = p->conns;
	c->pprev = &p->conns;
	if (c->next)
		c->next->pprev = &c->next;
	p->conns = c;
	loop_arm(p->loop, &c->deadline, CONNECT_NS);
	settle(c, start_v4(port, &c->fd));
}

static void on_up(void *arg)
{
	(void)arg;
	log_debug("the host is there");
}

static void on_down(void *arg, const char *why)
{
	(void)arg;
	log_info("session ended: %s", why);
}

static const struct chan_ops ops = { .up = on_up, .down = on_down, .connect = on_connect };

int portd_start(struct loop *l, int fd, struct portd **ret)
{
	struct portd *p = calloc(1, sizeof(*p));
	int r;

	if (!p)
		return -ENOMEM;
	p->loop = l;
	r = chan_start(l, CHAN_GUEST, fd, &ops, p, &p->chan);
	if (r < 0) {
		free(p);
		return r;
	}
	*ret = p;
	return 0;
}

void portd_stop(struct portd *p)
{
	for (struct conn *c = p->conns, *next; c; c = next) {
		next = c->next;
		conn_free(c);
	}
	chan_free(p->chan);
	free(p);
}
