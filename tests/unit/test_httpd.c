/* SPDX-License-Identifier: Apache-2.0 */
#include "../../lib/httpd.h"

#include <cJSON.h>
#include <errno.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../../lib/fd.h"
#include "../../lib/jsn.h"
#include "../lib/tap.h"

/* A real server on loopback in one loop with its clients, which are plain non-blocking sockets. */

#define IDLE_S 3

static struct loop loop;
static struct httpd *server;
static uint16_t port;
static int ended, hups;
static struct httpd_req *waiting; /* of /later */

static void count_end(void *arg)
{
	(void)arg;
	ended++;
	waiting = NULL;
}

static void count_hup(void *arg)
{
	(void)arg;
	hups++;
}

static void get_hello(struct httpd_req *r)
{
	httpd_reply(r, 200, "text/plain", "hello", 5);
}

/* What the server understood of the target. */
static void get_echo(struct httpd_req *r)
{
	cJSON *j = cJSON_CreateObject();

	(void)jsn_add_str(j, "seg", httpd_segment(r, 0));
	(void)jsn_add_str(j, "a", httpd_query(r, "a"));
	(void)jsn_add_str(j, "b", httpd_query(r, "b"));
	(void)jsn_add_str(j, "h", httpd_header(r, "x-test"));
	httpd_reply_json(r, 200, j);
}

static void post_body(struct httpd_req *r)
{
	size_t n;
	const char *p = httpd_body_data(r, &n);

	httpd_reply(r, 200, "application/octet-stream", p, n);
}

static void get_later(struct httpd_req *r)
{
	waiting = r;
	httpd_on_end(r, count_end, NULL);
}

struct stream {
	struct httpd_req *r;
	size_t left;
	bool wait, abort, once; /* once: wait after the next bytes */
} stream;

static ssize_t pull(void *arg, char *p, size_t max)
{
	struct stream *s = arg;
	size_t n = s->left < max ? s->left : max;

	if (s->wait)
		return HTTPD_PULL_LATER;
	if (n == 0)
		return s->abort ? HTTPD_PULL_ABORT : HTTPD_PULL_END;
	memset(p, 'x', n);
	s->left -= n;
	s->wait = s->once;
	return (ssize_t)n;
}

static void get_stream(struct httpd_req *r)
{
	stream.r = r;
	httpd_on_end(r, count_end, NULL);
	httpd_on_hup(r, count_hup, NULL);
	httpd_reply_stream(r, 200, "text/plain", -1, pull, &stream);
}

struct sink {
	struct httpd_req *r;
	size_t got, budget;
	bool refuse;
} sink;

static ssize_t take(void *arg, const char *p, size_t n)
{
	struct sink *s = arg;
	size_t k = n < s->budget ? n : s->budget;
	char text[32];

	(void)p;
	if (n == 0) {
		(void)snprintf(text, sizeof(text), "%zu", s->got);
		httpd_reply(s->r, 200, "text/plain", text, strlen(text));
		return 0;
	}
	if (s->refuse) {
		httpd_reply_error(s->r, 410, "enough");
		return 0;
	}
	s->got += k;
	s->budget -= k;
	return (ssize_t)k;
}

static void post_sink(struct httpd_req *r)
{
	sink.r = r;
	httpd_on_end(r, count_end, NULL);
	httpd_set_sink(r, take, &sink);
}

static bool admit(struct httpd_req *r, const struct httpd_route *route)
{
	const char *a = httpd_header(r, "Authorization");

	if ((route->flags & HTTPD_OPEN) || (a && !strcmp(a, "Bearer t")))
		return true;
	httpd_reply_error(r, 401, "Unauthorized");
	return false;
}

static const struct httpd_route routes[] = {
	{ "GET", "/hello", HTTPD_BODY_NONE, 0, get_hello, HTTPD_OPEN | HTTPD_HEAD },
	{ "POST", "/hello", HTTPD_BODY_BUFFER, 1 << 20, post_body, HTTPD_OPEN },
	{ "GET", "/e/{}/x", HTTPD_BODY_NONE, 0, get_echo, HTTPD_OPEN },
	{ "POST", "/small", HTTPD_BODY_BUFFER, 10, post_body, HTTPD_OPEN },
	{ "GET", "/later", HTTPD_BODY_NONE, 0, get_later, HTTPD_OPEN },
	{ "GET", "/stream", HTTPD_BODY_NONE, 0, get_stream, HTTPD_OPEN },
	{ "POST", "/sink", HTTPD_BODY_STREAM, 0, post_sink, HTTPD_OPEN },
	{ "POST", "/secret", HTTPD_BODY_BUFFER, 1 << 20, post_body, 0 },
	{ "", NULL, HTTPD_BODY_NONE, 0, NULL, 0 },
};

