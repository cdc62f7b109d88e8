/* SPDX-License-Identifier: Apache-2.0 */
/* LINK: agentd/[!m]*.c agentd/m[!a]*.c */
/*
 * A client of agentd: all of it, in this process, on a TCP connection. The first byte chooses: a route of the table, whose
 * target gets the rest up to the first newline appended and whose body is what follows that; or, above the table, the bytes as
 * they are. The gate is shut (no new execs, no writes), workers are not to be had and the file system is read-only; one exec "a"
 * (a cat) always runs.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include "agentd/app.h"
#include "agentd/exec.h"
#include "agentd/reap.h"
#include "agentd/worker.h"
#include "fuzz/confined.h"
#include "fuzz/fuzz.h"
#include "lib/fd.h"
#include "lib/httpd_int.h"
#include "lib/log.h"

#define TURNS 200 /* of the loop, until the connections of one input are over */

static struct app app;
static bool usable;
static struct sockaddr_in address;
static size_t n_routes;

static void start(void)
{
	static char sock[] = "build/fuzz/agentd.sock";
	struct err e = ERR_INIT;
	socklen_t n = sizeof(address);

	usable = fuzz_confine("build/fuzz");
	if (!usable)
		return;
	log_open("agentd", -1, LOG_LEVEL_ERROR);
	(void)setenv("HOME", "/", 1);
	app.bind_addr = "127.0.0.1";
	app.socket_path = sock;
	app.passwd_path = "/etc/passwd";
	app.cgroup_root = "/nonexistent";
	if (app_start(&app, &e) < 0) {
		fprintf(stderr, "%s\n", e.msg);
		abort();
	}
	(void)prctl(PR_SET_DUMPABLE, 1, 0, 0, 0); /* the leak checker wants to look */
	worker_stop();
	app.closed = true;
	if (getsockname(app.tcp->c.listen_fd, (struct sockaddr *)&address, &n) < 0)
		abort();
	while (app_routes[n_routes].pattern)
		n_routes++;
}

static void have_exec(void)
{
	static const char body[] = "{\"argv\":[\"cat\"],\"stdin\":true}";
	struct exec *x = exec_find("a");
	struct spec s = SPEC_INIT;
	struct err e = ERR_INIT;
	enum proc_step step;

	if (x && x->state == EXEC_RUNNING)
		return;
	if (x)
		exec_forget(x, false);
	if (spec_native(&s, body, sizeof(body) - 1, app.env.vars, &e) < 0 ||
	    exec_start(&s, "a", &x, &step, &e) < 0) {
		fprintf(stderr, "%s\n", e.msg);
		abort();
	}
	spec_done(&s);
}

/* What is sent for the input: malloc. */
static char *request(const uint8_t *p, size_t n, size_t *ret_len)
{
	const struct httpd_route *rt = &app_routes[p[0] % (n_routes + 1)];
	const uint8_t *line = p + 1, *nl = memchr(line, '\n', n - 1);
	size_t target = nl ? (size_t)(nl - line) : n - 1, body = nl ? n - 2 - target : 0;
	char *s = malloc(n + 512);
	const char *hole;
	int k;

	if (!s)
		abort();
	if (!rt->pattern) {
		memcpy(s, p + 1, n - 1);
		*ret_len = n - 1;
		return s;
	}
	hole = strstr(rt->pattern, "{}");
	k = snprintf(
		s, n + 512,
		"%s %.*s%s%s%.*s HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Length: %zu\r\n\r\n",
		rt->method, hole ? (int)(hole - rt->pattern) : (int)strlen(rt->pattern),
		rt->pattern, hole ? "a" : "", hole ? hole + 2 : "", (int)target, (const char *)line,
		body);
	if (body)
		memcpy(s + k, nl + 1, body);
	*ret_len = (size_t)k + body;
	return s;
}

static void turn(int fd)
{
	char sink[65536];

	if (loop_once(&app.loop, 0) < 0)
		abort();
	reap(&app.loop); /* SIGCHLD may go to a thread of libFuzzer's */
	while (fd >= 0 && recv(fd, sink, sizeof(sink), MSG_DONTWAIT) > 0)
		;
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	static bool started;
	size_t len, sent = 0;
	char *s;
	int fd;

	if (!started)
		start();
	started = true;
	if (!usable || n < 2 || n > 100000)
		return 0;
	have_exec();
	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		abort();
	s = request(p, n, &len);
	for (int i = 0; i < TURNS && sent < len; i++) {
		ssize_t k = send(fd, s + sent, len - sent, MSG_DONTWAIT | MSG_NOSIGNAL);

		sent += k > 0 ? (size_t)k : 0;
		turn(fd);
	}
	(void)shutdown(fd, SHUT_WR);
	for (int i = 0; i < 20 && httpd_connections(app.tcp); i++)
		turn(fd);
	(void)close(fd);
	for (int i = 0; i < TURNS && httpd_connections(app.tcp); i++)
		turn(-1);
	if (httpd_connections(app.tcp) > 64) /* some wait for a deadline, e.g. to drain */
		usleep(100000);
	if (httpd_connections(app.tcp) > 400)
		abort();
	free(s);
	return 0;
}
