/* SPDX-License-Identifier: Apache-2.0 */
#include "../../lib/ws.h"

#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../../lib/fd.h"
#include "../../lib/httpd.h"
#include "../lib/tap.h"

/* One end of a socket pair is a WebSocket in a loop, the other is read and written as bytes; then the same behind
 * a real server. Every input is sent whole, byte by byte, and cut at every place. */

#define MAX   4096
#define QUEUE 65536
#define MS    1000000LL

static struct loop loop;
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
#define S(s)	s, sizeof(s) - 1
#define FILL(n) zeros, n

static char zeros[66000];

/* --- inputs and the code that ends them --- */
struct input {
	const char *name;
	unsigned
		code; /* of the close frame sent back; 0: it stays open; 1: a close frame without a code */
	int messages;
	void (*make)(struct bytes *b);
};

static void m_text(struct bytes *b)
{
	frame(b, TEXT, S("h\xc3\xa4llo"));
}
static void m_empty(struct bytes *b)
{
	frame(b, TEXT, S(""));
	frame(b, BINARY, S(""));
}
static void m_fragments(struct bytes *b)
{
	frame(b, 0x01, S("a\xe2"));
	frame(b, PING, S("p"));
	frame(b, 0x00, S("\x82"));
	frame(b, 0x00, S(""));
	frame(b, 0x80, S("\xac z"));
}
static void m_empty_fragments(struct bytes *b)
{
	frame(b, 0x02, S(""));
	for (int i = 0; i < 20; i++)
		frame(b, 0x00, S(""));
	frame(b, 0x80, S(""));
}
static void m_biggest(struct bytes *b)
{
	frame(b, BINARY, FILL(MAX));
}
static void m_biggest_fragments(struct bytes *b)
{
	frame(b, 0x02, FILL(MAX - 1));
	frame(b, 0x80, FILL(1));
}
static void m_pongs(struct bytes *b)
{
	frame(b, PONG, S("unasked"));
	frame(b, PONG, FILL(125));
}
static void m_close(struct bytes *b)
{
	frame(b, CLOSE, S("\x03\xe8 bye, \xe2\x82\xac"));
}
static void m_close_longest(struct bytes *b)
{
	char p[125] = "\x03\xe9";

	memset(p + 2, 'x', 123);
	frame(b, CLOSE, p, sizeof(p));
}
static void m_close_bare(struct bytes *b)
{
	frame(b, CLOSE, S(""));
}
static void m_close_own(struct bytes *b)
{
	frame(b, CLOSE, S("\x0f\xa1"));
}
static void m_close_after_text(struct bytes *b)
{
	frame(b, TEXT, S("last"));
	frame(b, CLOSE, S("\x03\xe8"));
	frame(b, TEXT, S("too late"));
}
static void m_unmasked(struct bytes *b)
{
	frame_n(b, TEXT, false, 2, S("hi"));
}
static void m_unmasked_empty(struct bytes *b)
{
	frame_n(b, TEXT, false, 0, S(""));
}
static void m_unmasked_close(struct bytes *b)
{
	frame_n(b, CLOSE, false, 2, S("\x03\xe8"));
}
static void m_rsv1(struct bytes *b)
{
	frame(b, 0xc1, S("x"));
}
static void m_rsv3_close(struct bytes *b)
{
	frame(b, 0x98, S("\x03\xe8"));
}
static void m_opcode3(struct bytes *b)
{
	frame(b, 0x83, S("x"));
}
static void m_opcode_f(struct bytes *b)
{
	frame(b, 0x8f, S("x"));
}
static void m_lone_continuation(struct bytes *b)
{
	frame(b, 0x80, S("x"));
}
static void m_text_in_fragments(struct bytes *b)
{
	frame(b, 0x01, S("a"));
	frame(b, TEXT, S("b"));
}
static void m_ping_fragmented(struct bytes *b)
{
	frame(b, 0x09, S("a"));
}
static void m_close_fragmented(struct bytes *b)
{
	frame(b, 0x08, S("\x03\xe8"));
}
static void m_ping_long(struct bytes *b)
{
	frame(b, PING, FILL(126));
}
static void m_close_long(struct bytes *b)
{
	frame(b, CLOSE, FILL(126));
}
static void m_close_one(struct bytes *b)
{
	frame(b, CLOSE, S("\x03"));
}
static void m_close_999(struct bytes *b)
{
	frame(b, CLOSE, S("\x03\xe7"));
}
static void m_close_1005(struct bytes *b)
{
	frame(b, CLOSE, S("\x03\xed"));
}
static void m_close_1006(struct bytes *b)
{
	frame(b, CLOSE, S("\x03\xee"));
}
static void m_close_65535(struct bytes *b)
{
	frame(b, CLOSE, S("\xff\xff"));
}
static void m_close_bad_text(struct bytes *b)
{
	frame(b, CLOSE, S("\x03\xe8 \xc3("));
}
static void m_close_cut_text(struct bytes *b)
{
	frame(b, CLOSE, S("\x03\xe8 \xe2\x82"));
}
static void m_too_big(struct bytes *b)
{
	frame(b, BINARY, FILL(MAX + 1));
}
static void m_too_big_fragments(struct bytes *b)
{
	frame(b, 0x02, FILL(MAX));
	frame(b, 0x80, FILL(1));
}
static void m_huge(struct bytes *b)
{
	frame_n(b, BINARY, true, 0x7fffffffffffffff, S("x"));
}
static void m_huge_sign(struct bytes *b)
{
	frame_n(b, BINARY, true, 0xffffffffffffffff, S("x"));
}
static void m_not_minimal(struct bytes *b)
{
	memcpy(b->p, "\x81\xfe\x00\x05", 4);
	memset(b->p + 4, 0, 9);
	b->n = 13;
}
static void m_not_minimal64(struct bytes *b)
{
	memcpy(b->p, "\x81\xff\0\0\0\0\0\0\0\x05", 10);
	memset(b->p + 10, 0, 9);
	b->n = 19;
}
static void m_latin1(struct bytes *b)
{
	frame(b, TEXT, S("caf\xe9!"));
}
static void m_surrogate(struct bytes *b)
{
	frame(b, TEXT, S("\xed\xa0\x80"));
}
static void m_overlong(struct bytes *b)
{
	frame(b, TEXT, S("\xc0\xaf"));
}
static void m_cut_text(struct bytes *b)
{
	frame(b, TEXT, S("x\xe2\x82"));
}
static void m_cut_fragments(struct bytes *b)
{
	frame(b, 0x01, S("x\xe2"));
	frame(b, 0x80, S("\x82"));
}
static void m_bad_fragments(struct bytes *b)
{
	frame(b, 0x01, S("x\xe2"));
	frame(b, 0x80, S("("));
}

