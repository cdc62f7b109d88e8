/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_TEST_WS_PEER_H
#define ASB_TEST_WS_PEER_H

#include "../../lib/ws.h"
#include "httpd_client.h"

/* One end of a connection is a WebSocket in a loop, the other is read and written as bytes. */

#define MAX   4096
#define QUEUE 65536
#define MS    1000000LL

static struct ws ws;
static int peer; /* the client's end */

/* What the owner was told. */
static int messages, closes, rooms;
static unsigned close_code;
static bool last_text;
static char last[MAX + 1];
static size_t last_len, total;
static bool pause_at_message;

static void on_message(void *arg, bool text, const char *p, size_t n)
{
	(void)arg;
	messages++;
	last_text = text;
	last_len = n;
	total += n;
	memcpy(last, p, n + 1); /* with the NUL that is promised */
	if (pause_at_message)
		ws_pause(&ws, true);
}

static void on_writable(void *arg)
{
	(void)arg;
	rooms++;
}

static void on_closed(void *arg, unsigned code)
{
	(void)arg;
	closes++;
	close_code = code;
}

static struct ws_config config = { .message_max = MAX,
				   .queue_max = QUEUE,
				   .ping_ns = 15000 * MS,
				   .stall_ns = 300000 * MS,
				   .message = on_message,
				   .writable = on_writable,
				   .closed = on_closed };

static int server_end = -1;

static void begin(const char *early, size_t n)
{
	int fd[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fd) < 0)
		abort();
	messages = closes = rooms = 0;
	close_code = 0;
	last_len = total = 0;
	pause_at_message = false;
	server_end = fd[0];
	peer = fd[1];
	if (ws_start(&ws, &loop, fd[0], &config, early, n) < 0)
		abort();
}

static void end(void)
{
	ws_stop(&ws);
	fd_close(&server_end);
	fd_close(&peer);
}

static void turn(int ms)
{
	if (loop_once(&loop, ms) < 0)
		abort();
}

static void push(const char *p, size_t n)
{
	while (n) {
		ssize_t k = send(peer, p, n, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (k < 0 && errno != EAGAIN)
			return; /* closed under us: the code tells */
		p += k > 0 ? k : 0;
		n -= k > 0 ? (size_t)k : 0;
		turn(0);
		turn(0);
	}
}

/* What the server has sent: frames, taken apart. */
static char got[1 << 20];
static size_t got_len;
static bool got_eof;

static void pull(void)
{
	ssize_t k;

	while ((k = recv(peer, got + got_len, sizeof(got) - got_len, MSG_DONTWAIT)) > 0)
		got_len += (size_t)k;
	got_eof = k == 0;
}

/* The AT-th frame: its first byte, 0 when there is none. */
static unsigned frame_at(size_t at, const char **ret, size_t *ret_len)
{
	size_t i = 0;

	while (i + 2 <= got_len) {
		const unsigned char *h = (const unsigned char *)got + i;
		size_t n = h[1], head = 2;

		if (n == 126) {
			n = (size_t)h[2] << 8 | h[3];
			head = 4;
		} else if (n == 127) {
			n = 0;
			for (int k = 2; k < 10; k++)
				n = n << 8 | h[k];
			head = 10;
		}
		if (i + head + n > got_len)
			break;
		*ret = got + i + head;
		*ret_len = n;
		if (at-- == 0)
			return h[0];
		i += head + n;
	}
	return 0;
}

/* The code of the close frame that the server sent; 0: none; 1: without a code. */
static unsigned sent_close(void)
{
	const char *p;
	size_t n;
	unsigned op;

	for (size_t i = 0; (op = frame_at(i, &p, &n)) != 0; i++)
		if (op == 0x88)
			return n >= 2 ? (unsigned)((unsigned char)p[0] << 8 | (unsigned char)p[1])
				      : 1;
	return 0;
}

static void run(int ms)
{
	int64_t until = loop_now() + ms * MS;

	do {
		turn(1);
		pull();
	} while (!closes && !got_eof && loop_now() < until);
}

/* --- making frames --- */
struct bytes {
	char p[70000];
	size_t n;
};

static void frame_n(struct bytes *b, unsigned first, bool mask, size_t claimed, const char *p,
		    size_t n)
{
	static const unsigned char key[4] = { 0x12, 0x80, 0xff, 0x00 };
	char *w = b->p + b->n;

	*w++ = (char)first;
	if (claimed < 126) {
		*w++ = (char)((mask ? 0x80 : 0) | claimed);
	} else if (claimed < 65536) {
		*w++ = (char)((mask ? 0x80 : 0) | 126);
		*w++ = (char)(claimed >> 8);
		*w++ = (char)claimed;
	} else {
		*w++ = (char)((mask ? 0x80 : 0) | 127);
		for (int i = 56; i >= 0; i -= 8)
			*w++ = (char)(claimed >> i);
	}
	if (mask) {
		memcpy(w, key, 4);
		w += 4;
	}
	for (size_t i = 0; i < n; i++)
		*w++ = (char)(p[i] ^ (mask ? key[i & 3] : 0));
	b->n = (size_t)(w - b->p);
}

static void frame(struct bytes *b, unsigned first, const char *p, size_t n)
{
	frame_n(b, first, true, n, p, n);
}

#define TEXT	0x81
#define BINARY	0x82
#define CLOSE	0x88
#define PING	0x89
#define PONG	0x8a
#define FILL(n) zeros, n

static char zeros[66000];

static void m_fragments(struct bytes *b)
{
	frame(b, 0x01, S("a\xe2"));
	frame(b, PING, S("p"));
	frame(b, 0x00, S("\x82"));
	frame(b, 0x00, S(""));
	frame(b, 0x80, S("\xac z"));
}

static void m_close(struct bytes *b)
{
	frame(b, CLOSE, S("\x03\xe8 bye, \xe2\x82\xac"));
}

#endif
