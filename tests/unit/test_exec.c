/* SPDX-License-Identifier: Apache-2.0 */
/* LINK: host/backend.c host/agent/?*.c host/net/?*.c */
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

/*
 * The exec client against an agent that follows a script: each step expects the begin of a request
 * and answers it with fixed bytes, or misbehaves. The agent is a forked child; so is the client,
 * because it owns its standard streams.
 */
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
#define EXIT0                                                                                              \
	"7b\r\n\3\0\0\0\0\0\0\x73{\"event\":\"exit\",\"exit_code\":0,\"signal\":null,\"timed_out\":false," \
	"\"oom\":false,\"truncated\":false,\"duration_ms\":1,\"xy\":1}\r\n0\r\n\r\n"

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

static void test_plain(void)
{
	static const struct step s[] = {
		STEP("PUT /v1/execs/*?follow=1&max=524288&forget=86400 HTTP/1.1\r\n", REPLY,
		     STARTED),
		STEP("GET /v1/execs/*/output?offset=0&follow=1&max=524288 ", REPLY,
		     STREAM "c\r\n\1\0\0\0\0\0\0\4a\n\0b\r\n9\r\n\2\0\0\0\0\0\0\1e\r\n" EXIT0),
		STEP("DELETE /v1/execs/* ", REPLY, OK_REPLY),
		{ NULL, REPLY, NULL, 0 },
	};

	play(s, &plain, &o);
	expect("plain", 0, "a\n\0b", 4);
	ok_str(o.err, "e", "stderr goes to stderr");
	ok(strstr(o.log, "{\"argv\":[\"prog\",\"a\\\"b\"]}") != NULL,
	   "the request carries the arguments");
}

static void test_resume(void)
{
	static const struct step s[] = {
		STEP("PUT /v1/execs/*?", CUT, ""), /* no answer: sent again */
		STEP("PUT /v1/execs/*?", REPLY, STARTED),
		STEP("GET /v1/execs/*/output?offset=0&", CUT,
		     STREAM "b\r\n\1\0\0\0\0\0\0\5abc"), /* 3 of 5 */
		STEP("GET /v1/execs/*/output?offset=3&", CUT,
		     "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"),
		STEP("GET /v1/execs/*/output?offset=3&", REPLY,
		     STREAM "a\r\n\1\0\0\0\0\0\0\2de\r\n" EXIT0),
		STEP("DELETE /v1/execs/* ", REPLY, OK_REPLY),
		{ NULL, REPLY, NULL, 0 },
	};

	play(s, &plain, &o);
	expect("cut and resumed", 0, "abcde", 5);
}

static void test_gap(void)
{
	static const struct step s[] = {
		STEP("PUT ", REPLY, STARTED),
		STEP("GET ", REPLY,
		     STREAM
		     "9\r\n\1\0\0\0\0\0\0\1a\r\n2c\r\n\3\0\0\0\0\0\0\x24{\"event\":\"gap\",\"from\":1,\"to\":100001}"
		     "\r\n9\r\n\1\0\0\0\0\0\0\1b\r\n" EXIT0),
		STEP("DELETE ", REPLY, OK_REPLY),
		{ NULL, REPLY, NULL, 0 },
	};

	play(s, &plain, &o);
	expect("gap", 0, "ab", 2);
	ok_str(o.err, "lost 100000", "the gap is counted");
}