/* --- clients --- */
static int dial(void)
{
	struct sockaddr_in in = { .sin_family = AF_INET,
				  .sin_port = htons(port),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || connect(fd, (struct sockaddr *)&in, sizeof(in)) < 0 ||
	    fd_set_nonblock(fd, true) < 0)
		abort();
	return fd;
}

static void spin(int ms)
{
	int64_t end = loop_now() + ms * 1000000LL;

	do
		if (loop_once(&loop, 1) < 0)
			abort();
	while (loop_now() < end);
}

/* Sends in pieces of STEP bytes, running the loop in between. */
static void feed(int fd, const char *p, size_t n, size_t step)
{
	for (size_t at = 0; at < n;) {
		size_t k = n - at < step ? n - at : step;
		ssize_t sent = send(fd, p + at, k, MSG_NOSIGNAL);

		if (sent < 0 && errno != EAGAIN)
			return; /* refused in the middle: the answer tells */
		at += sent > 0 ? (size_t)sent : 0;
		if (loop_once(&loop, 0) < 0)
			abort();
	}
}

static char reply[4 << 20];
static size_t reply_len;
static bool reply_eof;

/* Reads until the answer holds WANT bytes of body or the end (deadline 5 s); returns the status, 0
 * when there is none. */
static int receive(int fd, bool to_eof)
{
	int64_t end = loop_now() + 5000000000LL;

	reply_len = 0;
	reply_eof = false;
	while (loop_now() < end && !reply_eof) {
		ssize_t k =
			recv(fd, reply + reply_len, sizeof(reply) - 1 - reply_len, MSG_DONTWAIT);
		const char *body, *cl;

		if (k == 0 || (k < 0 && errno != EAGAIN))
			reply_eof = true;
		reply_len += k > 0 ? (size_t)k : 0;
		reply[reply_len] = '\0';
		body = strstr(reply, "\r\n\r\n");
		cl = strstr(reply, "Content-Length: ");
		if (body && cl && cl < body && !to_eof &&
		    reply_len - (size_t)(body + 4 - reply) >= strtoul(cl + 16, NULL, 10))
			break;
		if (body && !cl && !to_eof && strstr(body, "\r\n0\r\n\r\n"))
			break;
		if (loop_once(&loop, 1) < 0)
			abort();
	}
	return !strncmp(reply, "HTTP/1.1 ", 9) ? (int)strtol(reply + 9, NULL, 10) : 0;
}

static const char *body_of(void)
{
	const char *b = strstr(reply, "\r\n\r\n");

	return b ? b + 4 : "";
}

static int ask_step(const char *req, size_t n, size_t step)
{
	AUTO_FD fd = dial();

	feed(fd, req, n, step);
	return receive(fd, false);
}

static int ask(const char *req)
{
	return ask_step(req, strlen(req), SIZE_MAX);
}

/* --- what must be refused --- */
#define P    "POST /hello HTTP/1.1\r\nHost: h\r\n"
#define T    "Transfer-Encoding: chunked\r\n\r\n"
#define S(s) s, sizeof(s) - 1

