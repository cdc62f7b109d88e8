/* SPDX-License-Identifier: Apache-2.0 */
/* A peer that says the hello correctly and then sends what it should not. */
#include <signal.h>

#include "chan_pair.h"

static struct user users[2];
static size_t allow = SIZE_MAX; /* what the host's stream reads */

/* A frame (RFC 9113 §4.1) of LEN bytes of payload; returns its length. */
static size_t frame(char *out, unsigned type, unsigned flags, unsigned stream, const void *p,
		    size_t len)
{
	char head[9] = { (char)(len >> 16),    (char)(len >> 8),    (char)len,
			 (char)type,	       (char)flags,	    (char)(stream >> 24),
			 (char)(stream >> 16), (char)(stream >> 8), (char)stream };

	memcpy(out, head, 9);
	memcpy(out + 9, p, len);
	return 9 + len;
}

enum { DATA, HEADERS, PRIORITY, RST, SETTINGS, PUSH, PING, GOAWAY, WINDOW, CONTINUATION };

/* One literal field without indexing (RFC 7541 §6.2.2). */
static size_t literal(char *out, const char *name, const char *value)
{
	size_t n = strlen(name), v = strlen(value);

	out[0] = 0;
	out[1] = (char)n;
	memcpy(out + 2, name, n);
	out[2 + n] = (char)v;
	memcpy(out + 3 + n, value, v);
	return 3 + n + v;
}

/* Reads from FD until a line that begins with WORD; copies its 32 digits. */
static bool read_nonce(int fd, const char *word, char nonce[33])
{
	char line[128];
	size_t n = 0;

	for (int64_t end = loop_now() + 10000000000LL; loop_now() < end;) {
		char c;

		(void)!loop_once(&loop, 0);
		if (read(fd, &c, 1) != 1)
			continue;
		if (c == (char)0xff)
			continue;
		if (c != '\n') {
			line[n++ % sizeof(line)] = c;
			continue;
		}
		line[n % sizeof(line)] = '\0';
		if (!strncmp(line, word, strlen(word)) && n >= strlen(word) + 32) {
			snprintf(nonce, 33, "%.32s", line + strlen(word));
			return true;
		}
		n = 0;
	}
	return false;
}

static int fake; /* the hostile end's descriptor */

static void start_real(enum chan_side side)
{
	struct end *e = side == CHAN_HOST ? &host : &guest;
	char line[128], nonce[33] = "0123456789abcdef0123456789abcdef";
	int sv[2];

	pair(sv);
	fake = sv[1];
	end_start(e, side, sv[0]);
	if (side == CHAN_HOST)
		ok(read_nonce(fake, "ASB1 HELLO ", nonce), "the host says hello");
	snprintf(line, sizeof(line), side == CHAN_HOST ? "ASB1 READY %s\n" : "ASB1 HELLO %s\n",
		 nonce);
	ok_int(fd_write_all(fake, line, strlen(line)), 0, "the fake end answers");
	UNTIL(e->up);
}

static void send_bytes(const void *p, size_t n)
{
	const char *c = p;

	while (n) {
		ssize_t k = write(fake, c, n < 4096 ? n : 4096);
		char sink[4096];

		if (k > 0) {
			c += k;
			n -= (size_t)k;
		}
		(void)!loop_once(&loop, 0);
		if (n % 3 == 0)
			(void)!read(fake, sink, sizeof(sink));
	}
}

static void stop_real(struct end *e)
{
	chan_free(e->c);
	e->c = NULL;
	fd_close(&e->fd);
	fd_close(&fake);
}

/* WHAT ends the session of the host, and the host says hello again. */
static void host_survives(const char *what, const void *p, size_t n)
{
	char nonce[33], empty[16];
	size_t k = frame(empty, SETTINGS, 0, 0, "", 0);

	start_real(CHAN_HOST);
	send_bytes(empty, k);
	dial(&users[0], 80);
	users[0].allowed = allow;
	(void)!loop_once(&loop, 0);
	send_bytes(p, n);
	UNTIL(host.down);
	ok(host.down >= 1 && users[0].closed == 1, "%s: the host ends the session (%s)", what,
	   host.why);
	ok(read_nonce(fake, "ASB1 HELLO ", nonce), "%s: and says hello again", what);
	stop_real(&host);
}

