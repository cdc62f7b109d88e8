/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_TEST_HTTPD_CLIENT_H
#define ASB_TEST_HTTPD_CLIENT_H

#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../../lib/fd.h"
#include "../../lib/httpd.h"
#include "../lib/tap.h"

/* A real server on loopback in one loop with its clients, which are plain non-blocking sockets. */

#define IDLE_S 3
#define S(s)   s, sizeof(s) - 1

static struct loop loop;
static struct httpd *server;
static uint16_t port;

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

/* The server of CONFIG's routes on a port of its own. */
static void serve(struct httpd_config c)
{
	struct sockaddr_in in;
	socklen_t len = sizeof(in);

	c.name = "test";
	c.max_conns = 64;
	c.idle_s = IDLE_S;
	(void)signal(SIGPIPE, SIG_IGN);
	if (loop_init(&loop) < 0 || httpd_listen_tcp("127.0.0.1", 0, &c.listen_fd) < 0 ||
	    getsockname(c.listen_fd, (struct sockaddr *)&in, &len) < 0 ||
	    httpd_start(&loop, &c, &server) < 0)
		abort();
	port = ntohs(in.sin_port);
}

#endif