static const struct {
	const char *name, *req;
	size_t n;
	int status;  /* 0: closed without an answer */
	int lenient; /* what the library makes of it, see docs/security-model.md; 0 = nothing */
} hostile[] = {
	{ "valid GET", S("GET /hello HTTP/1.1\r\nHost: h\r\n\r\n"), 200, 0 },
	{ "valid POST CL", S(P "Content-Length: 3\r\n\r\nabc"), 200, 0 },
	{ "valid POST chunked", S(P T "3\r\nabc\r\n0\r\n\r\n"), 200, 0 },
	{ "bare LF everywhere", S("GET /hello HTTP/1.1\nHost: h\n\n"), 400, 0 },
	{ "bare CR in value", S("GET /hello HTTP/1.1\r\nHost: h\r\nA: b\rc\r\n\r\n"), 400, 0 },
	{ "NUL in value", S("GET /hello HTTP/1.1\r\nHost: h\r\nA: b\0c\r\n\r\n"), 400, 0 },
	{ "control byte in value", S("GET /hello HTTP/1.1\r\nHost: h\r\nA: b\001c\r\n\r\n"), 400,
	  0 },
	{ "space before colon", S("GET /hello HTTP/1.1\r\nHost: h\r\nA : b\r\n\r\n"), 400, 0 },
	{ "empty header name", S("GET /hello HTTP/1.1\r\nHost: h\r\n: b\r\n\r\n"), 400, 0 },
	{ "obs-fold", S("GET /hello HTTP/1.1\r\nHost: h\r\nA: b\r\n c\r\n\r\n"), 400, 0 },
	{ "bad char in name", S("GET /hello HTTP/1.1\r\nHost: h\r\nA(b: c\r\n\r\n"), 400, 0 },
	{ "header without colon", S("GET /hello HTTP/1.1\r\nHost: h\r\nAbc\r\n\r\n"), 400, 0 },
	{ "WS before first header", S("GET /hello HTTP/1.1\r\n Host: h\r\nHost: h\r\n\r\n"), 400,
	  0 },
	{ "dup CL differing", S(P "Content-Length: 3\r\nContent-Length: 4\r\n\r\nabc"), 400, 0 },
	{ "dup CL same", S(P "Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc"), 400, 0 },
	{ "CL list", S(P "Content-Length: 3, 3\r\n\r\nabc"), 400, 0 },
	{ "CL + TE", S(P "Content-Length: 3\r\n" T "3\r\nabc\r\n0\r\n\r\n"), 400, 0 },
	{ "TE xchunked", S(P "Transfer-Encoding: xchunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"), 400, 0 },
	{ "TE chunked, identity", S(P "Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n"), 400,
	  0 },
	{ "TE twice", S(P "Transfer-Encoding: chunked\r\n" T "3\r\nabc\r\n0\r\n\r\n"), 400, 0 },
	{ "TE in HTTP/1.0", S("POST /hello HTTP/1.0\r\nHost: h\r\n" T "3\r\nabc\r\n0\r\n\r\n"), 400,
	  0 },
	{ "CL +3", S(P "Content-Length: +3\r\n\r\nabc"), 400, 0 },
	{ "CL -1", S(P "Content-Length: -1\r\n\r\nabc"), 400, 0 },
	{ "CL 0x3", S(P "Content-Length: 0x3\r\n\r\nabc"), 400, 0 },
	{ "CL 3 4", S(P "Content-Length: 3 4\r\n\r\nabc"), 400, 0 },
	{ "CL empty", S(P "Content-Length: \r\n\r\nabc"), 400, 0 },
	{ "CL 2^64+3", S(P "Content-Length: 18446744073709551619\r\n\r\nabc"), 413, 0 },
	{ "CL over the cap", S(P "Content-Length: 1048577\r\n\r\nabc"), 413, 0 },
	{ "CL 2^63", S(P "Content-Length: 9223372036854775808\r\n\r\nabc"), 413, 0 },
	{ "chunk 0x3", S(P T "0x3\r\nabc\r\n0\r\n\r\n"), 400, 0 },
	{ "chunk +3", S(P T "+3\r\nabc\r\n0\r\n\r\n"), 400, 0 },
	{ "chunk ' 3'", S(P T " 3\r\nabc\r\n0\r\n\r\n"), 400, 0 },
	{ "chunk size bare LF", S(P T "3\nabc\r\n0\r\n\r\n"), 400, 200 },
	{ "chunk ext bare LF", S(P T "3;a\nabc\r\n0\r\n\r\n"), 400, 200 },
	{ "chunk data no CRLF", S(P T "3\r\nabcd\r\n0\r\n\r\n"), 400, 0 },
	{ "chunk overflow", S(P T "fffffffffffffffff\r\nabc\r\n0\r\n\r\n"), 413, 0 },
	{ "no Host 1.1", S("GET /hello HTTP/1.1\r\n\r\n"), 400, 0 },
	{ "two Host", S("GET /hello HTTP/1.1\r\nHost: h\r\nHost: h\r\n\r\n"), 400, 0 },
	{ "version HTTP/1.1x", S("GET /hello HTTP/1.1x\r\nHost: h\r\n\r\n"), 400, 0 },
	{ "version HTTP/9.9", S("GET /hello HTTP/9.9\r\nHost: h\r\n\r\n"), 505, 0 },
	{ "no version", S("GET /hello\r\nHost: h\r\n\r\n"), 400, 0 },
	{ "double SP", S("GET  /hello HTTP/1.1\r\nHost: h\r\n\r\n"), 400, 0 },
	{ "double SP behind", S("GET /hello  HTTP/1.1\r\nHost: h\r\n\r\n"), 0, 0 },
	{ "ctl in target", S("GET /hel\001lo HTTP/1.1\r\nHost: h\r\n\r\n"), 400, 0 },
	{ "NUL in target", S("GET /hello\0x HTTP/1.1\r\nHost: h\r\n\r\n"), 400, 0 },
	{ "%00 in target", S("GET /e/a%00b/x HTTP/1.1\r\nHost: h\r\n\r\n"), 400, 0 },
	{ "%00 in query", S("GET /hello?a=%00 HTTP/1.1\r\nHost: h\r\n\r\n"), 400, 0 },
	{ "bad escape", S("GET /e/a%zz/x HTTP/1.1\r\nHost: h\r\n\r\n"), 400, 0 },
	{ "cut escape", S("GET /hello?a=%4 HTTP/1.1\r\nHost: h\r\n\r\n"), 400, 0 },
	{ "8-bit target", S("GET /\xff HTTP/1.1\r\nHost: h\r\n\r\n"), 400, 0 },
	{ "absolute form", S("GET http://h/hello HTTP/1.1\r\nHost: h\r\n\r\n"), 400, 0 },
	{ "authority form", S("CONNECT h:80 HTTP/1.1\r\nHost: h\r\n\r\n"), 400, 0 },
	{ "asterisk form", S("OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n"), 400, 0 },
	{ "unknown method", S("BREW /hello HTTP/1.1\r\nHost: h\r\n\r\n"), 501, 0 },
	{ "lower-case method", S("get /hello HTTP/1.1\r\nHost: h\r\n\r\n"), 501, 0 },
	{ "unknown route", S("GET /nothing HTTP/1.1\r\nHost: h\r\n\r\n"), 404, 0 },
	{ "escaped slash is no separator", S("GET /e%2fa/x HTTP/1.1\r\nHost: h\r\n\r\n"), 404, 0 },
	{ "empty segment", S("GET /e//x HTTP/1.1\r\nHost: h\r\n\r\n"), 404, 0 },
	{ "wrong method", S("DELETE /hello HTTP/1.1\r\nHost: h\r\n\r\n"), 405, 0 },
	{ "HEAD where no flag says so", S("HEAD /later HTTP/1.1\r\nHost: h\r\n\r\n"), 405, 0 },
	{ "body over the route's cap",
	  S("POST /small HTTP/1.1\r\nHost: h\r\nContent-Length: 11\r\n\r\n01234567890"), 413, 0 },
	{ "chunks over the route's cap",
	  S("POST /small HTTP/1.1\r\nHost: h\r\n" T "b\r\n01234567890\r\n0\r\n\r\n"), 413, 0 },
	{ "no token", S("POST /secret HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc"), 401,
	  0 },
	{ "TLS hello", S("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\n\n\n\n"), 0, 0 },
};

