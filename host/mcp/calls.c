/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host/mcp/server.h"
#include "lib/fd.h"
#include "lib/str.h"

/*
 * Calls, each in a worker: a copy of the server (fork) that does one thing with blocking code and writes lines for the client
 * into a pipe, the answer last. The server only passes lines on, whole, so that those of several workers do not mix.
 *
 * A call leaves the table when its worker has been reaped and its pipe has ended. A worker that ends without an
 * answer is answered for. One that is cancelled gets SIGTERM, undoes what it has begun, and is not answered for, as
 * the protocol wants it; KILL_NS later it is killed. Its id is free again at once.
 *
 * A worker can go on after its answer, for as long as the server lives: a line WORKER_KEEP before the answer says as what. It does
 * not count among those that run. WORKER_END of another worker ends it.
 */

#define KILL_NS	  (15 * 1000000000LL)
#define PIPE_READ (64U << 10)

static const char answer_begin[] = "{\"jsonrpc\":\"2.0\",\"id\":";

static void unlink_call(struct mcp_server *s, struct mcp_call *c)
{
	struct mcp_call **p = &s->calls;

	while (*p != c)
		p = &(*p)->next;
	*p = c->next;
}

static void call_free(struct mcp_server *s, struct mcp_call *c)
{
	unlink_call(s, c);
	if (c->kept) {
		free(c->kept);
	} else if (c->pid) {
		s->running--;
	} else {
		s->waiting--;
		s->waiting_bytes -= c->bytes;
	}
	loop_del(&c->watch);
	loop_disarm(&c->kill);
	fd_close(&c->fd);
	buf_done(&c->in);
	rpc_done(&c->msg);
	free(c);
}

/* --- what a worker writes --- */

static bool begins(const char *p, size_t n, const char *with)
{
	return n > strlen(with) && !memcmp(p, with, strlen(with));
}

static void keep(struct mcp_call *c, const char *p, size_t n)
{
	c->kept = strndup(p, n);
	if (c->kept)
		c->s->running--;
	else
		calls_cancel(c);
}

static void end_kept(struct mcp_server *s, const char *p, size_t n)
{
	char text[24];
	uint64_t pid;

	if (str_format(text, sizeof(text), "%.*s", (int)n, p) < 0 ||
	    str_to_u64(text, 1, INT_MAX, &pid) < 0)
		return;
	for (struct mcp_call *c = s->calls; c; c = c->next)
		if (c->kept && c->pid == (pid_t)pid && !c->cancelled) {
			calls_cancel(c);
			return;
		}
}

/* P ends with its newline. */
static void on_worker_line(struct mcp_call *c, const char *p, size_t n)
{
	size_t k = strlen(WORKER_KEEP), e = strlen(WORKER_END);

	if (c->cancelled || c->answered)
		return;
	if (begins(p, n, WORKER_KEEP)) {
		keep(c, p + k, n - k - 1);
		return;
	}
	if (begins(p, n, WORKER_LOG)) {
		log_worker(c, p + strlen(WORKER_LOG), n - strlen(WORKER_LOG) - 1);
		return;
	}
	if (begins(p, n, WORKER_END)) {
		end_kept(c->s, p + e, n - e - 1);
		return;
	}
	if (n > sizeof(answer_begin) && !memcmp(p, answer_begin, sizeof(answer_begin) - 1))
		c->answered = true;
	server_send(c->s, p, n);
}

static void give_lines(struct mcp_call *c, size_t scanned)
{
	const char *nl;
	size_t used = 0;

	while ((nl = memchr(c->in.p + scanned, '\n', c->in.len - scanned)) != NULL) {
		size_t end = (size_t)(nl - c->in.p) + 1;

		on_worker_line(c, c->in.p + used, end - used);
		used = scanned = end;
	}
	buf_drop(&c->in, used);
}

/* Why the process of C is no more, in a few words. */
static void why_dead(const struct mcp_call *c, char out[static 48])
{
	if (WIFSIGNALED(c->status))
		ignore_result(str_format(out, 48, "signal %d", WTERMSIG(c->status))); /* it fits */
	else
		ignore_result(
			str_format(out, 48, "status %d", WEXITSTATUS(c->status))); /* it fits */
}

static void finish(struct mcp_server *s, struct mcp_call *c)
{
	char why[48];

	if (!c->dead || c->fd >= 0)
		return;
	why_dead(c, why);
	if (!c->answered && !c->cancelled) {
		log_server(s, c, MCP_LOG_ERROR, "the process that worked on %s has died (%s)",
			   c->what, why);
		server_error(s, c->id, RPC_INTERNAL,
			     "the process that worked on this request has died", NULL);
	} else if (c->kept && !c->cancelled) {
		log_server(s, c, MCP_LOG_WARNING, "what %s began has ended by itself (%s): %s",
			   c->what, why, c->kept);
	}
	call_free(s, c);
	if (s->closing)
		server_close(s);
	else
		server_resume(s);
}

static void on_pipe(struct loop_watch *w, uint32_t events)
{
	struct mcp_call *c = w->arg;
	size_t before = c->in.len;
	ssize_t n = -1;

	(void)events;
	if (c->s->choked && !c->cancelled) {
		loop_del(w); /* calls_go_on adds it again */
		return;
	}
	if (buf_reserve(&c->in, PIPE_READ) == 0) {
		n = read(c->fd, c->in.p + c->in.len, PIPE_READ);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
	}
	if (n > 0) {
		c->in.len += (size_t)n;
		give_lines(c, before);
		return;
	}
	if (n < 0) /* more than anybody can have wanted: it gets no further */
		(void)kill(c->pid, SIGTERM);
	loop_del(w);
	fd_close(&c->fd);
	finish(c->s, c);
}

