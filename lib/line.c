/* SPDX-License-Identifier: Apache-2.0 */
#include "line.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fd.h"

/*
 * A callback may close its peer, and then free it. So whoever calls one first leaves the address of
 * a flag of its own in p->gone; line_close sets that flag, and nobody touches P after it is set.
 *
 * Half-closed peers are served: `printf '{…}\n' | nc -N` sends its request, shuts down and then
 * reads. The end is reported when the last line has been given and the last answer has been sent.
 */

#define READ_SIZE 4096

void line_cutter_init(struct line_cutter *c, size_t max)
{
	*c = (struct line_cutter){ 0 };
	buf_init(&c->in, max + READ_SIZE + 1);
}

void line_cutter_done(struct line_cutter *c)
{
	buf_done(&c->in);
}

static void forget_given(struct line_cutter *c)
{
	buf_drop(&c->in, c->given);
	c->given = 0;
}

int line_feed(struct line_cutter *c, const char *p, size_t n)
{
	size_t max = c->in.cap - READ_SIZE - 1;

	forget_given(c);
	while (n) {
		const char *nl = memchr(p, '\n', n);
		size_t part = nl ? (size_t)(nl - p) + 1 : n;
		const char *last = c->in.len ? memrchr(c->in.p, '\n', c->in.len) : NULL;
		size_t open = last ? c->in.len - (size_t)(last - c->in.p) - 1 : c->in.len;
		int r;

		if (open + part - (nl ? 1 : 0) > max)
			return -EMSGSIZE;
		r = buf_add(&c->in, p, part);
		if (r < 0)
			return r == -ENOSPC ? -EMSGSIZE : r;
		p += part;
		n -= part;
	}
	return 0;
}

char *line_next(struct line_cutter *c, size_t *ret_len)
{
	char *nl;

	if (c->given) {
		forget_given(c);
		c->scanned = 0;
	}
	if (c->in.len == c->scanned)
		return NULL;
	nl = memchr(c->in.p + c->scanned, '\n', c->in.len - c->scanned);
	if (!nl) {
		c->scanned = c->in.len;
		return NULL;
	}
	*nl = '\0';
	*ret_len = (size_t)(nl - c->in.p);
	c->given = *ret_len + 1;
	return c->in.p;
}

static void finish(struct line_peer *p, int error)
{
	void (*closed)(struct line_peer *, int) = p->ops->closed;

	line_close(p);
	closed(p, error);
}

static void want(struct line_peer *p)
{
	uint32_t ev = 0;

	if (!p->paused && !p->eof)
		ev |= EPOLLIN;
	if (p->out.len)
		ev |= EPOLLOUT;
	ignore_result(
		loop_set(&p->watch, ev)); /* EPOLL_CTL_MOD of a watched descriptor does not fail */
}

/* Sends what is queued. 0, or a negative errno when the connection is broken. */
static int flush(struct line_peer *p)
{
	while (p->out.len) {
		ssize_t k = send(p->fd, p->out.p, p->out.len, MSG_NOSIGNAL);

		if (k < 0 && errno == ENOTSOCK)
			k = write(p->fd, p->out.p, p->out.len);
		if (k < 0 && errno == EINTR)
			continue;
		if (k < 0)
			return errno == EAGAIN ? 0 : -errno;
		buf_drop(&p->out, (size_t)k);
	}
	return 0;
}

/* Gives the lines that are here, then sees whether this was the end. P may be gone afterwards. */
static void deliver(struct line_peer *p)
{
	bool gone = false;
	char *s;
	size_t n;

	p->gone = &gone;
	while (!p->paused && (s = line_next(&p->in, &n))) {
		p->ops->line(p, s, n);
		if (gone)
			return;
	}
	p->gone = NULL;
	if (p->eof && !p->paused && p->out.len == 0)
		finish(p, 0);
	else
		want(p);
}

static void take(struct line_peer *p)
{
	char b[READ_SIZE];
	ssize_t k;
	int r;

	do
		k = read(p->fd, b, sizeof(b));
	while (k < 0 && errno == EINTR);
	if (k < 0 && errno == EAGAIN)
		return;
	if (k < 0) {
		finish(p, -errno);
		return;
	}
	if (k == 0)
		p->eof = true;
	r = line_feed(&p->in, b, (size_t)k);
	if (r < 0)
		finish(p, r);
	else
		deliver(p);
}

static void on_event(struct loop_watch *w, uint32_t events)
{
	struct line_peer *p = w->arg;

	if (events & EPOLLOUT) {
		int r = flush(p);

		if (r < 0) {
			finish(p, r);
			return;
		}
		if (p->eof) {
			deliver(p);
			return;
		}
		want(p);
	}
	if (p->paused || p->eof) {
		if (events & (EPOLLHUP | EPOLLERR))
			finish(p, 0);
	} else if (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) {
		take(p);
	}
}

static void on_deadline(struct loop_timer *t)
{
	finish(t->arg, -ETIMEDOUT);
}

static void on_kick(struct loop_timer *t)
{
	deliver(t->arg);
}

int line_open(struct loop *l, struct line_peer *p, int fd, size_t max, const struct line_ops *ops,
	      void *arg)
{
	int r;

	*p = (struct line_peer){ .loop = l, .ops = ops, .arg = arg, .fd = fd };
	p->watch = (struct loop_watch){ .fd = -1, .fn = on_event, .arg = p };
	p->deadline = (struct loop_timer){ .fn = on_deadline, .arg = p };
	p->kick = (struct loop_timer){ .fn = on_kick, .arg = p };
	line_cutter_init(&p->in, max);
	buf_init(&p->out, LINE_OUT_MAX);
	r = loop_add(l, &p->watch, fd, EPOLLIN);
	if (r < 0)
		line_close(p);
	return r;
}

void line_close(struct line_peer *p)
{
	if (p->fd < 0)
		return;
	loop_del(&p->watch);
	loop_disarm(&p->deadline);
	loop_disarm(&p->kick);
	fd_close(&p->fd);
	line_cutter_done(&p->in);
	buf_done(&p->out);
	if (p->gone)
		*p->gone = true;
}

int line_send(struct line_peer *p, const char *s)
{
	size_t n = strlen(s);
	int r;

	if (p->fd < 0)
		return -ENOTCONN;
	r = buf_reserve(&p->out, n + 1);
	if (r < 0)
		return r;
	ignore_result(buf_add(&p->out, s, n)); /* the room is there */
	ignore_result(buf_add(&p->out, "\n", 1));
	ignore_result(flush(p)); /* an error comes again from the loop, as EPOLLERR or EPOLLHUP */
	want(p);
	return 0;
}

void line_pause(struct line_peer *p, bool on)
{
	if (p->fd < 0 || p->paused == on)
		return;
	p->paused = on;
	if (on)
		loop_disarm(&p->kick);
	else
		loop_arm(p->loop, &p->kick, 0);
	want(p);
}

void line_deadline(struct line_peer *p, int64_t after_ns)
{
	if (p->fd < 0)
		return;
	if (after_ns < 0)
		loop_disarm(&p->deadline);
	else
		loop_arm(p->loop, &p->deadline, after_ns);
}
