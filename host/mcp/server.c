/* SPDX-License-Identifier: Apache-2.0 */
#include "host/mcp/server.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host/cli/out.h"
#include "lib/fd.h"

/*
 * The server itself only reads, writes and starts workers, so it is never busy for long. Its standard output is moved to
 * another descriptor first and what was descriptor 1 becomes standard error: whatever prints, in this process or a worker,
 * cannot come between the lines of the protocol.
 *
 * A client that does not read its answers stops everything that could make more of them: neither its requests nor the
 * workers' results are read until it has taken most of what is there.
 *
 * Ends: the input ends (calls that are about to be answered get a second, the others are cancelled), nobody reads
 * our output, or SIGTERM, SIGINT, SIGHUP. What workers have begun is undone before the server exits.
 */

#define CHUNK	 (512U << 10)
#define OUT_HIGH (4U << 20) /* choked from here on */
#define OUT_MAX	 (512U << 20)
#define EOF_NS	 1000000000LL	     /* for calls in progress when the input ends */
#define END_NS	 (20 * 1000000000LL) /* for workers to undo things */

/* --- output --- */

/* From places where calls must not go away under the caller. */
static void close_soon(struct mcp_server *s)
{
	if (!s->closing)
		loop_arm(&s->loop, &s->end, 0);
	else if (!s->calls)
		loop_stop(&s->loop);
}

static void pump(struct mcp_server *s)
{
	while (s->out_at < s->outq.len && sink_idle(&s->out) && !s->out.error) {
		size_t n = s->outq.len - s->out_at;

		n = n < CHUNK ? n : CHUNK;
		if (sink_write(&s->out, s->outq.p + s->out_at, n) < 0)
			break;
		s->out_at += n;
	}
	if (s->out.error) { /* nobody reads */
		buf_clear(&s->outq);
		s->out_at = 0;
		close_soon(s);
		return;
	}
	if (s->out_at < s->outq.len)
		return;
	if (s->outq.size > OUT_HIGH) {
		buf_done(&s->outq);
		buf_init(&s->outq, OUT_MAX);
	}
	buf_clear(&s->outq);
	s->out_at = 0;
}

void server_send(struct mcp_server *s, const char *p, size_t n)
{
	if (s->out.error)
		return;
	if (buf_add(&s->outq, p, n) < 0) {
		out_warn("no memory for an answer of %zu bytes", n);
		s->status = 1;
		close_soon(s);
		return;
	}
	pump(s);
	if (s->outq.len - s->out_at > OUT_HIGH)
		s->choked = true;
}

static void on_sink(void *arg)
{
	struct mcp_server *s = arg;

	pump(s);
	if (s->choked && s->outq.len - s->out_at < OUT_HIGH / 2) {
		s->choked = false;
		server_resume(s);
	}
	if (s->closing && !s->calls && s->out_at == s->outq.len && sink_idle(&s->out))
		loop_stop(&s->loop);
}

void server_error(struct mcp_server *s, const char *id, enum rpc_error code, const char *message,
		  const char *data)
{
	AUTO_BUF b;

	buf_init(&b, 64U << 10);
	if (rpc_error(&b, id, code, message, data) == 0)
		server_send(s, b.p, b.len);
}

void server_result(struct mcp_server *s, const char *id, bool modern, const char *result)
{
	AUTO_BUF b;

	buf_init(&b, OUT_MAX);
	if (buf_addf(&b, "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{%s%s%s}}\n", id, result,
		     modern && *result ? "," : "", modern ? listing_modern() : "") == 0)
		server_send(s, b.p, b.len);
	else
		server_error(s, id, RPC_INTERNAL, "no memory", NULL);
}

/* --- input --- */

static bool on_line(void *arg, char *p, size_t n)
{
	struct mcp_server *s = arg;
	struct rpc_msg m;

	if (s->closing)
		return false;
	if (!p) {
		server_error(s, "null", RPC_INVALID_REQUEST, "the message is longer than 16 MiB",
			     NULL);
		return true;
	}
	rpc_read(p, n, &m);
	if (m.kind == RPC_BAD)
		server_error(s, m.id, m.code, m.why, NULL);
	else if (m.kind != RPC_RESPONSE)
		dispatch(s, &m, n);
	rpc_done(&m);
	return !s->closing;
}

