/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "host/proxy/proxy_int.h"

/*
 * After a 101 httpd lends us the client's socket, and libcurl's transfer goes on as if both directions were bodies without an end. Nothing here knows
 * frames. When the sandbox's side has ended, what it has sent is delivered first; when the client's has, the sandbox gets a moment for its last word.
 */

#define PIECE	 (16U << 10)
#define LAST_NS	 (5LL * PROXY_SECOND)
#define FLUSH_NS (30LL * PROXY_SECOND)

/* RESET: the client must not take it for an orderly end. */
static void end(struct exchange *x, bool reset)
{
	if (!x->handed)
		return;
	x->handed = false;
	loop_del(&x->client);
	loop_disarm(&x->limit);
	if (reset)
		httpd_reset(x->r);
	httpd_upgrade_done(x->r); /* on_end follows from the loop */
}

/* False when the client has gone. */
static bool flush(struct exchange *x)
{
	const char *p;
	size_t n;

	while ((n = ring_peek(&x->down, &p)) > 0) {
		ssize_t k = send(x->client.fd, p, n, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (k > 0)
			ring_drop(&x->down, (size_t)k);
		else if (k < 0 && errno == EAGAIN)
			return true;
		else if (k == 0 || errno != EINTR)
			return false;
	}
	return true;
}

static size_t room(struct exchange *x)
{
	buf_drop(&x->up, x->up_at);
	x->up_at = 0;
	return PROXY_UP_MAX - x->up.len;
}

/* False when the client has gone. */
static bool take(struct exchange *x)
{
	size_t max = room(x) < PIECE ? room(x) : PIECE;
	ssize_t k;

	if (max == 0)
		return true;
	if (buf_reserve(&x->up, max) < 0)
		return false;
	k = recv(x->client.fd, x->up.p + x->up.len, max, MSG_DONTWAIT);
	if (k < 0)
		return errno == EAGAIN || errno == EINTR;
	if (k == 0) {
		x->up_eof = true;
		loop_arm(proxy_of(x)->c.loop, &x->limit, LAST_NS);
	}
	x->up.len += (size_t)k;
	exchange_resume_send(x);
	return true;
}

void upgrade_turn(struct exchange *x)
{
	uint32_t events;

	if (!x->handed)
		return;
	if (!flush(x)) {
		end(x, true);
		return;
	}
	if ((x->complete || x->broken) && x->down.len == 0) {
		end(x, x->broken);
		return;
	}
	if ((x->complete || x->broken) && !x->limit.loop)
		loop_arm(proxy_of(x)->c.loop, &x->limit, FLUSH_NS);
	if (x->down.len <= PROXY_DOWN_MAX / 2)
		exchange_resume_recv(x);
	events = x->down.len ? EPOLLOUT : 0U;
	if (!x->up_eof && x->up.len - x->up_at < PROXY_UP_MAX)
		events |= EPOLLIN;
	if (x->handed && loop_set(&x->client, events) < 0)
		end(x, true);
}

static void on_client(struct loop_watch *w, uint32_t events)
{
	struct exchange *x = w->arg;
	bool lives = true;

	if (events & EPOLLERR || (events & EPOLLHUP && x->up_eof))
		lives = false;
	else if (events & (EPOLLIN | EPOLLHUP))
		lives = take(x);
	if (lives)
		upgrade_turn(x);
	else
		end(x, true);
}

/* P: what the client sent behind its head, before it could know the answer. */
static void on_socket(void *arg, int fd, const char *p, size_t n)
{
	struct exchange *x = arg;

	x->handed = true;
	x->client.fn = on_client;
	x->client.arg = x;
	if (loop_add(proxy_of(x)->c.loop, &x->client, fd, EPOLLIN) < 0 ||
	    (n && buf_add(&x->up, p, n) < 0)) {
		end(x, true);
		return;
	}
	exchange_resume_send(x);
	upgrade_turn(x);
}

int upgrade_begin(struct exchange *x)
{
	if (!answer_is_websocket(x) || !x->asked)
		return -EPROTO;
	x->stage = STAGE_RAW;
	loop_disarm(&x->limit);
	answer_headers(x);
	httpd_reply_upgrade(x->r, "websocket", on_socket, x);
	return 0;
}

void upgrade_cut(struct exchange *x)
{
	end(x, true);
}

void upgrade_done(struct exchange *x)
{
	x->handed = false;
	loop_del(&x->client);
}