static void test_hostile(size_t step)
{
	for (size_t i = 0; i < ARRAY_LEN(hostile); i++) {
		int s = ask_step(hostile[i].req, hostile[i].n, step);

		ok(s == hostile[i].status || (hostile[i].lenient && s == hostile[i].lenient),
		   "%s%s: %d%s", hostile[i].name, step == 1 ? ", byte by byte" : "", s,
		   s == hostile[i].status ? "" : ", lenient");
		if (s >= 400 && strstr(reply, "application/json") &&
		    strncmp(hostile[i].req, "HEAD", 4))
			ok(!strncmp(body_of(), "{\"detail\":\"", 11), "  its body is a detail");
	}
	ok_int(ask("GET /hello HTTP/1.1\r\nHost: h\r\n\r\n"), 200, "the server still answers");
}

static void test_head_limits(void)
{
	static char big[80000];
	size_t n = (size_t)snprintf(big, sizeof(big), "GET /hello HTTP/1.1\r\nHost: h\r\nA: ");
	int s;

	memset(big + n, 'a', 65536);
	memcpy(big + n + 65536, "\r\n\r\n", 5);
	ok_int(ask(big), 431, "a header of 64 KiB");
	memcpy(big + n + 17000, "\r\n\r\n", 5);
	ok_int(ask(big), 431, "a head above 16 KiB");
	n = (size_t)snprintf(big, sizeof(big), "GET /hello HTTP/1.1\r\nHost: h\r\n");
	for (int i = 0; i < 64; i++)
		n += (size_t)snprintf(big + n, sizeof(big) - n, "A%d: b\r\n", i);
	(void)snprintf(big + n, sizeof(big) - n, "\r\n");
	ok_int(ask(big), 431, "65 header fields");
	n = (size_t)snprintf(big, sizeof(big), "GET /hello?");
	memset(big + n, 'a', 9000);
	(void)snprintf(big + n + 9000, sizeof(big) - n - 9000, " HTTP/1.1\r\nHost: h\r\n\r\n");
	s = ask(big);
	ok(s == 414, "a target above 8 KiB: %d", s);
}