static const struct input inputs[] = {
	{ "text", 0, 1, m_text },
	{ "empty messages", 0, 2, m_empty },
	{ "fragments, a ping between, a character cut in three", 0, 1, m_fragments },
	{ "empty fragments", 0, 1, m_empty_fragments },
	{ "biggest message", 0, 1, m_biggest },
	{ "biggest message in fragments", 0, 1, m_biggest_fragments },
	{ "pongs nobody asked for", 0, 0, m_pongs },
	{ "close", 1000, 0, m_close },
	{ "close with the longest reason", 1001, 0, m_close_longest },
	{ "close without a code", 1, 0, m_close_bare },
	{ "close with a code of its own", 4001, 0, m_close_own },
	{ "data behind a close", 1000, 1, m_close_after_text },
	{ "not masked", 1002, 0, m_unmasked },
	{ "not masked and empty", 1002, 0, m_unmasked_empty },
	{ "close that is not masked", 1002, 0, m_unmasked_close },
	{ "reserved bit", 1002, 0, m_rsv1 },
	{ "reserved bit in a close", 1002, 0, m_rsv3_close },
	{ "opcode 3", 1002, 0, m_opcode3 },
	{ "opcode 15", 1002, 0, m_opcode_f },
	{ "continuation of nothing", 1002, 0, m_lone_continuation },
	{ "text amid fragments", 1002, 0, m_text_in_fragments },
	{ "ping in fragments", 1002, 0, m_ping_fragmented },
	{ "close in fragments", 1002, 0, m_close_fragmented },
	{ "ping too long", 1002, 0, m_ping_long },
	{ "close too long", 1002, 0, m_close_long },
	{ "close with half a code", 1002, 0, m_close_one },
	{ "close 999", 1002, 0, m_close_999 },
	{ "close 1005", 1002, 0, m_close_1005 },
	{ "close 1006", 1002, 0, m_close_1006 },
	{ "close 65535", 1002, 0, m_close_65535 },
	{ "close reason not UTF-8", 1007, 0, m_close_bad_text },
	{ "close reason cut in a character", 1007, 0, m_close_cut_text },
	{ "message too big", 1009, 0, m_too_big },
	{ "fragments too big", 1009, 0, m_too_big_fragments },
	{ "length 2^63-1", 1009, 0, m_huge },
	{ "length 2^64-1", 1002, 0, m_huge_sign },
	{ "length not minimal", 1002, 0, m_not_minimal },
	{ "length not minimal, 64 bits", 1002, 0, m_not_minimal64 },
	{ "text in Latin-1", 1007, 0, m_latin1 },
	{ "text with a surrogate", 1007, 0, m_surrogate },
	{ "text with an overlong form", 1007, 0, m_overlong },
	{ "text that ends in a character", 1007, 0, m_cut_text },
	{ "fragments that end in a character", 1007, 0, m_cut_fragments },
	{ "fragments that break a character", 1007, 0, m_bad_fragments },
};