static void on_end_of_input(struct mcp_server *s)
{
	rpc_end(&s->lines);
	s->eof = true;
	if (s->running + s->waiting == 0)
		server_close(s);
	else
		loop_arm(&s->loop, &s->end, EOF_NS);
}

static void on_input(void *arg)
{
	struct mcp_server *s = arg;
	ssize_t n;

	if (s->closing || s->eof || s->choked)
		return;
	n = source_read(&s->in, s->chunk, sizeof(s->chunk));
	if (n > 0)
		(void)rpc_feed(&s->lines, s->chunk, (size_t)n);
	else if (n != -EAGAIN)
		on_end_of_input(s);
	server_resume(s);
}

void server_resume(struct mcp_server *s)
{
	if (s->choked || s->closing)
		return;
	calls_go_on(s);
	if (!s->eof && source_wait(&s->in) < 0)
		on_end_of_input(s);
	else if (s->eof && s->running + s->waiting == 0)
		server_close(s);
}

/* --- the end --- */

static void on_end_timer(struct loop_timer *t)
{
	struct mcp_server *s = t->arg;

	if (!s->closing) {
		server_close(s);
	} else {
		calls_kill_all(s);
		loop_stop(&s->loop);
	}
}

void server_close(struct mcp_server *s)
{
	if (!s->closing) {
		s->closing = true;
		loop_arm(&s->loop, &s->end, END_NS);
		calls_cancel_all(s);
	}
	if (!s->calls && (s->out.error || (s->out_at == s->outq.len && sink_idle(&s->out))))
		loop_stop(&s->loop);
}

static void on_signal(void *arg, const void *siginfo)
{
	const struct signalfd_siginfo *si = siginfo;
	struct mcp_server *s = arg;

	if (si->ssi_signo == SIGCHLD)
		calls_reap(s);
	else
		server_close(s);
}

/* --- the whole --- */

static int begin(struct mcp_server *s)
{
	int out = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1), r;
	sigset_t set;

	if (out < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
		return -errno;
	r = loop_init(&s->loop);
	if (r < 0)
		return r;
	buf_init(&s->outq, OUT_MAX);
	rpc_lines_init(&s->lines, on_line, s);
	s->end = (struct loop_timer)LOOP_TIMER_INIT;
	s->end.fn = on_end_timer;
	s->end.arg = s;
	r = sink_init(&s->out, &s->loop, out, on_sink, s);
	source_init(&s->in, &s->loop, STDIN_FILENO, on_input, s);
	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGCHLD);
	(void)sigaddset(&set, SIGTERM);
	(void)sigaddset(&set, SIGINT);
	(void)sigaddset(&set, SIGHUP);
	if (r == 0)
		r = loop_signals(&s->loop, &set, on_signal, s);
	if (r == 0)
		r = source_wait(&s->in);
	return r;
}

static void end(struct mcp_server *s)
{
	watch_end(s);
	source_done(&s->in);
	sink_done(&s->out);
	rpc_lines_done(&s->lines);
	buf_done(&s->outq);
	loop_disarm(&s->end);
	loop_done(&s->loop);
	free(s->tools);
	for (size_t i = 0; i < MCP_SUBS_MAX; i++)
		sub_done(&s->subs[i]);
	sub_done(&s->legacy);
	free(s);
}

int mcp_serve(const struct mcp_config *c)
{
	struct mcp_server *s = calloc(1, sizeof(*s));
	int r = s ? 0 : -ENOMEM, status;

	if (r == 0) {
		s->cfg = c;
		s->notify_fd = -1;
		s->log.level = MCP_LOG_WARNING;
		r = begin(s);
	}
	if (r == 0)
		r = loop_run(&s->loop);
	if (r < 0)
		out_warn("the MCP server cannot run: %s", strerror(-r));
	status = r < 0 ? 1 : s->status;
	if (s)
		end(s);
	return status;
}