static void test_refusals(void)
{
	static const struct step none[] = {
		STEP("PUT ", REPLY,
		     "HTTP/1.1 404 Not Found\r\nContent-Length: 63\r\n\r\n"
		     "{\"detail\":\"command not found: prog\",\"step\":\"exec\",\"errno\":2   }"),
		{ NULL, REPLY, NULL, 0 },
	};
	static const struct step other[] = {
		STEP("PUT ", REPLY, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"),
		{ NULL, REPLY, NULL, 0 },
	};
	static const struct step empty500[] = {
		STEP("PUT ", REPLY, "HTTP/1.1 500 x\r\nContent-Length: 0\r\n\r\n"),
		{ NULL, REPLY, NULL, 0 },
	};
	static const struct step lost[] = {
		STEP("PUT ", REPLY, STARTED),
		STEP("GET ", REPLY, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"),
		{ NULL, REPLY, NULL, 0 },
	};

	play(none, &plain, &o);
	expect("no such command", C_NO_COMMAND, "", 0);
	play(other, &plain, &o);
	expect("a 404 that is not about the command", C_FAILED, "", 0);
	play(empty500, &plain, &o);
	expect("a 500 without a body", C_FAILED, "", 0);
	play(lost, &plain, &o);
	expect("the agent knows the exec no more", C_FAILED, "", 0);
	ok(strstr(o.err, "not known") != NULL, "and no status is invented: %s", o.err);
}

static void test_hostile(void)
{
	static const struct step garbage[] = {
		STEP("PUT ", REPLY, STARTED),
		STEP("GET ", REPLY, STREAM "10\r\n\1\0\0\0\377\377\377\377xxxxxxxx\r\n"),
		{ NULL, REPLY, NULL, 0 },
	};
	static const struct step event[] = {
		STEP("PUT ", REPLY, STARTED),
		STEP("GET ", REPLY, STREAM "10\r\n\3\0\0\0\0\0\0\x8{\"a\":1}}\r\n0\r\n\r\n"),
		{ NULL, REPLY, NULL, 0 },
	};
	static const struct step code[] = {
		STEP("PUT ", REPLY, STARTED),
		STEP("GET ", REPLY,
		     STREAM
		     "2a\r\n\3\0\0\0\0\0\0\x22{\"event\":\"exit\",\"exit_code\":99999}\r\n0\r\n\r\n"),
		{ NULL, REPLY, NULL, 0 },
	};

	play(garbage, &plain, &o);
	expect("a frame of 4 GiB", C_FAILED, "", 0);
	play(event, &plain, &o);
	expect("an event that is no JSON", C_FAILED, "", 0);
	play(code, &plain, &o);
	expect("an exit code that cannot be", C_FAILED, "", 0);
}

static void test_dead(void)
{
	static const struct step s[] = {
		STEP("PUT ", REPLY, STARTED),
		STEP("GET ", CUT, STREAM "9\r\n\1\0\0\0\0\0\0\1a\r\n"),
		{ NULL, REPLY, NULL, 0 },
	};

	fake_state = SANDBOX_TERMINATED;
	play(s, &plain, &o);
	fake_state = SANDBOX_RUNNING;
	expect("the machine ended", C_FAILED, "a", 1);
	ok(strstr(o.err, "the fake reason") != NULL, "with the platform's reason: %s", o.err);
}

static void test_input(void)
{
	static const struct how with = { .input = "hello\n" };
	static const struct step s[] = {
		STEP("PUT /v1/execs/*?", REPLY,
		     UNKNOWN), /* an older agent: the input goes by itself */
		STEP("PUT /v1/execs/*?", REPLY, STARTED),
		STEP("GET /v1/execs/*/output?offset=0&", HANG_NEW, STREAM),
		STEP("POST /v1/execs/*/stdin?offset=0", CUT, ""), /* sent again from where it was */
		STEP("POST /v1/execs/*/stdin?offset=0", CUT,
		     "HTTP/1.1 410 Gone\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"),
		{ NULL, REPLY, NULL, 0 },
	};
	static const struct step idle[] = {
		STEP("PUT /v1/execs/*?", REPLY, STARTED),
		STEP("GET ", REPLY, STREAM EXIT0),
		STEP("DELETE ", REPLY, OK_REPLY),
		{ NULL, REPLY, NULL, 0 },
	};
	static const struct how nobody = { .idle_input = 1 };
	int again = 0;

	/* The agent's process ends with the script, which cuts the output; the client then finds
	 * nobody. */
	fake_state = SANDBOX_TERMINATED;
	play(s, &with, &o);
	fake_state = SANDBOX_RUNNING;
	expect("input", C_FAILED, "", 0);
	for (const char *p = o.log; (p = strstr(p, "hello\n")); p++)
		again++;
	ok_int(again, 2, "the chunk whose connection broke is sent again");
	ok(strstr(o.log, "eof=1") != NULL, "the end of input is told");
	ok(strstr(o.log, "\"stdin\":true") != NULL, "stdin was asked for");
	play(idle, &nobody, &o);
	expect("idle stdin", 0, "", 0);
	ok(!strstr(o.log, "POST"), "nothing is sent for an idle stdin");
}

static void test_signals(void)
{
	static const struct how with = { .signal_after_ms = 500 };
	static const struct step s[] = {
		STEP("PUT ", REPLY, STARTED),
		STEP("GET ", HANG_NEW, STREAM "9\r\n\1\0\0\0\0\0\0\1a\r\n"),
		STEP("POST /v1/execs/*/signal ", CUT, OK_REPLY),
		{ NULL, REPLY, NULL, 0 },
	};

	fake_state = SANDBOX_TERMINATED; /* the script's end looks like the machine's */
	play(s, &with, &o);
	fake_state = SANDBOX_RUNNING;
	ok(strstr(o.log, "{\"signal\":\"INT\",\"to\":\"group\"}") != NULL, "SIGINT is passed on");
	expect("signal", C_FAILED, "a", 1);
}

static void test_reader_gone(void)
{
	static const struct how with = { .close_stdout = 1 };
	static const struct step s[] = {
		STEP("PUT ", REPLY, STARTED),
		STEP("GET ", HANG_NEW, STREAM "9\r\n\1\0\0\0\0\0\0\1a\r\n"),
		STEP("DELETE /v1/execs/* ", REPLY, OK_REPLY),
		{ NULL, REPLY, NULL, 0 },
	};

	play(s, &with, &o);
	expect("nobody reads stdout", C_READER_GONE, "", 0);
}

static void test_capture(void)
{
	static const struct how with = { .capture = 1 };
	static const struct step s[] = {
		STEP("PUT ", REPLY, STARTED),
		STEP("GET ", REPLY,
		     STREAM "b\r\n\1\0\0\0\0\0\0\3abc\r\na\r\n\2\0\0\0\0\0\0\2de\r\n" EXIT0),
		STEP("DELETE ", REPLY, OK_REPLY),
		{ NULL, REPLY, NULL, 0 },
	};

	play(s, &with, &o);
	expect("capture", 0, "", 0);
	ok_str(o.err, "captured 3+2", "both streams are kept");
}

static void test_detach(void)
{
	static const struct how with = { .detach = 1, .tty = 1 };
	static const struct step s[] = {
		STEP("PUT /v1/execs/* HTTP/1.1\r\n", REPLY, STARTED),
		{ NULL, REPLY, NULL, 0 },
	};

	play(s, &with, &o);
	expect("detach", C_DETACHED, "", 0);
	ok(strstr(o.log, "\"pty\":{") && !strstr(o.log, "stdin"), "it is asked for a terminal");
	ok(!strstr(o.log, "DELETE") && !strstr(o.log, "GET"), "and for nothing more");
}

static void test_attach(void)
{
	static const struct how with = { .attach = "some-id", .offset = 7 };
	static const struct how look = { .attach = "some-id", .watch = EXEC_WATCH_NOW };
	static const struct step s[] = {
		STEP("GET /v1/execs/some-id/output?offset=7&follow=1&max=524288 ", CUT,
		     STREAM "2a\r\n\3\0\0\0\0\0\0\x22{\"event\":\"gap\",\"from\":7,\"to\":100}\r\n"
			    "a\r\n\1\0\0\0\0\0\0\2ab\r\n"),
		STEP("GET /v1/execs/some-id/output?offset=102&follow=1&max=524288 ", REPLY,
		     STREAM "9\r\n\1\0\0\0\0\0\0\1c\r\n" EXIT0),
		{ NULL, REPLY, NULL, 0 },
	};
	static const struct step now[] = {
		STEP("GET /v1/execs/some-id/output?offset=0&max=524288 ", REPLY,
		     STREAM "9\r\n\1\0\0\0\0\0\0\1c\r\n0\r\n\r\n"),
		{ NULL, REPLY, NULL, 0 },
	};
	static const struct step late[] = {
		STEP("GET ", REPLY, "HTTP/1.1 416 Range\r\nContent-Length: 0\r\n\r\n"),
		{ NULL, REPLY, NULL, 0 },
	};

	play(s, &with, &o);
	expect("attach, cut and resumed", 0, "abc", 3);
	ok_str(o.err, "skipped 93", "what was gone before is not lost");
	ok(!strstr(o.log, "PUT") && !strstr(o.log, "DELETE"),
	   "it is neither started nor forgotten");
	play(now, &look, &o);
	expect("a look at what there is", 0, "c", 1);
	play(late, &with, &o);
	expect("an offset that is not reached", C_FAILED, "", 0);
}

/* What is typed is sent without an offset, and with one when the connection broke. */
static void test_typed(void)
{
	static const struct how with = { .input = "hi", .attach = "some-id", .fed = 40, .tty = 1 };
	static const struct step s[] = {
		STEP("GET ", HANG_NEW, STREAM),
		STEP("POST /v1/execs/some-id/stdin?eof=1 ", CUT, ""),
		STEP("POST /v1/execs/some-id/stdin?offset=40&eof=1 ", CUT, OK_REPLY),
		{ NULL, REPLY, NULL, 0 },
	};

	fake_state = SANDBOX_TERMINATED; /* the script's end looks like the machine's */
	play(s, &with, &o);
	fake_state = SANDBOX_RUNNING;
	expect("typed", C_FAILED, "", 0);
}

/* An agent whose answer to PUT is the output. */
static void test_streamed(void)
{
	static const struct how with = { .whole = 1 };
	static const struct how fed = { .whole = 1, .input = "hello\n" };
	static const struct step s[] = {
		STEP("PUT /v1/execs/*?follow=1&max=524288&forget=86400 ", REPLY,
		     RUNS ALIVE "c\r\n\1\0\0\0\0\0\0\4a\n\0b\r\n9\r\n\2\0\0\0\0\0\0\1e\r\n" EXIT0),
		STEP("DELETE /v1/execs/* ", REPLY, OK_REPLY),
		{ NULL, REPLY, NULL, 0 },
	};
	static const struct step input[] = {
		STEP("PUT ", REPLY, RUNS "9\r\n\1\0\0\0\0\0\0\1a\r\n" EXIT0),
		STEP("DELETE ", HANG, ""),
		{ NULL, REPLY, NULL, 0 },
	};

	play(s, &with, &o);
	expect("streamed", 0, "a\n\0b", 4);
	ok_str(o.err, "e", "stderr goes to stderr");
	ok(!strstr(o.log, "GET") && strstr(o.log, "DELETE"), "no GET, and a DELETE");
	play(input, &fed, &o);
	expect("streamed, with all of the input, and a DELETE without an answer", 0, "a", 1);
	ok(strstr(o.log, "\"input\":\"aGVsbG8K\"}") && !strstr(o.log, "stdin") &&
		   !strstr(o.log, "POST"),
	   "the input goes with the request");
}

static void test_streamed_cut(void)
{
	static const struct how with = { .whole = 1 };
	static const struct step head[] = {
		/* none of it came: the same again */
		STEP("PUT ", CUT, RUNS),
		STEP("PUT ", CUT, ""),
		STEP("PUT ", REPLY,
		     "HTTP/1.1 200 OK\r\n" FRAMES "9\r\n\1\0\0\0\0\0\0\1a\r\n" EXIT0),
		STEP("DELETE ", REPLY, OK_REPLY),
		{ NULL, REPLY, NULL, 0 },
	};
	static const struct step middle[] = {
		STEP("PUT ", CUT, RUNS "b\r\n\1\0\0\0\0\0\0\5abc"), /* 3 of 5 */
		STEP("GET /v1/execs/*/output?offset=3&follow=1&", CUT,
		     STREAM "a\r\n\1\0\0\0\0\0\0\2de\r\n"),
		STEP("GET /v1/execs/*/output?offset=5&follow=1&", REPLY, STREAM EXIT0),
		STEP("DELETE ", REPLY, OK_REPLY),
		{ NULL, REPLY, NULL, 0 },
	};
	static const struct step end[] = {
		/* an exit event, and not the answer's end: it is not asked for again */
		STEP("PUT ", HANG_NEW,
		     RUNS
		     "7b\r\n\3\0\0\0\0\0\0\x73{\"event\":\"exit\",\"exit_code\":0,\"signal\":null,\"timed_out\":false,"
		     "\"oom\":false,\"truncated\":false,\"duration_ms\":1,\"xy\":1}\r\n"),
		STEP("DELETE ", REPLY, OK_REPLY),
		{ NULL, REPLY, NULL, 0 },
	};
	static const struct step half[] = {
		/* half of an exit event is none */
		STEP("PUT ", CUT,
		     RUNS "7b\r\n\3\0\0\0\0\0\0\x73{\"event\":\"exit\",\"exit_code\":0"),
		STEP("GET /v1/execs/*/output?offset=0&", REPLY, STREAM EXIT0),
		STEP("DELETE ", REPLY, OK_REPLY),
		{ NULL, REPLY, NULL, 0 },
	};
	static const struct step forgotten[] = {
		STEP("PUT ", CUT, RUNS ALIVE),
		STEP("GET ", REPLY, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"),
		{ NULL, REPLY, NULL, 0 },
	};

	play(head, &with, &o);
	expect("cut before the first byte", 0, "a", 1);
	play(middle, &with, &o);
	expect("cut in a frame", 0, "abcde", 5);
	play(end, &with, &o);
	expect("an answer that does not end", 0, "", 0);
	ok(strstr(o.log, "DELETE") != NULL, "its connection is gone: the DELETE is waited for");
	play(half, &with, &o);
	expect("cut in the exit event", 0, "", 0);
	play(forgotten, &with, &o);
	expect("cut, and then it is not there", C_FAILED, "", 0);
}

static void test_streamed_hostile(void)
{
	static const struct how with = { .whole = 1 };
	static const struct step garbage[] = {
		STEP("PUT ", REPLY, RUNS "10\r\n\1\0\0\0\377\377\377\377xxxxxxxx\r\n"),
		{ NULL, REPLY, NULL, 0 },
	};
	static const struct step empty[] = {
		/* a stream of nothing says that it runs */
		STEP("PUT ", REPLY, RUNS "0\r\n\r\n"),
		STEP("GET ", REPLY, STREAM EXIT0),
		STEP("DELETE ", REPLY, OK_REPLY),
		{ NULL, REPLY, NULL, 0 },
	};
	static const struct step refusal[] = {
		/* frames that are no success are no output */
		STEP("PUT ", REPLY, "HTTP/1.1 500 x\r\n" FRAMES "9\r\n\1\0\0\0\0\0\0\1a\r\n" EXIT0),
		{ NULL, REPLY, NULL, 0 },
	};
	static const struct step text[] = {
		/* output of another kind is none */
		STEP("PUT ", REPLY,
		     "HTTP/1.1 201 x\r\nContent-Type: text/plain\r\nContent-Length: 1\r\n\r\na"),
		STEP("GET ", REPLY, STREAM EXIT0),
		STEP("DELETE ", REPLY, OK_REPLY),
		{ NULL, REPLY, NULL, 0 },
	};
	static const struct step again[] = {
		/* 400 for ever */
		STEP("PUT ", REPLY, UNKNOWN),
		STEP("PUT ", REPLY, UNKNOWN),
		{ NULL, REPLY, NULL, 0 },
	};
	static const struct how fed = { .whole = 1, .input = "hello\n" };

	play(garbage, &with, &o);
	expect("a frame of 4 GiB in the answer to PUT", C_FAILED, "", 0);
	play(empty, &with, &o);
	expect("a stream of nothing", 0, "", 0);
	play(refusal, &with, &o);
	expect("frames of a 500", C_FAILED, "", 0);
	play(text, &with, &o);
	expect("another type", 0, "", 0);
	play(again, &fed, &o);
	expect("400 with and without the input", C_FAILED, "", 0);
	ok(strstr(o.err, "does not know") != NULL, "is told once: %s", o.err);
}

int main(void)
{
	signal(SIGPIPE, SIG_IGN);
	test_plain();
	test_resume();
	test_gap();
	test_refusals();
	test_hostile();
	test_dead();
	test_input();
	test_signals();
	test_reader_gone();
	test_capture();
	test_detach();
	test_attach();
	test_typed();
	test_streamed();
	test_streamed_cut();
	test_streamed_hostile();
	return tap_done();
}