/* Sends B cut at CUT (0: byte by byte) and returns whether all came out as I says. */
static bool plays(const struct input *in, const struct bytes *b, size_t cut)
{
	bool good;

	begin(NULL, 0);
	got_len = 0;
	got_eof = false;
	if (cut == 0)
		for (size_t i = 0; i < b->n; i++)
			push(b->p + i, 1);
	push(b->p, cut);
	push(b->p + cut, cut ? b->n - cut : 0);
	for (int i = 0; i < 3; i++)
		turn(0);
	pull();
	good = sent_close() == in->code && messages == in->messages;
	if (!good)
		printf("# cut %zu: close %u, %d messages\n", cut, sent_close(), messages);
	if (in->code == 0) {
		good = good && !closes && ws.state == WS_OPEN;
	} else {
		good = good && got_eof; /* our half is closed behind the close frame */
		(void)shutdown(peer, SHUT_WR);
		run(1000);
		good = good && closes == 1 && close_code == (in->code == 1 ? WS_NO_CODE : in->code);
	}
	end();
	return good;
}

static void test_inputs(void)
{
	static struct bytes b;

	for (size_t i = 0; i < ARRAY_LEN(inputs); i++) {
		bool good = true;

		b.n = 0;
		inputs[i].make(&b);
		good = plays(&inputs[i], &b, b.n) && good;
		good = plays(&inputs[i], &b, 0) && good;
		for (size_t cut = 1; cut < b.n && good; cut++)
			if (cut < 200 || cut > b.n - 20)
				good = plays(&inputs[i], &b, cut);
		ok(good, "%s: %u", inputs[i].name, inputs[i].code);
	}
}

