/* SPDX-License-Identifier: Apache-2.0 */
#include "httpd_client.h"

/* Answers that come later or in pieces, and bodies that are taken in pieces. */

static int ended, hups, hellos;
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
	bool refuse, later, wrong;
	const char *want; /* what comes, when that is to be compared */
} sink;

static ssize_t take(void *arg, const char *p, size_t n)
{
	struct sink *s = arg;
	size_t k = n < s->budget ? n : s->budget;
	char text[32];

	if (n == 0 && s->later)
		return 0;
	if (n == 0) {
		(void)snprintf(text, sizeof(text), "%zu", s->got);
		httpd_reply(s->r, 200, "text/plain", text, strlen(text));
		return 0;
	}
	if (s->refuse) {
		httpd_reply_error(s->r, 410, "enough");
		return 0;
	}
	s->wrong |= s->want && memcmp(s->want + s->got, p, k) != 0;
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

static void post_bulk(struct httpd_req *r)
{
	post_sink(r);
	httpd_in_bulk(r);
}

static void get_hello(struct httpd_req *r)
{
	hellos++;
	httpd_reply(r, 200, "text/plain", "hello", 5);
}

static const struct httpd_route routes[] = {
	{ "GET", "/hello", HTTPD_BODY_NONE, 0, get_hello, HTTPD_OPEN },
	{ "GET", "/later", HTTPD_BODY_NONE, 0, get_later, HTTPD_OPEN },
	{ "GET", "/stream", HTTPD_BODY_NONE, 0, get_stream, HTTPD_OPEN },
	{ "POST", "/sink", HTTPD_BODY_STREAM, 0, post_sink, HTTPD_OPEN },
	{ "POST", "/bulk", HTTPD_BODY_STREAM, 0, post_bulk, HTTPD_OPEN },
	{ "", NULL, HTTPD_BODY_NONE, 0, NULL, 0 },
};

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

/* --- large bodies --- */
#define BULK (3U << 20)

static char request[BULK + 512];

/* The head of a body of BULK bytes, then the body, then another request. */
static size_t make_request(void)
{
	static const char next[] = "GET /hello HTTP/1.1\r\nHost: h\r\n\r\n";
	size_t n = (size_t)snprintf(request, sizeof(request),
				    "POST /bulk HTTP/1.1\r\nHost: h\r\nContent-Length: %u\r\n\r\n",
				    BULK);

	for (size_t i = 0; i < BULK; i++)
		request[n + i] = (char)(i * 31 >> 8);
	memcpy(request + n + BULK, next, sizeof(next));
	return n;
}

static void test_bulk(void)
{
	size_t n = make_request();
	AUTO_FD fd = dial();

	spin(50); /* the last of those before */
	ended = hellos = 0;
	sink = (struct sink){ .budget = SIZE_MAX, .want = request + n };
	feed(fd, request, n + BULK + 36, SIZE_MAX);
	ok_int(receive(fd, true), 200, "a large body");
	ok(!strncmp(body_of(), "3145728", 7) && !sink.wrong, "arrives whole");
	ok(strstr(reply, "Connection: close\r\n") && reply_eof,
	   "and the connection ends with its answer");
	fd_close(&fd);
	spin(50);
	ok(ended == 1 && hellos == 0, "without another request");
	ok_int(httpd_connections(server), 0, "nothing is left of it");
	fd = dial();
	sink = (struct sink){ .budget = SIZE_MAX, .want = request + n };
	feed(fd, request, n + BULK, 1021);
	ok(receive(fd, true) == 200 && !sink.wrong, "the same in small pieces");
}

/* A client that has sent the head, of N bytes, and half of the body. */
static int half_sent(size_t n)
{
	int fd = dial();

	spin(50); /* the last of those before */
	ended = 0;
	sink = (struct sink){ .budget = SIZE_MAX };
	feed(fd, request, n + BULK / 2, SIZE_MAX);
	return fd;
}

static void test_bulk_cut(void)
{
	size_t n = make_request();
	AUTO_FD fd = half_sent(n);

	spin(30);
	ok(ended == 0 && sink.got == BULK / 2, "half of a large body is waited with");
	fd_close(&fd);
	spin(50);
	ok(ended == 1 && httpd_connections(server) == 0, "until the client goes");
	fd = half_sent(n);
	sink.refuse = true;
	feed(fd, request + n + BULK / 2, 1000, SIZE_MAX);
	ok_int(receive(fd, true), 410, "an answer in the middle of it arrives");
	fd_close(&fd);
	fd = dial();
	spin(50);
	ended = 0;
	sink = (struct sink){ .budget = BULK / 2 };
	feed(fd, request, n + BULK, SIZE_MAX);
	(void)receive(fd, true);
	ok(reply_eof && reply_len == 0, "a sink that fails cuts the connection");
	fd_close(&fd);
	spin(50);
	ok_int(ended, 1, "and its request ends once");
}

static void test_bulk_later(void)
{
	size_t n = make_request();
	AUTO_FD fd = dial();

	sink = (struct sink){ .budget = SIZE_MAX, .later = true };
	feed(fd, request, n + BULK, SIZE_MAX);
	spin(50);
	ok_int(sink.got, BULK, "a body has been read");
	httpd_reply_error(sink.r, 507, "no room");
	ok_int(receive(fd, true), 507, "and may be answered later");
}

static void test_bulk_idle(void)
{
	AUTO_FD fd = half_sent(make_request());

	for (int i = 0; i < 100 && !ended; i++)
		spin(100);
	ok_int(ended, 1, "a client that sends nothing for the idle limit is cut");
}

/* A body of N bytes under HEAD, with TAIL behind it, leaves its connection to the next request. */
static void stays_open(const char *head, size_t n, const char *tail, const char *what)
{
	size_t at = strlen(head);
	AUTO_FD fd = dial();

	memcpy(request, head, at);
	memset(request + at, 'b', n);
	memcpy(request + at + n, tail, strlen(tail));
	sink = (struct sink){ .budget = SIZE_MAX };
	feed(fd, request, at + n + strlen(tail), SIZE_MAX);
	ok(receive(fd, false) == 200 && sink.got == n, "%s arrives", what);
	feed(fd, S("GET /hello HTTP/1.1\r\nHost: h\r\n\r\n"), SIZE_MAX);
	ok_int(receive(fd, false), 200, "and its connection goes on");
}

static void test_not_in_bulk(void)
{
	stays_open("POST /bulk HTTP/1.1\r\nHost: h\r\nContent-Length: 1048576\r\n\r\n", 1 << 20, "",
		   "a body of 1 MiB");
	stays_open("POST /bulk HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
		   "300000\r\n",
		   BULK, "\r\n0\r\n\r\n", "a body in chunks");
}

static void test_stop(void)
{
	AUTO_FD a = dial();
	AUTO_FD b = dial();
	AUTO_FD c = dial();

	spin(50);
	ended = 0;
	feed(a, S("GET /later HTTP/1.1\r\nHost: h\r\n\r\n"), SIZE_MAX);
	stream = (struct stream){ .wait = true };
	feed(b, S("GET /stream HTTP/1.1\r\nHost: h\r\n\r\n"), SIZE_MAX);
	sink = (struct sink){ .budget = SIZE_MAX };
	feed(c, request, make_request() + BULK / 2, SIZE_MAX);
	spin(30);
	ok_int(httpd_connections(server), 3, "three connections wait");
	httpd_stop(server);
	ok_int(ended, 3, "stopping ends all requests");
}

int main(void)
{
	serve((struct httpd_config){ .routes = routes });
	test_later();
	test_stream();
	test_stream_client_gone();
	test_stream_half_closed();
	test_sink();
	test_sink_idle_client();
	test_bulk();
	test_bulk_cut();
	test_bulk_later();
	test_bulk_idle();
	test_not_in_bulk();
	test_stop();
	loop_done(&loop);
	return tap_done();
}