static void test_hostile_guest(void)
{
	static char b[3 << 20], zeros[16384];
	char h[64];
	size_t n, hl;

	hl = literal(h, ":status", "200");
	host_survives("HEADERS of a stream that was not opened", b, frame(b, HEADERS, 4, 3, h, hl));
	host_survives("DATA of a stream that never was", b, frame(b, DATA, 0, 9, "x", 1));
	host_survives("HEADERS of one", b, frame(b, HEADERS, 4, 11, h, hl));
	host_survives("PUSH_PROMISE", b, frame(b, PUSH, 4, 1, "\0\0\0\2\0", 5));
	host_survives("PUSH_PROMISE for stream 0", b, frame(b, PUSH, 4, 0, "\0\0\0\2\0", 5));
	host_survives("a window of more than 2^31", b,
		      frame(b, WINDOW, 0, 0, "\x7f\xff\xff\xff", 4));
	host_survives("SETTINGS of 5 bytes", b, frame(b, SETTINGS, 0, 0, "\0\3\0\0\0", 5));
	host_survives("an orderly GOAWAY that nobody asked for", b,
		      frame(b, GOAWAY, 0, 0, "\0\0\0\0\0\0\0\0", 8));
	host_survives("bad HPACK", b, frame(b, HEADERS, 4, 1, "\xff\xff\xff\xff\xff\xff", 6));
	memset(b, 0xff, sizeof(b));
	host_survives("a frame of 16 MiB", b, 1000);
	n = frame(b, HEADERS, 0, 1, h, hl);
	for (int i = 0; i < 2000; i++)
		n += frame(b + n, CONTINUATION, 0, 1, h, hl);
	host_survives("2000 CONTINUATIONs", b, n);
	n = 0;
	for (int i = 0; i < 20000; i++)
		n += frame(b + n, PING, 0, 0, "12345678", 8);
	n += frame(b + n, DATA, 0, 9, "x", 1);
	host_survives("20000 PINGs", b, n);
	n = frame(b, HEADERS, 4, 1, h, hl);
	while (n < sizeof(b) - 20000)
		n += frame(b + n, DATA, 0, 1, zeros, sizeof(zeros));
	n += frame(b + n, DATA, 0, 9, "x", 1);
	allow = 0;
	host_survives("more DATA than the window", b, n);
}

static const char magic[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/* The guest refuses the request by RST_STREAM or ends the session; its user sees no CONNECT. */
static void guest_refuses(const char *what, const char *fields[][2], size_t count)
{
	char b[4096], h[2048];
	size_t n = 0, hl = 0;
	int before;

	for (size_t i = 0; i < count; i++)
		hl += literal(h + hl, fields[i][0], fields[i][1]);
	start_real(CHAN_GUEST);
	before = guest.n_users;
	memcpy(b, magic, sizeof(magic) - 1);
	n = sizeof(magic) - 1;
	n += frame(b + n, SETTINGS, 0, 0, "", 0);
	n += frame(b + n, HEADERS, 4, 1, h, hl);
	send_bytes(b, n);
	for (int i = 0; i < 5; i++)
		(void)!loop_once(&loop, 1);
	ok(guest.n_users == before, "%s: refused", what);
	stop_real(&guest);
}

static void test_hostile_host(void)
{
	const char *get[][2] = { { ":method", "GET" },
				 { ":scheme", "http" },
				 { ":authority", "127.0.0.1:80" },
				 { ":path", "/" } };
	const char *other[][2] = { { ":method", "CONNECT" }, { ":authority", "10.0.0.1:80" } };
	const char *noport[][2] = { { ":method", "CONNECT" }, { ":authority", "127.0.0.1:" } };
	const char *zero[][2] = { { ":method", "CONNECT" }, { ":authority", "127.0.0.1:0" } };
	const char *big[][2] = { { ":method", "CONNECT" }, { ":authority", "127.0.0.1:65536" } };
	const char *space[][2] = { { ":method", "CONNECT" }, { ":authority", "127.0.0.1: 80" } };
	const char *more[][2] = { { ":method", "CONNECT" },
				  { ":authority", "127.0.0.1:80" },
				  { "x", "y" } };
	const char *none[][2] = { { ":method", "CONNECT" } };
	const char *good[][2] = { { ":method", "CONNECT" }, { ":authority", "127.0.0.1:80" } };
	char b[256], h[128];
	size_t n = sizeof(magic) - 1, hl;

	guest_refuses("GET", get, 4);
	guest_refuses("another address", other, 2);
	guest_refuses("no port", noport, 2);
	guest_refuses("port 0", zero, 2);
	guest_refuses("port 65536", big, 2);
	guest_refuses("a space", space, 2);
	guest_refuses("another field", more, 3);
	guest_refuses("no authority", none, 1);
	start_real(CHAN_GUEST);
	hl = literal(h, good[0][0], good[0][1]);
	hl += literal(h + hl, good[1][0], good[1][1]);
	memcpy(b, magic, n);
	n += frame(b + n, SETTINGS, 0, 0, "", 0);
	n += frame(b + n, HEADERS, 4, 1, h, hl);
	send_bytes(b, n);
	UNTIL(guest.n_users);
	ok_int(guest.n_users, 1, "the same by hand, but right, is taken");
	stop_real(&guest);
}

int main(void)
{
	(void)signal(SIGPIPE, SIG_IGN);
	if (loop_init(&loop) < 0)
		return 1;
	test_hostile_guest();
	test_hostile_host();
	loop_done(&loop);
	return tap_done();
}