/* --- what must work --- */
static void test_target(void)
{
	ok_int(ask("GET /e/a%2fb%20c/x?a=1+2%2B&b HTTP/1.1\r\nHost: h\r\nX-TEST: v\r\n\r\n"), 200,
	       "escapes");
	ok_str(body_of(), "{\"seg\":\"a/b c\",\"a\":\"1 2+\",\"b\":\"\",\"h\":\"v\"}",
	       "are decoded once, and an escaped slash stays inside its segment");
	ok_int(ask("GET /e/%252f/x HTTP/1.1\r\nHost: h\r\n\r\n"), 200, "a double escape");
	ok_str(body_of(), "{\"seg\":\"%2f\",\"a\":null,\"b\":null,\"h\":null}",
	       "is decoded once only");
	ok_int(ask("DELETE /hello HTTP/1.1\r\nHost: h\r\n\r\n"), 405, "405");
	ok(strstr(reply, "Allow: GET, HEAD, POST\r\n") != NULL, "names what is allowed");
	ok_str(body_of(), "{\"detail\":\"Method Not Allowed\"}", "in the original's words");
	ok_int(ask("GET /no HTTP/1.1\r\nHost: h\r\n\r\n"), 404, "404");
	ok_str(body_of(), "{\"detail\":\"Not Found\"}", "in the original's words");
	ok_int(ask("HEAD /hello HTTP/1.1\r\nHost: h\r\n\r\n"), 200, "HEAD");
}

static void test_keep_alive(void)
{
	AUTO_FD fd = dial();
	static const char two[] =
		"GET /hello HTTP/1.1\r\nHost: h\r\n\r\nGET /e/2/x HTTP/1.1\r\nHost: h\r\n\r\n";

	for (int i = 0; i < 3; i++) {
		feed(fd, P "Content-Length: 3\r\n\r\nabc", strlen(P "Content-Length: 3\r\n\r\nabc"),
		     7);
		ok(receive(fd, false) == 200 && !strcmp(body_of(), "abc"),
		   "request %d on one connection", i + 1);
	}
	feed(fd, two, sizeof(two) - 1, SIZE_MAX);
	spin(100);
	(void)receive(fd, false);
	ok(strstr(reply, "hello") && strstr(reply, "\"seg\":\"2\""),
	   "two requests in one segment are answered in order");
}

static void test_later(void)
{
	AUTO_FD fd = dial();

	ended = 0;
	feed(fd, S("GET /later HTTP/1.1\r\nHost: h\r\n\r\n"), SIZE_MAX);
	spin(20);
	ok(waiting != NULL && ended == 0, "a handler that promised is waited for");
	if (waiting)
		httpd_reply_error(waiting, 503, "%s", "late \"x\"");
	ok_int(receive(fd, false), 503, "its answer arrives");
	ok_str(body_of(), "{\"detail\":\"late \\\"x\\\"\"}", "with its text");
	spin(20);
	ok_int(ended, 1, "on_end ran once");
}

static void test_stream(void)
{
	AUTO_FD fd = dial();

	ended = hups = 0;
	stream = (struct stream){ .left = 3000000, .wait = true };
	feed(fd, S("GET /stream HTTP/1.1\r\nHost: h\r\n\r\n"), SIZE_MAX);
	spin(20);
	stream.wait = false;
	httpd_wake(stream.r);
	ok_int(receive(fd, false), 200, "a stream that began after a wait");
	ok(reply_len > 3000000 && strstr(reply + reply_len - 8, "0\r\n\r\n"), "is complete");
	spin(20);
	ok_int(ended, 1, "and ended once");
	stream = (struct stream){ .left = 1000, .abort = true };
	feed(fd, S("GET /stream HTTP/1.1\r\nHost: h\r\n\r\n"), SIZE_MAX);
	(void)receive(fd, true);
	ok(reply_eof && reply_len > 1000 && !strstr(reply + reply_len - 5, "0\r\n\r\n"),
	   "an aborted stream has no end mark");
}

