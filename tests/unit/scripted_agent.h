/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TEST_SCRIPTED_AGENT_H
#define TEST_SCRIPTED_AGENT_H

/*
 * The exec client against an agent that follows a script: each step expects the begin of a request
 * and answers it with fixed bytes, or misbehaves. The agent is a forked child; so is the client,
 * because it owns its standard streams.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fake_backend.h"
#include "host/agent/exec.h"
#include "lib/buf.h"
#include "lib/fd.h"
#include "tap.h"

enum act {
	REPLY,	  /* send bytes, keep the connection */
	CUT,	  /* send bytes, then close */
	HANG,	  /* send bytes, then wait until the client goes away */
	HANG_NEW, /* send bytes, leave the connection open, and take the next step from a new one */
};

struct step {
	const char *want; /* begin of the request line, "*" stands for the exec's id; NULL ends the
			     script */
	enum act act;
	const char *bytes;
	size_t len;
};

#define STEP(w, a, b)                  \
	{                              \
		w, a, b, sizeof(b) - 1 \
	}
#define STARTED	 "HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\n{}"
#define OK_REPLY "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
#define UNKNOWN                                                  \
	"HTTP/1.1 400 Bad Request\r\nContent-Length: 45\r\n\r\n" \
	"{\"detail\":\"this agent does not know input..\"}"
#define STREAM "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
#define FRAMES \
	"Content-Type: application/vnd.docker.multiplexed-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
#define RUNS  "HTTP/1.1 201 Created\r\n" FRAMES
#define ALIVE "19\r\n\3\0\0\0\0\0\0\x11{\"event\":\"alive\"}\r\n"
#define EXIT_EVENT                                                                                         \
	"7b\r\n\3\0\0\0\0\0\0\x73{\"event\":\"exit\",\"exit_code\":0,\"signal\":null,\"timed_out\":false," \
	"\"oom\":false,\"truncated\":false,\"duration_ms\":1,\"xy\":1}\r\n"
#define EXIT0 EXIT_EVENT "0\r\n\r\n"
#define SCRIPT_END                   \
	{                            \
		NULL, REPLY, NULL, 0 \
	}

/* --- the agent --- */

static int read_request(int fd, char *out, size_t size)
{
	size_t n = 0, need = 0;
	char *end = NULL;

	for (;;) {
		ssize_t k;

		if (!end && n) {
			out[n] = '\0';
			end = strstr(out, "\r\n\r\n");
			if (end) {
				const char *len = strcasestr(out, "content-length:");

				need = (size_t)(end + 4 - out) +
				       (len ? strtoul(len + 15, NULL, 10) : 0);
			}
		}
		if (end && n >= need) {
			out[n] = '\0';
			return 0;
		}
		if (n + 1 >= size)
			return -1;
		k = read(fd, out + n, size - n - 1);
		if (k <= 0)
			return -1;
		n += (size_t)k;
	}
}

static int matches(const char *want, const char *got)
{
	for (; *want; want++, got++) {
		if (*want == '*')
			got += 31; /* an id has 32 characters */
		else if (*want != *got)
			return 0;
	}
	return 1;
}

/* Plays SCRIPT; each request is noted in LOG. Ends when the script does. */
static void agent(int listener, const struct step *s, int log)
{
	static char req[1 << 20];
	int fd = -1;

	alarm(20);
	while (s->want) {
		if (fd < 0)
			fd = accept(listener, NULL, NULL);
		if (read_request(fd, req, sizeof(req)) < 0) {
			close(fd);
			fd = -1;
			continue;
		}
		if (!matches(s->want, req))
			dprintf(log, "UNEXPECTED for %s: ", s->want);
		dprintf(log, "%s\n", req);
		ignore_result(fd_write_all(fd, s->bytes, s->len));
		if (s->act == CUT) {
			close(fd);
			fd = -1;
		} else if (s->act == HANG) {
			while (read(fd, req, sizeof(req)) > 0)
				;
			close(fd);
			fd = -1;
		} else if (s->act == HANG_NEW) {
			fd = -1;
		}
		s++;
	}
	_exit(0);
}

/* --- the client --- */

struct outcome {
	int status; /* of the client process: 0, or see client() */
	char out[4096], err[4096], log[1 << 16];
	size_t out_len;
};

struct how {
	const char *input; /* NULL = no stdin */
	int idle_input;	   /* a pipe that nobody writes to */
	int64_t timeout_ns;
	int signal_after_ms; /* SIGINT to the client */
	int close_stdout;
	int capture;
	int tty, detach;
	int whole; /* the script is played to its end, which the client does not wait for */
	const char *attach; /* with offset and fed */
	uint64_t offset, fed;
	enum exec_watch watch;
};

/* Exit status of the client process: the command's, or one of these. */
enum {
	C_FAILED = 250,
	C_NO_COMMAND = 249,
	C_TIMED_OUT = 248,
	C_INTERRUPTED = 247,
	C_READER_GONE = 246,
	C_DETACHED = 245
};