void calls_reap(struct mcp_server *s)
{
	pid_t pid;
	int status;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		struct mcp_call *c = s->calls;

		while (c && c->pid != pid)
			c = c->next;
		if (!c)
			continue;
		c->dead = true;
		c->status = status;
		finish(s, c);
	}
}

/* --- start --- */

static void on_kill(struct loop_timer *t)
{
	const struct mcp_call *c = t->arg;

	if (!c->pid || c->dead)
		return;
	(void)kill(c->pid, SIGKILL);
	log_server(c->s, c, MCP_LOG_WARNING, "%s was cancelled, did not end and was killed",
		   c->what);
}

static int start(struct mcp_call *c)
{
	struct mcp_server *s = c->s;
	int p[2], r;
	pid_t pid;

	if (pipe2(p, O_CLOEXEC) < 0)
		return -errno;
	pid = fork();
	if (pid == 0)
		worker_run(c, p[1]);
	r = pid < 0 ? -errno : 0;
	(void)close(p[1]);
	if (r < 0) {
		(void)close(p[0]);
		return r;
	}
	c->pid = pid;
	c->fd = p[0];
	s->waiting--;
	s->waiting_bytes -= c->bytes;
	s->running++;
	rpc_done(&c->msg); /* the worker has its own */
	r = fd_set_nonblock(c->fd, true);
	if (r == 0)
		r = loop_add(&s->loop, &c->watch, c->fd, EPOLLIN);
	if (r < 0) {
		fd_close(&c->fd);
		(void)kill(pid, SIGTERM);
	}
	return 0;
}

/* Starts those that wait as far as there is room, oldest first; reads on from workers that were choked. */
void calls_go_on(struct mcp_server *s)
{
	for (struct mcp_call *c = s->calls, *next; c; c = next) {
		next = c->next;
		if (c->pid && c->fd >= 0 && !c->watch.loop) {
			if (loop_add(&s->loop, &c->watch, c->fd, EPOLLIN) < 0)
				fd_close(&c->fd);
		} else if (!c->pid && s->running < MCP_RUNNING_MAX && !s->closing && start(c) < 0) {
			server_error(s, c->id, RPC_INTERNAL,
				     "no process could be started for this request", NULL);
			call_free(s, c);
		}
	}
}

/* What M asks for, in static storage. */
static const char *what_of(const struct rpc_msg *m)
{
	const char *name = NULL;

	if (strcmp(m->method, "tools/call") != 0)
		return strcmp(m->method, "resources/list") ? "resources/read" : "resources/list";
	ignore_result(jsn_str(m->params, "name", &name, NULL)); /* dispatch has looked */
	return mcp_tool_find(name)->name;
}

void calls_add(struct mcp_server *s, struct rpc_msg *m, size_t bytes, bool modern,
	       enum mcp_level log_level)
{
	struct mcp_call *c = NULL, **end = &s->calls;

	if (s->waiting < MCP_WAITING_MAX && s->waiting_bytes + bytes <= MCP_WAITING_BYTES)
		c = calloc(1, sizeof(*c));
	if (!c) {
		server_error(s, m->id, RPC_INTERNAL, "too many requests are waiting", NULL);
		return;
	}
	c->s = s;
	c->msg = *m;
	c->what = what_of(m);
	m->doc = NULL;
	memcpy(c->id, m->id, sizeof(c->id));
	c->modern = modern;
	c->log_level = log_level;
	c->bytes = bytes;
	c->fd = -1;
	c->watch = (struct loop_watch)LOOP_WATCH_INIT;
	c->watch.fn = on_pipe;
	c->watch.arg = c;
	c->kill = (struct loop_timer)LOOP_TIMER_INIT;
	c->kill.fn = on_kill;
	c->kill.arg = c;
	buf_init(&c->in, MCP_RESULT_MAX);
	while (*end)
		end = &(*end)->next;
	*end = c;
	s->waiting++;
	s->waiting_bytes += bytes;
	calls_go_on(s);
}

/* --- cancellation --- */

struct mcp_call *calls_find(struct mcp_server *s, const char *id)
{
	for (struct mcp_call *c = s->calls; c; c = c->next)
		if (!c->answered && !c->cancelled && !strcmp(c->id, id))
			return c;
	return NULL;
}

void calls_cancel(struct mcp_call *c)
{
	struct mcp_server *s = c->s;

	c->cancelled = true;
	if (!c->pid) {
		call_free(s, c);
		return;
	}
	if (!c->dead)
		(void)kill(c->pid, SIGTERM);
	loop_arm(&s->loop, &c->kill, KILL_NS);
	if (c->fd >= 0 && !c->watch.loop && loop_add(&s->loop, &c->watch, c->fd, EPOLLIN) < 0)
		fd_close(&c->fd); /* it was choked; now its lines are thrown away */
}

void calls_cancel_all(struct mcp_server *s)
{
	for (struct mcp_call *c = s->calls, *next; c; c = next) {
		next = c->next;
		if (!c->cancelled)
			calls_cancel(c);
	}
}

void calls_kill_all(struct mcp_server *s)
{
	while (s->calls) {
		if (s->calls->pid && !s->calls->dead)
			(void)kill(s->calls->pid, SIGKILL);
		call_free(s, s->calls);
	}
}
