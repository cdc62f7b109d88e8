/* SPDX-License-Identifier: Apache-2.0 */
#include <cJSON.h>
#include <microhttpd.h>

#include "../../lib/jsn.h"
#include "httpd_client.h"

/* Heads: what must be refused, and what is understood of the others. */

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

static ssize_t take(void *arg, const char *p, size_t n)
{
	(void)p;
	if (n == 0)
		httpd_reply(arg, 200, "text/plain", "", 0);
	return (ssize_t)n;
}

static void post_sink(struct httpd_req *r)
{
	httpd_set_sink(r, take, r);
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
	{ "GET", "/later", HTTPD_BODY_NONE, 0, get_hello, HTTPD_OPEN },
	{ "POST", "/sink", HTTPD_BODY_STREAM, 0, post_sink, HTTPD_OPEN },
	{ "POST", "/secret", HTTPD_BODY_BUFFER, 1 << 20, post_body, 0 },
	{ "", NULL, HTTPD_BODY_NONE, 0, NULL, 0 },
};

/* --- what must be refused --- */
#define P "POST /hello HTTP/1.1\r\nHost: h\r\n"
#define T "Transfer-Encoding: chunked\r\n\r\n"

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
	serve((struct httpd_config){ .routes = routes, .admit = admit });
	test_hostile(SIZE_MAX);
	test_hostile(1);
	test_head_limits();
	test_target();
	test_keep_alive();
	test_end_with_last_bytes();
	test_slow_head();
	test_phrases();
	ok_int(ask("POST /secret HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer t\r\nContent-Length: 3\r\n\r\nabc"),
	       200, "a token");
	spin(50);
	httpd_stop(server);
	loop_done(&loop);
	return tap_done();
}
