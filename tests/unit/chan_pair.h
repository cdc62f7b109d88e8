/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TEST_CHAN_PAIR_H
#define TEST_CHAN_PAIR_H

/* Both ends of a channel in one loop, joined by a relay that can cut, split and inject bytes. */
#include <errno.h>
#include <stdbool.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../../lib/chan.h"
#include "../../lib/fd.h"
#include "../lib/tap.h"

static struct loop loop;

struct user { /* of one stream */
	struct chan_stream *s;
	char in[1 << 16]; /* the first bytes that came */
	size_t got, allowed, to_send;
	int opened, eofs, closed, error;
	bool echo, reset_on_data;
};

struct end {
	struct chan *c;
	int fd, up, down;
	char why[64];
	bool free_on_down;
	/* guest: what it does with a CONNECT */
	struct user users[300];
	int n_users;
	struct chan_stream *held; /* port 7 is answered later */
};

static struct end host, guest;
static int relay_fd[2] = { -1, -1 }; /* towards the host, towards the guest */
static struct loop_watch relay_watch[2];
static size_t relay_step;    /* bytes at a time; 0 = as they come */
static size_t relay_left[2]; /* bytes until the relay drops the rest of that direction */

static void push(struct user *u)
{
	static const char zeros[4096];

	while (u->to_send) {
		size_t n = u->to_send < sizeof(zeros) ? u->to_send : sizeof(zeros);
		size_t k = chan_write(u->s, zeros, n);

		u->to_send -= k;
		if (k < n)
			return;
	}
	chan_write_end(u->s);
}

static void u_opened(void *arg)
{
	((struct user *)arg)->opened++;
}

static size_t u_data(void *arg, const void *p, size_t n)
{
	struct user *u = arg;

	if (u->reset_on_data) {
		chan_reset(u->s);
		u->s = NULL;
		return 0;
	}
	if (n == 0) {
		u->eofs++;
		if (u->echo)
			chan_write_end(u->s);
		return 0;
	}
	if (n > u->allowed)
		n = u->allowed;
	if (u->echo)
		n = chan_write(u->s, p, n);
	if (u->got < sizeof(u->in))
		memcpy(u->in + u->got, p, n < sizeof(u->in) - u->got ? n : sizeof(u->in) - u->got);
	u->got += n;
	u->allowed -= n;
	return n;
}

static void u_writable(void *arg)
{
	struct user *u = arg;

	if (u->echo)
		chan_resume(u->s);
	else
		push(u);
}

static void u_closed(void *arg, int error)
{
	struct user *u = arg;

	u->closed++;
	u->error = error;
	u->s = NULL;
}

static const struct chan_stream_ops user_ops = { u_opened, u_data, u_writable, u_closed };

static void e_up(void *arg)
{
	((struct end *)arg)->up++;
}

static void e_down(void *arg, const char *why)
{
	struct end *e = arg;

	e->down++;
	snprintf(e->why, sizeof(e->why), "%s", why);
	if (e->free_on_down) {
		chan_free(e->c);
		e->c = NULL;
	}
}

/* Ports: 1 refused, 7 answered by the test, 9 accepted and never read, 10 sends a lot; others echo.
 */
static void e_connect(void *arg, struct chan_stream *s, uint16_t port)
{
	struct end *e = arg;
	struct user *u;

	if (port == 1) {
		chan_refuse(s, ECONNREFUSED);
		return;
	}
	if (port == 7) {
		e->held = s;
		return;
	}
	u = &e->users[e->n_users++ % 300];
	*u = (struct user){ .s = s, .echo = port > 10, .allowed = port == 9 ? 0 : SIZE_MAX };
	ok(chan_accept(s, &user_ops, u) == 0 || port == 0, "accept %u", port);
	if (port == 10) {
		u->to_send = 4 << 20;
		push(u);
	}
}

static const struct chan_ops end_ops = { e_up, e_down, e_connect };

static void end_start(struct end *e, enum chan_side side, int fd)
{
	bool keep = e->free_on_down;

	memset(e, 0, sizeof(*e));
	e->free_on_down = keep;
	e->fd = fd;
	ok_int(chan_start(&loop, side, fd, &end_ops, e, &e->c), 0, "start");
}

static void pair(int sv[2])
{
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, sv) < 0)
		exit(1);
}

static void on_relay(struct loop_watch *w, uint32_t events)
{
	int to = relay_fd[w == &relay_watch[0]];
	size_t *left = &relay_left[w == &relay_watch[0]];
	char p[8192];
	ssize_t n = read(w->fd, p, relay_step ? relay_step : sizeof(p));

	(void)events;
	if (n <= 0) {
		loop_del(w);
		return;
	}
	if ((size_t)n > *left)
		n = (ssize_t)*left;
	*left -= (size_t)n;
	if (n && fd_write_all(to, p, (size_t)n) < 0)
		loop_del(w);
}

/* host <-> relay <-> guest */
static void wire(void)
{
	int a[2], b[2];

	pair(a);
	pair(b);
	relay_fd[0] = a[1];
	relay_fd[1] = b[0];
	relay_step = 0;
	for (int i = 0; i < 2; i++) {
		relay_left[i] = SIZE_MAX;
		relay_watch[i] = (struct loop_watch)LOOP_WATCH_INIT;
		relay_watch[i].fn = on_relay;
		if (loop_add(&loop, &relay_watch[i], relay_fd[i], EPOLLIN) < 0)
			exit(1);
	}
	end_start(&host, CHAN_HOST, a[0]);
	end_start(&guest, CHAN_GUEST, b[1]);
}

static void unwire(void)
{
	chan_free(host.c);
	chan_free(guest.c);
	host.c = guest.c = NULL;
	for (int i = 0; i < 2; i++) {
		loop_del(&relay_watch[i]);
		fd_close(&relay_fd[i]);
	}
	fd_close(&host.fd);
	fd_close(&guest.fd);
}

/* Turns the loop until COND, at most 20 s. */
#define UNTIL(cond)                                        \
	do {                                               \
		int64_t end_ = loop_now() + 20000000000LL; \
		while (!(cond) && loop_now() < end_)       \
			if (loop_once(&loop, 20) < 0)      \
				break;                     \
	} while (0)

static void both_up(const char *what)
{
	UNTIL(host.c && guest.c && chan_is_up(host.c) && chan_is_up(guest.c));
	ok(chan_is_up(host.c) && chan_is_up(guest.c), "%s: up", what);
}

static void dial(struct user *u, uint16_t port)
{
	*u = (struct user){ .allowed = SIZE_MAX };
	ok_int(chan_connect(host.c, port, &user_ops, u, &u->s), 0, "connect");
}

/* A request through the echo port must come back whole. */
static void echo_works(const char *what)
{
	static struct user u;

	dial(&u, 80);
	ok_int(chan_write(u.s, "hello", 5), 5, "write");
	chan_write_end(u.s);
	UNTIL(u.closed);
	ok(u.opened == 1 && u.got == 5 && !memcmp(u.in, "hello", 5) && u.eofs == 1 &&
		   u.closed == 1 && u.error == 0,
	   "%s: an echo comes back (got %zu, eof %d, error %d)", what, u.got, u.eofs, u.error);
}

#endif
