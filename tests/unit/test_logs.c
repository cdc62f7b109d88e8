/* SPDX-License-Identifier: Apache-2.0 */
/* LINK: host/aws/aws.c host/aws/arn.c host/aws/call.c host/aws/creds*.c host/aws/endpoint.c host/aws/fetch.c host/aws/xml.c
   host/aws/ini.c host/aws/logs.c host/aws/retry.c host/aws/settings.c host/aws/sigv4.c host/net/?*.c host/backend.c */
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "host/aws/aws.h"
#include "host/aws/logs.h"
#include "lib/jsn.h"
#include "lib/str.h"
#include "tap.h"

/* --- a server that gives its answers in their order, one a connection, and keeps the requests --- */

static struct {
	int fd, n;
	struct {
		int status;
		const char *body;
	} answer[8];
	char asked[8][4096];
} srv = { .fd = -1 };

static void read_request(int fd, char *p, size_t size)
{
	size_t len = 0, all = size - 1;

	while (len < all) {
		ssize_t n = read(fd, p + len, all - len);
		const char *end, *length;

		if (n <= 0)
			break;
		len += (size_t)n;
		p[len] = '\0';
		end = strstr(p, "\r\n\r\n");
		length = strstr(p, "Content-Length: ");
		if (end && length)
			all = (size_t)(end + 4 - p) + strtoul(length + 16, NULL, 10);
	}
	p[len] = '\0';
}

static void *serve(void *arg)
{
	char head[256];
	int fd;

	(void)arg;
	while ((fd = accept(srv.fd, NULL, NULL)) >= 0) {
		const char *body = srv.answer[srv.n].body;

		read_request(fd, srv.asked[srv.n], sizeof(srv.asked[0]));
		ignore_result(str_format(
			head, sizeof(head),
			"HTTP/1.1 %d x\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n",
			srv.answer[srv.n].status, strlen(body)));
		srv.n++;
		if (write(fd, head, strlen(head)) < 0 || write(fd, body, strlen(body)) < 0)
			break;
		close(fd);
	}
	return NULL;
}

static int start(void)
{
	struct sockaddr_in a = { .sin_family = AF_INET };
	socklen_t n = sizeof(a);
	pthread_t t;
	char url[64];

	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	srv.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (srv.fd < 0 || bind(srv.fd, (const struct sockaddr *)&a, sizeof(a)) < 0 ||
	    listen(srv.fd, 8) < 0 || getsockname(srv.fd, (struct sockaddr *)&a, &n) < 0)
		return -1;
	ignore_result(str_format(url, sizeof(url), "http://127.0.0.1:%u", ntohs(a.sin_port)));
	return setenv("AWS_ENDPOINT_URL_CLOUDWATCH_LOGS", url, 1) |
	       setenv("HOME", "/nonexistent", 1) | setenv("AWS_REGION", "us-east-1", 1) |
	       setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE", 1) | setenv("NO_PROXY", "*", 1) |
	       setenv("AWS_SECRET_ACCESS_KEY", "secret", 1) | pthread_create(&t, NULL, serve, NULL);
}

static void will_answer(int status, const char *body)
{
	int n = 0;

	while (srv.answer[n].body)
		n++;
	srv.answer[n].status = status;
	srv.answer[n].body = body;
}

static void again(void)
{
	memset(srv.answer, 0, sizeof(srv.answer));
	srv.n = 0;
}

/* What was asked in request N, as JSON: a member's text; "" when there is none. */
static const char *asked(int n, const char *member)
{
	static char ret[512];
	const char *body = strstr(srv.asked[n], "\r\n\r\n");
	AUTO_JSN *j = body ? jsn_parse(body + 4, strlen(body + 4), NULL) : NULL;
	const cJSON *m = jsn_get(j, member);

	ret[0] = '\0';
	if (cJSON_IsString(m))
		ignore_result(str_format(ret, sizeof(ret), "%s", m->valuestring));
	else if (cJSON_IsNumber(m))
		ignore_result(str_format(ret, sizeof(ret), "%.0f", m->valuedouble));
	else if (m)
		ignore_result(
			str_format(ret, sizeof(ret), "%s", cJSON_IsTrue(m) ? "true" : "else"));
	return ret;
}

/* --- what comes of it --- */

struct seen {
	struct buf text;
	const char *stop_at;
};

