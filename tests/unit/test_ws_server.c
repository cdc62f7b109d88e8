/* SPDX-License-Identifier: Apache-2.0 */
#include "ws_peer.h"

/* Behind a real server: the handshake, and what becomes of the connection. */

static struct httpd_req *upgraded;
static int ends;

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

static void start(void)
{
	http_config = config;
	http_config.closed = http_closed;
	serve((struct httpd_config){ .routes = routes, .admit = admit });
}

static void redial(void)
{
	fd_close(&peer);
	for (int i = 0; i < 2000 && httpd_connections(server); i++)
		turn(1); /* there is one ws for all */
	peer = dial();
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

static int shake(const char *head)
{
	redial();
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

	start();
	for (size_t i = 0; i < ARRAY_LEN(heads); i++)
		ok_int(shake(heads[i].head), heads[i].status, heads[i].name);
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
	ok_int(shake(GOOD "\r\n\x89\x80"
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
	test_server();
	loop_done(&loop);
	return tap_done();
}
