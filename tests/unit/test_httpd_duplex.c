/* SPDX-License-Identifier: Apache-2.0 */
#include "httpd_client.h"

/* Streamed answers that begin before the request's body has ended: their limits, and their framing. */

#define LIMIT_S 1

static struct httpd_req *req;
static size_t left, budget; /* of the answer; what it may give before it waits */
static int ended;

static void on_end(void *arg)
{
	(void)arg;
	ended++;
	req = NULL;
}

static ssize_t pull(void *arg, char *p, size_t max)
{
	size_t n = budget < left ? budget : left;

	(void)arg;
	if (left == 0)
		return HTTPD_PULL_END;
	n = n < max ? n : max;
	memset(p, 'x', n);
	left -= n;
	budget -= n;
	return n ? (ssize_t)n : HTTPD_PULL_LATER;
}

static ssize_t take(void *arg, const char *p, size_t n)
{
	(void)arg;
	(void)p;
	return (ssize_t)n;
}

static void on_request(struct httpd_req *r)
{
	req = r;
	httpd_on_end(r, on_end, NULL);
	httpd_set_sink(r, take, NULL);
	httpd_in_duplex(r);
	httpd_set_timeout(r, LIMIT_S);
}

static const struct httpd_route routes[] = {
	{ "POST", "/", HTTPD_BODY_STREAM, 0, on_request, HTTPD_OPEN },
	{ "HEAD", "/", HTTPD_BODY_STREAM, 0, on_request, HTTPD_OPEN },
	{ "", NULL, HTTPD_BODY_NONE, 0, NULL, 0 },
};

/* A connection with half of a body, and the beginning of an answer of N bytes. */
static int begin(const char *method, size_t n, int64_t length)
{
	int fd = dial();
	char head[128];

	left = n;
	budget = ended = 0;
	(void)snprintf(head, sizeof(head),
		       "%s / HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\nhalf", method);
	feed(fd, head, strlen(head), SIZE_MAX);
	for (int i = 0; !req && i < 5000; i++)
		spin(1);
	if (!req)
		abort();
	httpd_reply_stream(req, 200, NULL, length, pull, NULL);
	return fd;
}

static void test_slow_answer(void)
{
	AUTO_FD fd = begin("POST", 8, 8);

	for (int i = 0; req && i < 8; i++) {
		budget = 1;
		httpd_wake(req);
		spin(LIMIT_S * 400);
	}
	ok_int(receive(fd, true), 200, "an answer goes on while the body does not");
	ok_str(body_of(), "xxxxxxxx", "for longer than the client may be silent");
	ok_int(ended, 1, "and ends");
}

static void test_silence(void)
{
	AUTO_FD fd = begin("POST", 8, 8);

	for (int i = 0; !ended && i < 10; i++)
		spin(LIMIT_S * 1000);
	ok_int(ended, 1, "a connection on which nothing moves is cut");
}

/* The server's side of FD. */
static int peer_of(int fd)
{
	struct sockaddr_in mine, its;
	socklen_t len = sizeof(mine);

	if (getsockname(fd, (struct sockaddr *)&mine, &len) < 0)
		abort();
	for (int i = 0; i < 1024; i++) {
		len = sizeof(its);
		if (getpeername(i, (struct sockaddr *)&its, &len) == 0 &&
		    its.sin_port == mine.sin_port)
			return i;
	}
	abort();
}

/* The socket is full before the answer goes on, so that it takes nothing of it at all. */
static void test_no_reader(void)
{
	AUTO_FD fd = begin("POST", SIZE_MAX, -1);
	static char junk[65536];
	int there = peer_of(fd);

	feed(fd, S("rest.."), SIZE_MAX); /* so that nothing else has a limit */
	spin(100);
	for (size_t n = sizeof(junk); n > 0;) {
		if (send(there, junk, n, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0)
			continue;
		n /= 2;
		spin(10);
	}
	budget = 1;
	httpd_wake(req);
	for (int i = 0; !ended && i < 10; i++)
		spin(LIMIT_S * 1000);
	ok_int(ended, 1, "a client that takes nothing of an answer is cut");
}

static void test_head(void)
{
	AUTO_FD fd = begin("HEAD", 100, -1);

	budget = 100;
	httpd_wake(req);
	ok_int(receive(fd, true), 200, "an answer to HEAD, before its body has ended");
	ok_str(body_of(), "", "has no body and no end of chunks");
	ok(!strstr(reply, "Transfer-Encoding"), "and says nothing of any");
	ok_int(ended, 1, "and has ended");
	fd_close(&fd);
	fd = begin("HEAD", 100, 100);
	budget = 100;
	httpd_wake(req);
	ok_int(receive(fd, true), 200, "one with a length");
	ok(strstr(reply, "\r\nContent-Length: 100\r\n") && *body_of() == '\0', "tells it");
}

int main(void)
{
	serve((struct httpd_config){ .routes = routes });
	test_slow_answer();
	test_silence();
	test_no_reader();
	test_head();
	httpd_stop(server);
	loop_done(&loop);
	return tap_done();
}