static int on_event(void *arg, const struct logs_event *ev)
{
	struct seen *s = arg;

	ignore_result(
		buf_addf(&s->text, "%lld %s %s|", (long long)ev->time_ms, ev->stream, ev->message));
	return s->stop_at && strcmp(ev->message, s->stop_at) == 0 ? 7 : 0;
}

static void test_stream(struct aws *a)
{
	const struct logs_query q = { .group = LOGS_GROUP "g", .stream = "2026/11/30[1.0]vm" };
	struct seen s = { .stop_at = NULL };
	struct err e = ERR_INIT;
	AUTO_BUF token;

	buf_init(&token, LOGS_TOKEN_MAX);
	buf_init(&s.text, 4096);
	will_answer(
		200,
		"{\"events\":[{\"timestamp\":5,\"message\":\"one\"},{\"timestamp\":\"?\",\"message\":null},"
		"null],\"nextForwardToken\":\"f/1\"}");
	will_answer(200, "{\"events\":[],\"nextForwardToken\":\"f/2\"}");
	will_answer(200, "{\"events\":[{\"timestamp\":-1,\"message\":\"two\\nlines\",\"more\":{}}],"
			 "\"nextForwardToken\":\"f/3\"}");
	will_answer(200,
		    "{\"events\":[],\"nextForwardToken\":\"f/3\",\"nextBackwardToken\":\"b\"}");
	ok_int(logs_stream(a, &q, &token, on_event, &s, &e), 0, e.msg);
	ok_str(s.text.p, "5  one|0  two\nlines|",
	       "the events of all pages, also behind an empty one");
	ok_int(srv.n, 4, "the same token is the end");
	ok(strstr(srv.asked[0], "x-amz-target: Logs_20140328.GetLogEvents\r\n") != NULL,
	   "the operation");
	ok(strstr(srv.asked[0], "Content-Type: application/x-amz-json-1.1\r\n") != NULL,
	   "its type");
	ok(strstr(srv.asked[0], "/us-east-1/logs/aws4_request, "
				"SignedHeaders=content-type;host;x-amz-date;x-amz-target,") != NULL,
	   "signed");
	ok_str(asked(0, "logStreamName"), q.stream, "the stream");
	ok_str(asked(0, "startFromHead"), "true", "from its beginning");
	ok_str(asked(0, "nextToken"), "", "no token at first");
	ok_str(asked(3, "nextToken"), "f/3", "the last one's");
	again();
	buf_clear(&s.text);
	will_answer(
		200,
		"{\"events\":[{\"timestamp\":9,\"message\":\"three\"}],\"nextForwardToken\":\"f/4\"}");
	will_answer(200, "{\"nextForwardToken\":\"f/4\"}");
	ok_int(logs_stream(a, &q, &token, on_event, &s, &e), 0, e.msg);
	ok_str(s.text.p, "9  three|", "it goes on where it ended");
	ok_str(asked(0, "nextToken"), "f/3", "with that token");
	buf_done(&s.text);
	again();
}

