/* SPDX-License-Identifier: Apache-2.0 */
#include "bridge.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fd.h"

/*
 * The ends of a socket are taken as TCP takes them. End of file: the stream's own half is closed,
 * the other goes on. A broken socket (closed by its owner, reset): what it gave before still goes
 * out with an orderly end, because a server that answers early and closes has answered; what comes
 * for it is dropped while its answer is under way, and then cuts the stream. A stream that was cut
 * resets the socket, so that no half of anything passes for the whole; AF_UNIX can show only an end
 * of file, and its owner has to tell the two apart (data() with N == 0 comes before an end).
 */

#define BRIDGE_READ 65536
#define UNREAD_MAX  (4U << 20) /* a socket's buffer holds less */

/*
 * Closing a socket that holds unread bytes resets it (RFC 1122 §4.2.2.13; AF_UNIX does the same), and a reset
 * overtakes the end that its peer has not read yet. Once that end was passed on, it is to arrive.
 */
static void drop_unread(int fd)
{
	char p[4096];
	ssize_t k;

	if (shutdown(fd, SHUT_RDWR) < 0)
		return;
	for (size_t n = 0; n < UNREAD_MAX; n += (size_t)k) {
		k = recv(fd, p, sizeof(p), MSG_DONTWAIT);
		if (k <= 0)
			return;
	}
}

static void finish(struct bridge *b, int error)
{
	const struct linger reset = { .l_onoff = 1 };

	loop_del(&b->watch);
	if (b->fd >= 0 && b->end_given)
		drop_unread(b->fd);
	else if (b->fd >= 0)
		(void)setsockopt(b->fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
	fd_close(&b->fd);
	b->stream = NULL;
	if (b->ended)
		b->ended(b, error);
}

static void cut(struct bridge *b, int error)
{
	chan_reset(b->stream);
	finish(b, error);
}

/* Watches what can matter now. A socket of which nothing can matter is closed; the stream may still
 * have bytes to send. */
static void watch(struct bridge *b)
{
	uint32_t events = 0;

	if (b->read_end && b->write_end) {
		loop_del(&b->watch);
		fd_close(&b->fd);
		return;
	}
	if (!b->read_end && chan_room(b->stream) > 0)
		events |= EPOLLIN;
	if (b->blocked)
		events |= EPOLLOUT;
	if (loop_set(&b->watch, events) < 0)
		cut(b, -EIO);
}

/* Reads what the stream takes, at most two buffers a turn. */
static void pump_in(struct bridge *b)
{
	static char p[BRIDGE_READ]; /* one for all: nothing stays in it */

	for (int i = 0; i < 2 && !b->read_end; i++) {
		size_t room = chan_room(b->stream);
		ssize_t k;

		if (room == 0)
			return;
		k = recv(b->fd, p, room < sizeof(p) ? room : sizeof(p), MSG_DONTWAIT);
		if (k > 0) {
			b->read_at = loop_now();
			if (chan_write(b->stream, p, (size_t)k) < (size_t)k) {
				b->read_end = true; /* no memory: the stream is being cut */
				return;
			}
			if ((size_t)k < sizeof(p))
				return;
		} else if (k == 0 || (errno != EAGAIN && errno != EINTR)) {
			b->read_end = true;
			if (k < 0)
				b->write_end = true;
			chan_write_end(b->stream);
		} else if (errno == EAGAIN) {
			return;
		}
	}
}

static void on_socket(struct loop_watch *w, uint32_t events)
{
	struct bridge *b = w->arg;

	if (events & (EPOLLIN | EPOLLHUP | EPOLLERR))
		pump_in(b);
	/* Hung up both ways: what cannot be read now because the stream is full is read when there
	 * is room. */
	if ((events & (EPOLLHUP | EPOLLERR)) && b->read_end)
		b->write_end = true;
	if (b->write_end || (b->blocked && (events & EPOLLOUT))) {
		b->blocked = false;
		chan_resume(b->stream);
	}
	if ((events & (EPOLLHUP | EPOLLERR)) && !b->read_end && chan_room(b->stream) == 0) {
		loop_del(&b->watch); /* it would be told for ever; writable() adds it again */
		return;
	}
	watch(b);
}

static size_t on_data(void *arg, const void *p, size_t n)
{
	struct bridge *b = arg;
	ssize_t k;

	if (n == 0) {
		b->end_given = true;
		if (b->fd >= 0)
			(void)shutdown(b->fd, SHUT_WR);
		return 0;
	}
	if (!b->write_end) {
		do
			k = send(b->fd, p, n, MSG_DONTWAIT | MSG_NOSIGNAL);
		while (k < 0 && errno == EINTR);
		if (k >= 0 || errno == EAGAIN) {
			b->blocked = k < (ssize_t)n;
			if (b->blocked && b->watch.loop)
				watch(b);
			return k < 0 ? 0 : (size_t)k;
		}
		b->write_end = true;
	}
	if (!b->read_end)
		pump_in(b); /* what it had said before it went, to its end */
	if (!b->read_end || !chan_drained(b->stream))
		return n;
	cut(b, -ECONNRESET);
	return 0;
}

static void on_writable(void *arg)
{
	struct bridge *b = arg;

	if (b->fd < 0)
		return;
	if (!b->watch.loop && loop_add(b->loop, &b->watch, b->fd, EPOLLIN) < 0) {
		cut(b, -EIO);
		return;
	}
	watch(b);
}

static void on_closed(void *arg, int error)
{
	finish(arg, error);
}

const struct chan_stream_ops bridge_ops = {
	.data = on_data,
	.writable = on_writable,
	.closed = on_closed,
};

int bridge_start(struct bridge *b, struct loop *l, struct chan_stream *s, int fd,
		 void (*ended)(struct bridge *b, int error))
{
	int r;

	*b = (struct bridge){ .loop = l, .stream = s, .fd = fd, .ended = ended };
	b->watch = (struct loop_watch)LOOP_WATCH_INIT;
	b->watch.fn = on_socket;
	b->watch.arg = b;
	r = loop_add(l, &b->watch, fd, EPOLLIN);
	if (r == 0)
		return 0;
	b->ended = NULL;
	cut(b, r);
	return r;
}

void bridge_stop(struct bridge *b)
{
	b->ended = NULL;
	if (b->stream)
		cut(b, 0);
}