static void test_messages(void)
{
	static struct bytes b;
	const char *p;
	size_t n;

	b.n = 0;
	m_fragments(&b);
	begin(b.p, b.n); /* behind the head, in the same packet */
	got_len = 0;
	run(20);
	ok_int(messages, 1, "early bytes are a message");
	ok(last_text && last_len == 6 && !strcmp(last, "a\xe2\x82\xac z"), "fragments are joined");
	ok(frame_at(0, &p, &n) == PONG && n == 1 && *p == 'p',
	   "a ping is answered with its own bytes");
	ok_int(ws_send(&ws, true, "h\xc3\xa4", 3), 0, "text goes out");
	ok_int(ws_send(&ws, false, zeros, 300), 0, "binary goes out");
	ok_int(ws_send(&ws, true, "\xff", 1), -EINVAL, "text that is not UTF-8 does not");
	run(20);
	ok(frame_at(1, &p, &n) == TEXT && n == 3 && !memcmp(p, "h\xc3\xa4", 3), "and arrives");
	ok(frame_at(2, &p, &n) == BINARY && n == 300, "both do");
	ws_close(&ws, WS_GOING_AWAY, "bye");
	ok_int(ws_send(&ws, true, "x", 1), -EPIPE, "nothing is sent behind a close");
	run(20);
	ok_int(sent_close(), 1001, "close from here");
	ok_int(closes, 0, "the client has time to read it");
	push(b.p, b.n); /* dropped */
	(void)shutdown(peer, SHUT_WR);
	run(1000);
	ok(closes == 1 && close_code == 1001 && messages == 1, "closed once, with our code");
	end();
	begin(NULL, 0);
	fd_close(&peer);
	run(1000);
	ok(closes == 1 && close_code == WS_BROKEN, "an end without a close frame is 1006");
	end();
}

static void test_flow(void)
{
	static struct bytes b, pings;
	size_t sent = 0;
	int r;

	begin(NULL, 0);
	got_len = 0;
	while ((r = ws_send(&ws, false, zeros, 16000)) == 0 && sent < (8U << 20))
		sent += 16000;
	ok_int(r, -ENOSPC, "a client that does not read fills the queue");
	ok(ws.queue.len <= QUEUE && ws_room(&ws, 16000) < 16000, "which is bounded");
	pings.n = 0;
	for (int i = 0; i < 500; i++)
		frame(&pings, PING, FILL(100));
	for (int i = 0; i < 4; i++) {
		(void)send(peer, pings.p, pings.n, MSG_DONTWAIT | MSG_NOSIGNAL);
		run(5);
		got_len = 0;
	}
	ok(ws.state == WS_OPEN && ws.queue.len <= QUEUE && ws.in.len <= 16384,
	   "nor do its pings grow anything (%zu queued, %zu read)", ws.queue.len, ws.in.len);
	for (int i = 0; i < 1000 && !rooms; i++) {
		got_len = 0;
		run(1);
	}
	ok_int(rooms, 1, "room is told once");
	end();

	/* a paused reader */
	begin(NULL, 0);
	b.n = 0;
	for (int i = 0; i < 3; i++)
		frame(&b, TEXT, S("one"));
	pause_at_message = true;
	push(b.p, b.n);
	ok_int(messages, 1, "a pause in a message holds the next one back");
	ws_pause(&ws, false);
	turn(10);
	ok_int(messages, 2, "which comes when it is over");
	pause_at_message = false;
	ws_pause(&ws, false);
	turn(10);
	ok_int(messages, 3, "and the last");
	ws_pause(&ws, true);
	for (sent = 0; sent < (64U << 20);) {
		ssize_t k = send(peer, pings.p, pings.n, MSG_DONTWAIT | MSG_NOSIGNAL);

		turn(0);
		if (k < 0)
			break;
		sent += (size_t)k;
	}
	ok(sent < (64U << 20) && ws.in.len <= 16384, "while paused nothing is read");
	end();
}