static void test_last(struct aws *a)
{
	const struct logs_query q = { .group = LOGS_GROUP "g",
				      .stream = "2026/11/30[1.0]vm",
				      .since_ms = 7 };
	struct seen s = { .stop_at = NULL };
	struct err e = ERR_INIT;
	AUTO_BUF token;

	buf_init(&token, LOGS_TOKEN_MAX);
	buf_init(&s.text, 4096);
	will_answer(
		200,
		"{\"events\":[{\"timestamp\":3,\"message\":\"c\"},{\"timestamp\":4,\"message\":\"d\"}],"
		"\"nextForwardToken\":\"f/4\",\"nextBackwardToken\":\"b/2\"}");
	will_answer(200,
		    "{\"events\":[],\"nextForwardToken\":\"f/x\",\"nextBackwardToken\":\"b/1\"}");
	will_answer(
		200,
		"{\"events\":[{\"timestamp\":1,\"message\":\"a\"},{\"timestamp\":2,\"message\":\"b\"}],"
		"\"nextForwardToken\":\"f/y\",\"nextBackwardToken\":\"b/0\"}");
	ok_int(logs_last(a, &q, 4, &token, on_event, &s, &e), 0, e.msg);
	ok_str(s.text.p, "1  a|2  b|3  c|4  d|",
	       "the pages in their order, also behind an empty one");
	ok_int(srv.n, 3, "until there are as many");
	ok_str(token.p, "f/4", "what comes next is behind the first page");
	ok_str(asked(0, "startFromHead"), "", "from the end");
	ok_str(asked(0, "limit"), "4", "so many");
	ok_str(asked(0, "nextToken"), "", "no token at first");
	ok_str(asked(0, "startTime"), "7", "the time");
	ok_str(asked(2, "limit"), "2", "the rest");
	ok_str(asked(2, "nextToken"), "b/1", "the page before");
	again();
	buf_clear(&token);
	buf_clear(&s.text);
	will_answer(200, "{\"events\":[{\"timestamp\":1,\"message\":\"a\"}],"
			 "\"nextForwardToken\":\"f/1\",\"nextBackwardToken\":\"b/0\"}");
	will_answer(200,
		    "{\"events\":[],\"nextForwardToken\":\"f/0\",\"nextBackwardToken\":\"b/0\"}");
	ok_int(logs_last(a, &q, UINT64_MAX - 1, &token, on_event, &s, &e), 0, e.msg);
	ok_str(s.text.p, "1  a|", "all there is");
	ok_str(asked(0, "limit"), "10000", "AWS's most");
	again();
	buf_clear(&token);
	will_answer(200, "{\"events\":[],\"nextBackwardToken\":\"b/0\"}");
	ok_int(logs_last(a, &q, 1, &token, on_event, &s, &e), -EBADMSG, e.msg);
	again();
	will_answer(400, "{\"__type\":\"AccessDeniedException\",\"message\":\"not authorized\"}");
	ok_int(logs_last(a, &q, 1, &token, on_event, &s, &e), -EACCES, e.msg);
	ok_int(e.code, ERR_DENIED, "it is told apart");
	buf_done(&s.text);
	again();
}

static void test_search(struct aws *a)
{
	const struct logs_query q = { .group = LOGS_GROUP "g",
				      .stream = "2026/",
				      .since_ms = 1795000000123 };
	struct seen s = { .stop_at = "b" };
	struct err e = ERR_INIT;

	buf_init(&s.text, 4096);
	will_answer(200, "{\"events\":[],\"nextToken\":\"p1\"}");
	will_answer(
		200,
		"{\"events\":[{\"timestamp\":1,\"message\":\"a\",\"logStreamName\":\"x\"},"
		"{\"timestamp\":2,\"message\":\"b\",\"logStreamName\":\"y\"},"
		"{\"timestamp\":3,\"message\":\"c\",\"logStreamName\":\"y\"}],\"nextToken\":\"p2\"}");
	ok_int(logs_search(a, &q, on_event, &s, &e), 7, "what the function says, stops");
	ok_str(s.text.p, "1 x a|2 y b|", "with the names of the streams");
	ok_int(srv.n, 2, "no page more than that");
	ok(strstr(srv.asked[0], "x-amz-target: Logs_20140328.FilterLogEvents\r\n") != NULL,
	   "the operation");
	ok_str(asked(1, "logStreamNamePrefix"), "2026/", "the prefix");
	ok_str(asked(1, "startTime"), "1795000000123", "the time");
	ok_str(asked(1, "nextToken"), "p1", "the token");
	again();
	will_answer(
		400,
		"{\"__type\":\"com.x#ResourceNotFoundException\",\"message\":\"no such group\"}");
	ok_int(logs_search(a, &q, on_event, &s, &e), -ENOENT, e.msg);
	ok_int(e.code, ERR_NOT_FOUND, "it is told apart");
	again();
	will_answer(400, "{\"__type\":\"InvalidParameterException\",\"message\":\"bad\"}");
	ok_int(logs_search(a, &q, on_event, &s, &e), -EINVAL, e.msg);
	again();
	will_answer(200, "{\"events\":[],\"nextToken\":\"same\"}");
	will_answer(200, "{\"events\":[],\"nextToken\":\"same\"}");
	ok_int(logs_search(a, &q, on_event, &s, &e), 0, "the same page again is the end, too");
	ok_int(srv.n, 2, "and not asked for for ever");
	buf_done(&s.text);
}

int main(void)
{
	struct err e = ERR_INIT;
	struct aws *a = NULL;

	ok_int(start(), 0, "a server");
	ok_int(aws_open(NULL, &a, &e), 0, e.msg);
	test_stream(a);
	test_last(a);
	test_search(a);
	aws_close(a);
	return tap_done();
}
