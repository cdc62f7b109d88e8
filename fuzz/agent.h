/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_FUZZ_AGENT_H
#define ASB_FUZZ_AGENT_H

/*
 * For targets that are a client of agentd: all of it, in this process, on a TCP connection. The file system is read-only,
 * but for build/fuzz. LINK: agentd/[!m]*.c agentd/m[!a]*.c
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

#define AGENT_TURNS 200 /* of the loop, until the connections of one input are over */

static struct app app;

/* False where agentd is not to be had, and nothing must be tried. SOCK: of its private socket, below build/fuzz. */
static inline bool agent_start(char *sock)
{
	struct err e = ERR_INIT;

	if (!fuzz_confine("build/fuzz"))
		return false;
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
	return true;
}

/* A command "a" that runs, as BODY (of PUT /v1/execs/a) says. */
static inline void agent_have_exec(const char *body)
{
	struct exec *x = exec_find("a");
	struct spec s = SPEC_INIT;
	struct err e = ERR_INIT;
	enum proc_step step;

	if (x && x->state == EXEC_RUNNING)
		return;
	if (x)
		exec_forget(x, false);
	if (spec_native(&s, body, strlen(body), app.env.vars, &e) < 0 ||
	    exec_start(&s, "a", &x, &step, &e) < 0) {
		fprintf(stderr, "%s\n", e.msg);
		abort();
	}
	spec_done(&s);
}

/* One turn of agentd's loop; what it has sent to FD is thrown away. */
static inline void agent_turn(int fd)
{
	char sink[65536];

	if (loop_once(&app.loop, 0) < 0)
		abort();
	reap(&app.loop); /* SIGCHLD may go to a thread of libFuzzer's */
	while (fd >= 0 && recv(fd, sink, sizeof(sink), MSG_DONTWAIT) > 0)
		;
}

/* A connection on which S is sent. */
static inline int agent_connect(const char *s, size_t len)
{
	struct sockaddr_in to;
	socklen_t n = sizeof(to);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (getsockname(app.tcp->c.listen_fd, (struct sockaddr *)&to, &n) < 0 || fd < 0 ||
	    connect(fd, (struct sockaddr *)&to, sizeof(to)) < 0)
		abort();
	for (size_t i = 0, sent = 0; i < AGENT_TURNS && sent < len; i++) {
		ssize_t k = send(fd, s + sent, len - sent, MSG_DONTWAIT | MSG_NOSIGNAL);

		sent += k > 0 ? (size_t)k : 0;
		agent_turn(fd);
	}
	return fd;
}

/* Ends the connection, and lets agentd do so. */
static inline void agent_close(int fd)
{
	agent_turn(fd);
	(void)shutdown(fd, SHUT_WR);
	for (int i = 0; i < 20 && httpd_connections(app.tcp); i++)
		agent_turn(fd);
	(void)close(fd);
	for (int i = 0; i < AGENT_TURNS && httpd_connections(app.tcp); i++)
		agent_turn(-1);
	if (httpd_connections(app.tcp) > 64) /* some wait for a deadline, e.g. to drain */
		usleep(100000);
	if (httpd_connections(app.tcp) > 400)
		abort();
}

/* A whole connection: S (malloc, consumed) is sent, then it ends. */
static inline void agent_say(char *s, size_t len)
{
	agent_close(agent_connect(s, len));
	free(s);
}

#endif