static void test_time(void)
{
	const char *p;
	size_t n;

	config.ping_ns = 20 * MS;
	config.stall_ns = 400 * MS;
	begin(NULL, 0);
	got_len = 0;
	run(100);
	ok(frame_at(0, &p, &n) == PING && n == 0, "a silent client is pinged");
	run(5000);
	ok(closes == 1 && close_code == WS_BROKEN, "and cut when it stays silent");
	end();
	begin(NULL, 0);
	ws_pause(&ws, true);
	for (int i = 0; i < 700; i++)
		turn(1);
	ok_int(closes, 0, "not while it is us who do not listen");
	while (ws_send(&ws, false, zeros, 16000) == 0)
		;
	for (int i = 0; i < 5000 && !closes; i++)
		turn(1);
	ok(closes == 1 && close_code == WS_BROKEN,
	   "a client that takes nothing is cut all the same");
	end();
	config.ping_ns = 15000 * MS;
	config.stall_ns = 300000 * MS;
	begin(NULL, 0);
	ws_close(&ws, WS_NORMAL, NULL);
	for (int i = 0; i < 5000 && !closes; i++)
		turn(1);
	ok(closes == 1 && close_code == WS_NORMAL,
	   "a client that does not close is not waited for long");
	end();
}

/* --- behind a server --- */
static struct httpd *server;
static struct httpd_req *upgraded;
static int ends;
static uint16_t port;

static void http_closed(void *arg, unsigned code)
{
	on_closed(arg, code);
	httpd_upgrade_done(upgraded);
}

static struct ws_config http_config;

static void on_upgrade(void *arg, int fd, const char *p, size_t n)
{
	if (ws_start(&ws, &loop, fd, &http_config, p, n) < 0)
		abort();
	upgraded = arg;
}

static void on_end(void *arg)
{
	(void)arg;
	if (upgraded)
		ws_stop(&ws);
	upgraded = NULL;
	ends++;
}

static void get_ws(struct httpd_req *r)
{
	if (!ws_handshake(r))
		return;
	httpd_on_end(r, on_end, r);
	httpd_reply_upgrade(r, "websocket", on_upgrade, r);
}

static const struct httpd_route routes[] = {
	{ "GET", "/ws", HTTPD_BODY_NONE, 0, get_ws, 0 },
	{ "", NULL, HTTPD_BODY_NONE, 0, NULL, 0 },
};

static bool admit(struct httpd_req *r, const struct httpd_route *route)
{
	(void)route;
	if (httpd_header(r, "Authorization"))
		return true;
	httpd_reply_error(r, 401, "Unauthorized");
	return false;
}

static void serve(void)
{
	struct httpd_config c = {
		.name = "test", .routes = routes, .max_conns = 10, .idle_s = 5, .admit = admit
	};
	struct sockaddr_in in;
	socklen_t len = sizeof(in);

	http_config = config;
	http_config.closed = http_closed;
	if (httpd_listen_tcp("127.0.0.1", 0, &c.listen_fd) < 0 ||
	    getsockname(c.listen_fd, (struct sockaddr *)&in, &len) < 0 ||
	    httpd_start(&loop, &c, &server) < 0)
		abort();
	port = ntohs(in.sin_port);
}

static void dial(void)
{
	struct sockaddr_in in = { .sin_family = AF_INET,
				  .sin_port = htons(port),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };

	fd_close(&peer);
	for (int i = 0; i < 2000 && httpd_connections(server); i++)
		turn(1); /* there is one ws for all */
	peer = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (peer < 0 || connect(peer, (struct sockaddr *)&in, sizeof(in)) < 0 ||
	    fd_set_nonblock(peer, true) < 0)
		abort();
	messages = closes = ends = 0;
	got_len = 0;
	got[0] = '\0';
	got_eof = false;
}

#define KEY  "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
#define V13  "Sec-WebSocket-Version: 13\r\n"
#define UP   "Upgrade: websocket\r\nConnection: Upgrade\r\n"
#define AUTH "Authorization: Bearer t\r\n"
#define GET  "GET /ws HTTP/1.1\r\nHost: h:1\r\n"
#define GOOD GET AUTH UP KEY V13

static int ask(const char *head)
{
	dial();
	push(head, strlen(head));
	for (int i = 0; i < 2000 && !strstr(got, "\r\n\r\n"); i++) {
		turn(1);
		pull();
		got[got_len] = '\0';
		if (got_eof)
			break;
	}
	return !strncmp(got, "HTTP/1.1 ", 9) ? (int)strtol(got + 9, NULL, 10) : 0;
}

