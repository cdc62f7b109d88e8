/* SPDX-License-Identifier: Apache-2.0 */
#include "host/agent/relay.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "lib/fd.h"
#include "lib/loop.h"

/*
 * Each direction holds at most one buffer and reads again when that is written. A direction is over
 * when its end has been passed on, or when nobody takes its bytes any more; then what still comes
 * is read and dropped, as long as the other direction has something to say.
 */

#define RELAY_BUFFER (64U << 10)
#define DRAIN_NS     (2LL * 1000000000)

struct direction {
	int from, to;
	int told; /* has a byte when FROM's end of file is one; -1 = it always is */
	char *p;  /* RELAY_BUFFER bytes */
	size_t at, len;
	bool end;  /* FROM gives nothing more */
	bool deaf; /* TO takes nothing more */
	bool over;
	int error;
};

static bool was_cut(const struct direction *d)
{
	char byte;

	return d->told >= 0 && recv(d->told, &byte, 1, MSG_DONTWAIT) != 1;
}

static void take(struct direction *d)
{
	ssize_t k = recv(d->from, d->p, RELAY_BUFFER, MSG_DONTWAIT);

	if (k > 0) {
		d->at = 0;
		d->len = d->deaf ? 0 : (size_t)k;
	} else if (k == 0) {
		d->end = true;
		d->error = was_cut(d) ? -ECONNRESET : 0;
	} else if (errno != EAGAIN && errno != EINTR) {
		d->error = -errno;
		d->end = true;
	}
}

static void give(struct direction *d)
{
	ssize_t k = send(d->to, d->p + d->at, d->len, MSG_DONTWAIT | MSG_NOSIGNAL);

	if (k >= 0) {
		d->at += (size_t)k;
		d->len -= (size_t)k;
	} else if (errno != EAGAIN && errno != EINTR) {
		d->deaf = true;
		d->len = 0;
	}
}

static void turn(struct direction *d, short from_events, short to_events)
{
	if (!d->end && d->len == 0 && (from_events & (POLLIN | POLLHUP | POLLERR)))
		take(d);
	if (d->len && (to_events & (POLLOUT | POLLHUP | POLLERR)))
		give(d);
	if (d->end && d->len == 0 && !d->over) {
		d->over = true;
		if (!d->error)
			(void)shutdown(d->to, SHUT_WR);
	}
}

/* What to wait for on the socket that IN reads and OUT writes. */
static struct pollfd wanted(const struct direction *in, const struct direction *out)
{
	struct pollfd p = { .fd = in->from };

	if (!in->end && in->len == 0)
		p.events |= POLLIN;
	if (out->len)
		p.events |= POLLOUT;
	/* With nothing to wait for it could only hang up, which matters when it has said all. */
	if (!p.events && !in->over)
		p.fd = -1;
	return p;
}

/* Nothing can be said any more to or by the socket that D reads. */
static bool is_gone(const struct direction *d, short events)
{
	return d->over && (d->error || (events & (POLLHUP | POLLERR)));
}

/* Closing a TCP socket that holds unread bytes resets it, and what its peer has not read yet is
 * lost. So an answer that came early is followed by a moment of reading. */
static void drain(int fd)
{
	static char p[RELAY_BUFFER];
	int64_t until = loop_now() + DRAIN_NS, left = DRAIN_NS;

	while (left > 0) {
		struct pollfd w = { .fd = fd, .events = POLLIN };
		ssize_t k = poll(&w, 1, (int)(left / 1000000) + 1) > 0
				    ? recv(fd, p, sizeof(p), MSG_DONTWAIT)
				    : 1;

		if (k == 0 || (k < 0 && errno != EAGAIN && errno != EINTR))
			return;
		left = until - loop_now();
	}
}

int relay(int a, int b, int b_end)
{
	static char buffers[2][RELAY_BUFFER];
	struct direction ab = { .from = a, .to = b, .told = -1, .p = buffers[0] },
			 ba = { .from = b, .to = a, .told = b_end, .p = buffers[1] };
	struct pollfd p[2];
	int r = fd_set_nonblock(a, true);

	if (r == 0)
		r = fd_set_nonblock(b, true);
	while (r == 0 && !(ab.over && ba.over)) {
		p[0] = wanted(&ab, &ba);
		p[1] = wanted(&ba, &ab);
		if (poll(p, 2, -1) < 0 && errno != EINTR)
			return -errno;
		turn(&ab, p[0].revents, p[1].revents);
		turn(&ba, p[1].revents, p[0].revents);
		if (is_gone(&ab, p[0].revents) || is_gone(&ba, p[1].revents))
			break;
		if ((ab.over && ba.deaf) || (ba.over && ab.deaf))
			break;
	}
	if (r == 0 && !ab.end)
		drain(a);
	return r < 0 ? r : ab.error ? ab.error : ba.error;
}