static void test_stream_client_gone(void)
{
	int fd = dial();

	ended = hups = 0;
	stream = (struct stream){ .wait = true };
	feed(fd, S("GET /stream HTTP/1.1\r\nHost: h\r\n\r\n"), SIZE_MAX);
	spin(50);
	ok(recv(fd, reply, sizeof(reply), MSG_DONTWAIT) > 0,
	   "the head of a stream is sent before its first byte");
	(void)close(fd);
	spin(50);
	ok_int(hups, 1, "a client that goes is told to a waiting stream");
	for (int i = 0; i < 2 && !ended; i++) {
		stream.left = 10;
		stream.wait = false;
		httpd_wake(stream.r);
		if (loop_once(&loop, 1) < 0)
			abort();
		stream.wait = true;
		spin(50);
	}
	ok_int(ended, 1, "and is certain at the next bytes");
}

/* A client that has closed its side but reads on is told of once, not after each piece that it gets. */
static void test_stream_half_closed(void)
{
	AUTO_FD fd = dial();

	ended = hups = 0;
	stream = (struct stream){ .wait = true, .once = true };
	feed(fd, S("GET /stream HTTP/1.1\r\nHost: h\r\n\r\n"), SIZE_MAX);
	(void)shutdown(fd, SHUT_WR);
	for (int i = 0; i < 5; i++) {
		spin(20);
		stream.left = 10;
		stream.wait = false;
		httpd_wake(stream.r);
	}
	spin(20);
	ok_int(hups, 1, "the end of its side is told once");
	ok_int(ended, 0, "and does not end the answer");
	stream.left = 0;
	stream.wait = false;
	httpd_wake(stream.r);
	ok_int(receive(fd, true), 200, "which comes to its end");
	ok(reply_eof, "and then the connection ends");
	spin(50);
}

/* The end of what a client sends, together with its last bytes: the connection must not live until the idle limit. */
static void test_end_with_last_bytes(void)
{
	static const char *const halves[] = {
		"G",
		"GET /hello HTTP/1.1\r\nHost: h\r\n",
		"POST /body HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\nabc",
		"POST /body HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab",
		"POST /sink HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\nabc",
		"GET /hello HTTP/1.1\r\nHost: h\r\n\r\n",
		"GET /hello HTTP/1.1\r\nHost: h\r\n\r\nGET /hel",
		"GET /hello HTTP/1.1\r\nHost: h\r\n\r\nGET /hello HTTP/1.1\r\nHost: h\r\n\r\n",
	};
	const char *second;

	spin(50);
	sink = (struct sink){ .budget = 1 << 20 };
	for (size_t i = 0; i < ARRAY_LEN(halves); i++) {
		int fd = dial();
		int64_t start = loop_now();

		(void)send(fd, halves[i], strlen(halves[i]), MSG_NOSIGNAL);
		(void)shutdown(fd, SHUT_WR);
		(void)receive(fd, true);
		spin(20);
		ok(reply_eof && httpd_connections(server) == 0 &&
			   loop_now() - start < IDLE_S * 700000000LL,
		   "the end comes with: %.40s", halves[i]);
		(void)close(fd);
	}
	second = strstr(reply + 1, "HTTP/1.1 200");
	ok(second && !strncmp(reply, "HTTP/1.1 200", 12), "and both of two requests are answered");
}

static void test_phrases(void)
{
	static const int first[] = { 100, 200, 404, 507 };
	static const char *const words[] = { "Continue", "OK", "Not Found",
					     "Insufficient Storage" };

	for (size_t i = 0; i < ARRAY_LEN(first); i++) {
		ok_str(MHD_get_reason_phrase_for((unsigned)first[i]), words[i],
		       "the words of a status");
		ok_int(MHD_get_reason_phrase_len_for((unsigned)first[i]), strlen(words[i]),
		       "and how many bytes they have");
	}
	ok_int(MHD_get_reason_phrase_len_for(418), 0, "none of a status that nobody answers");
	ok_int(MHD_get_reason_phrase_len_for(0), 0, "nor of none");
	ok_int(ask("GET /nothing HTTP/1.1\r\nHost: h\r\n\r\n"), 404, "an answer");
	ok(!strncmp(reply, "HTTP/1.1 404 Not Found\r\n", 24), "has them in its first line");
}