static const struct {
	const char *name, *head;
	int status;
} heads[] = {
	{ "no token", GET UP KEY V13 "\r\n", 401 },
	{ "a plain request", GET AUTH "\r\n", 426 },
	{ "no Connection", GET AUTH "Upgrade: websocket\r\n" KEY V13 "\r\n", 426 },
	{ "another protocol", GET AUTH "Upgrade: h2c\r\nConnection: Upgrade\r\n" KEY V13 "\r\n",
	  426 },
	{ "HTTP/1.0", "GET /ws HTTP/1.0\r\n" AUTH UP KEY V13 "\r\n", 426 },
	{ "version 8", GET AUTH UP KEY "Sec-WebSocket-Version: 8\r\n\r\n", 426 },
	{ "no version", GET AUTH UP KEY "\r\n", 426 },
	{ "no key", GET AUTH UP V13 "\r\n", 400 },
	{ "short key", GET AUTH UP V13 "Sec-WebSocket-Key: AAAA\r\n\r\n", 400 },
	{ "key that is no base64",
	  GET AUTH UP V13 "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZ!==\r\n\r\n", 400 },
	{ "a body", GOOD "Content-Length: 2\r\n\r\nxx", 400 },
	{ "a page of another site", GOOD "Origin: https://evil.example\r\n\r\n", 403 },
	{ "an opaque origin", GOOD "Origin: null\r\n\r\n", 403 },
	{ "two hosts", GOOD "Host: x\r\n\r\n", 400 },
	{ "its own page", GOOD "Origin: http://h:1\r\n\r\n", 101 },
	{ "more in Connection",
	  GET AUTH "Upgrade: WebSocket\r\nConnection: keep-alive, Upgrade\r\n" KEY V13 "\r\n",
	  101 },
	{ "RFC 6455's example", GOOD "\r\n", 101 },
};

static void test_server(void)
{
	static struct bytes b;
	const char *p;
	size_t n, head;

	serve();
	for (size_t i = 0; i < ARRAY_LEN(heads); i++)
		ok_int(ask(heads[i].head), heads[i].status, heads[i].name);
	ok(strstr(got, "\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n") != NULL,
	   "the accept value is the RFC's");
	head = (size_t)(strstr(got, "\r\n\r\n") + 4 - got);
	b.n = 0;
	m_fragments(&b);
	push(b.p, b.n);
	turn(10);
	pull();
	memmove(got, got + head, got_len - head);
	got_len -= head;
	ok(messages == 1 && frame_at(0, &p, &n) == PONG, "frames go both ways");
	b.n = 0;
	m_close(&b);
	push(b.p, b.n);
	for (int i = 0; i < 2000 && !got_eof; i++) {
		turn(1);
		pull();
	}
	ok_int(sent_close(), 1000, "the close is answered");
	fd_close(&peer);
	for (int i = 0; i < 2000 && httpd_connections(server); i++)
		turn(1);
	ok(ends == 1 && closes == 1 && httpd_connections(server) == 0,
	   "and then the connection is the server's no more");
	ok_int(ask(GOOD "\r\n\x89\x80"
			"abcd"),
	       101, "a frame in the packet of the head");
	for (int i = 0; i < 2000 && !memchr(got, PONG & 0xff, got_len); i++) {
		turn(1);
		pull();
	}
	ok(memmem(got, got_len, "\r\n\r\n\x8a\0", 6) != NULL, "is answered");
	ends = 0;
	httpd_stop(server);
	ok_int(ends, 1, "the server stops with an open WebSocket");
	fd_close(&peer);
}

int main(void)
{
	peer = -1;
	memset(zeros, 'z', sizeof(zeros));
	if (loop_init(&loop) < 0)
		return 1;
	test_inputs();
	test_messages();
	test_flow();
	test_time();
	test_server();
	loop_done(&loop);
	return tap_done();
}
