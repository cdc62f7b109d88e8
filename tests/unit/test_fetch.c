/* SPDX-License-Identifier: Apache-2.0 */
/* LINK: host/aws/aws.c host/aws/arn.c host/aws/call.c host/aws/creds*.c host/aws/endpoint.c host/aws/fetch.c host/aws/xml.c
   host/aws/ini.c host/aws/retry.c host/aws/settings.c host/aws/sigv4.c host/net/?*.c host/backend.c */
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "host/aws/aws.h"
#include "host/aws/call.h"
#include "host/aws/fetch.h"
#include "lib/str.h"
#include "tap.h"

static volatile sig_atomic_t late;

static void on_alarm(int sig)
{
	late = sig;
}

/* A port at which connections come about and nobody ever says a word. */
static int silent_port(uint16_t *ret)
{
	struct sockaddr_in a = { .sin_family = AF_INET };
	socklen_t n = sizeof(a);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (fd < 0 || bind(fd, (const struct sockaddr *)&a, sizeof(a)) < 0 || listen(fd, 16) < 0 ||
	    getsockname(fd, (struct sockaddr *)&a, &n) < 0)
		return -1;
	*ret = ntohs(a.sin_port);
	return fd;
}

static void test_limits(struct fetch *f, const char *url)
{
	static const int64_t limits[] = { -1, 0, 1, 999999, 1000000, 20000000 };
	struct fetch_request q = { .method = "GET", .url = url, .connect_ns = 1000000000 };
	struct fetch_reply w;
	struct err e = ERR_INIT;

	for (size_t i = 0; i < ARRAY_LEN(limits); i++) {
		q.limit_ns = limits[i];
		ok_int(fetch_do(f, &q, &w, &e), -ETIMEDOUT, e.msg);
		fetch_reply_done(&w);
	}
	q.connect_ns = 0;
	ok_int(fetch_do(f, &q, &w, &e), -ETIMEDOUT, "no time to connect");
	fetch_reply_done(&w);
}

/* Who does not ask for the reason gets as many attempts. */
static void test_attempts(const char *url)
{
	static const struct aws_call c = {
		.service = &aws_sso, .what = "Try", .method = "GET", .path = "/"
	};
	struct err e = ERR_INIT;
	struct aws_answer w;
	struct aws *a;

	ok_int(setenv("HOME", "/nonexistent", 1) | setenv("AWS_ENDPOINT_URL_SSO", url, 1) |
		       setenv("AWS_REGION", "us-east-1", 1) | setenv("AWS_MAX_ATTEMPTS", "2", 1),
	       0, "prepared");
	ok_int(aws_open(NULL, &a, &e), 0, e.msg);
	ok_int(aws_call(a, &c, &w, &e), -ECONNREFUSED, e.msg);
	ok_int(w.attempts, 2, "two attempts");
	aws_answer_done(&w);
	ok_int(aws_call(a, &c, &w, NULL), -ECONNREFUSED, "the same without a reason");
	ok_int(w.attempts, 2, "two attempts");
	aws_answer_done(&w);
	aws_close(a);
}

/* Credentials that cannot be had are looked for once, however often a call is tried. */
static void test_credentials(const char *url)
{
	static const struct aws_call c = {
		.service = &aws_lambda_microvms, .what = "Try", .method = "GET", .path = "/"
	};
	struct err e = ERR_INIT;
	struct aws_answer w;
	struct aws *a;

	ok_int(unsetenv("AWS_ACCESS_KEY_ID") | setenv("AWS_ENDPOINT_URL_STS", url, 1) |
		       setenv("AWS_ROLE_ARN", "arn:aws:iam::123456789012:role/r", 1) |
		       setenv("AWS_WEB_IDENTITY_TOKEN_FILE", "/proc/self/comm", 1),
	       0, "prepared");
	ok_int(aws_open(NULL, &a, &e), 0, e.msg);
	ok_int(aws_call(a, &c, &w, &e), -ECONNREFUSED, e.msg);
	ok_int(w.attempts, 1, "one attempt");
	aws_answer_done(&w);
	aws_close(a);
}

int main(void)
{
	struct sigaction sa = { .sa_handler = on_alarm };
	struct err e = ERR_INIT;
	struct fetch *f = NULL;
	char url[64];
	uint16_t port = 0;
	int fd = silent_port(&port);

	ok(fd >= 0, "a server that says nothing");
	ignore_result(str_format(url, sizeof(url), "http://127.0.0.1:%u", port));
	ok_int(fetch_open(NULL, &f, &e), 0, "opened");
	fetch_cancel(f, &late);
	(void)sigaction(SIGALRM, &sa, NULL);
	(void)alarm(30);
	test_limits(f, url);
	ok(!late, "in time");
	fetch_free(f);
	close(fd);
	test_attempts(url);
	test_credentials(url);
	return tap_done();
}