static void test_sink(void)
{
	static char req[300000];
	size_t n = (size_t)
		snprintf(req, sizeof(req),
			 "POST /sink HTTP/1.1\r\nHost: h\r\nContent-Length: 200000\r\n\r\n");
	AUTO_FD fd = dial();

	ended = 0;
	memset(req + n, 'y', 200000);
	sink = (struct sink){ .budget = 1000 };
	feed(fd, req, n + 200000, SIZE_MAX);
	spin(30);
	ok_int(sink.got, 1000, "a sink that is full holds the rest back");
	sink.budget = 1 << 20;
	httpd_wake(sink.r);
	ok_int(receive(fd, false), 200, "and takes it after a wake");
	ok_str(body_of(), "200000", "all of it");
	sink = (struct sink){ .refuse = true };
	feed(fd, req, n + 5000, SIZE_MAX);
	ok_int(receive(fd, true), 410, "an answer in the middle of a body arrives");
	ok_str(body_of(), "{\"detail\":\"enough\"}", "with its text");
	ok(reply_eof, "and the connection ends");
	fd_close(&fd);
	spin(50);
	ok_int(ended, 2, "each request ended once");
}

static void test_sink_idle_client(void)
{
	AUTO_FD fd = dial();

	sink = (struct sink){ .budget = 1 << 20 };
	feed(fd, S("POST /sink HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\nab"), SIZE_MAX);
	spin(30);
	httpd_reply_error(sink.r, 410, "the command has ended");
	ok_int(receive(fd, true), 410, "an answer reaches a client that owes the rest of its body");
}

static void test_stop(void)
{
	AUTO_FD a = dial();
	AUTO_FD b = dial();

	ended = 0;
	feed(a, S("GET /later HTTP/1.1\r\nHost: h\r\n\r\n"), SIZE_MAX);
	stream = (struct stream){ .wait = true };
	feed(b, S("GET /stream HTTP/1.1\r\nHost: h\r\n\r\n"), SIZE_MAX);
	spin(30);
	ok_int(httpd_connections(server), 2, "two connections wait");
	httpd_stop(server);
	ok_int(ended, 2, "stopping ends both requests");
}

static void test_slow_head(void)
{
	AUTO_FD fd = dial();
	static const char head[] = "GET /hello HTTP/1.1\r\nHost: ";
	int64_t start = loop_now();
	char c;
	ssize_t k = -1;

	for (size_t i = 0; k < 0 && i < 100; i++) {
		(void)send(fd, i < sizeof(head) - 1 ? head + i : "h", 1, MSG_NOSIGNAL);
		spin(100);
		k = recv(fd, &c, 1, MSG_DONTWAIT);
		if (k < 0 && errno != EAGAIN)
			k = 0;
	}
	ok(k == 0 && loop_now() - start < 8000000000LL,
	   "a head that trickles in is cut at the idle limit");
}

int main(void)
{
	struct httpd_config c = {
		.name = "test", .routes = routes, .max_conns = 64, .idle_s = IDLE_S, .admit = admit
	};
	struct sockaddr_in in;
	socklen_t len = sizeof(in);

	(void)signal(SIGPIPE, SIG_IGN);
	if (loop_init(&loop) < 0 || httpd_listen_tcp("127.0.0.1", 0, &c.listen_fd) < 0 ||
	    getsockname(c.listen_fd, (struct sockaddr *)&in, &len) < 0 ||
	    httpd_start(&loop, &c, &server) < 0)
		return 1;
	port = ntohs(in.sin_port);
	test_hostile(SIZE_MAX);
	test_hostile(1);
	test_head_limits();
	test_target();
	test_keep_alive();
	test_later();
	test_stream();
	test_stream_client_gone();
	test_stream_half_closed();
	test_end_with_last_bytes();
	test_sink();
	test_sink_idle_client();
	test_slow_head();
	test_phrases();
	ok_int(ask("POST /secret HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer t\r\nContent-Length: 3\r\n\r\nabc"),
	       200, "a token");
	spin(50);
	test_stop();
	loop_done(&loop);
	return tap_done();
}