static void client(const struct how *h)
{
	static char arg0[] = "prog", arg1[] = "a\"b";
	char *argv[] = { arg0, arg1, NULL };
	struct exec_spec s = { .backend = &backend_local,
			       .id = "local-1",
			       .argv = argv,
			       .argc = 2,
			       .timeout_ns = h->timeout_ns,
			       .use_stdin = h->input || h->idle_input,
			       .tty = h->tty,
			       .detach = h->detach,
			       .attach = h->attach,
			       .offset = h->offset,
			       .fed = h->fed,
			       .watch = h->watch,
			       .capture = h->capture };
	struct exec_result res;
	struct err e = ERR_INIT;
	int r, status;

	alarm(20);
	r = exec_run(&s, &res, &e);
	if (r < 0)
		dprintf(2, "%s", e.msg);
	status = r < 0			       ? C_FAILED
		 : res.end == EXEC_NO_COMMAND  ? C_NO_COMMAND
		 : res.end == EXEC_TIMED_OUT   ? C_TIMED_OUT
		 : res.end == EXEC_INTERRUPTED ? C_INTERRUPTED
		 : res.end == EXEC_READER_GONE ? C_READER_GONE
		 : res.end == EXEC_DETACHED    ? C_DETACHED
		 : res.signal		       ? 128 + res.signal
					       : res.exit_code;
	if (res.lost)
		dprintf(2, "lost %llu", (unsigned long long)res.lost);
	if (res.skipped)
		dprintf(2, "skipped %llu", (unsigned long long)res.skipped);
	if (h->capture)
		dprintf(2, "captured %zu+%zu", res.output[0].len, res.output[1].len);
	exec_result_done(&res);
	exit(status);
}

static size_t slurp(int fd, char *out, size_t size)
{
	size_t n = 0;
	ssize_t k;

	while (n + 1 < size && (k = read(fd, out + n, size - n - 1)) > 0)
		n += (size_t)k;
	out[n] = '\0';
	close(fd);
	return n;
}

static int make_listener(void)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	ignore_result(
		str_format(fake_agent, sizeof(fake_agent), "/tmp/asb-agent-%d", (int)getpid()));
	unlink(fake_agent);
	memcpy(a.sun_path, fake_agent, sizeof(a.sun_path));
	if (fd < 0 || bind(fd, (const struct sockaddr *)&a, sizeof(a)) < 0 || listen(fd, 8) < 0)
		abort();
	return fd;
}

static void play(const struct step *script, const struct how *h, struct outcome *o)
{
	int listener = make_listener(), in[2], out[2], err[2], log[2], status = 0;
	pid_t agent_pid, client_pid;

	if (pipe(in) < 0 || pipe(out) < 0 || pipe(err) < 0 || pipe(log) < 0)
		abort();
	fflush(stdout);
	agent_pid = fork();
	if (agent_pid == 0) {
		close(in[1]);
		close(out[0]);
		close(out[1]);
		close(err[0]);
		close(err[1]);
		agent(listener, script, log[1]);
	}
	client_pid = fork();
	if (client_pid == 0) {
		close(log[0]);
		close(log[1]);
		close(in[1]);
		close(out[0]);
		close(listener);
		dup2(in[0], 0);
		dup2(out[1], 1);
		dup2(err[1], 2);
		close(out[1]);
		client(h);
	}
	close(listener);
	close(in[0]);
	close(out[1]);
	close(err[1]);
	close(log[1]);
	if (h->close_stdout)
		close(out[0]);
	if (h->input)
		ignore_result(fd_write_all(in[1], h->input, strlen(h->input)));
	if (!h->idle_input)
		close(in[1]);
	if (h->signal_after_ms) {
		usleep((unsigned)h->signal_after_ms * 1000);
		kill(client_pid, SIGINT);
	}
	o->out_len = h->close_stdout ? 0 : slurp(out[0], o->out, sizeof(o->out));
	slurp(err[0], o->err, sizeof(o->err));
	waitpid(client_pid, &status, 0);
	o->status = WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
	if (h->idle_input)
		close(in[1]);
	if (!h->whole)
		kill(agent_pid, SIGKILL);
	waitpid(agent_pid, NULL, 0);
	slurp(log[0], o->log, sizeof(o->log));
	unlink(fake_agent);
}

/* --- the cases --- */

static const struct how plain = { .input = NULL };
static struct outcome o;

static void expect(const char *what, int status, const char *out, size_t n)
{
	ok(o.status == status, "%s: status %d (%s)", what, o.status, o.err);
	ok(o.out_len == n && memcmp(o.out, out, n) == 0, "%s: %zu bytes of output", what,
	   o.out_len);
	ok(!strstr(o.log, "UNEXPECTED"), "%s: the requests are those expected", what);
	if (strstr(o.log, "UNEXPECTED"))
		printf("# %s\n", o.log);
}

#endif
