/* SPDX-License-Identifier: Apache-2.0 */
#include "worker.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "app.h"
#include "cgroup.h"
#include "lib/fd.h"
#include "lib/jsn.h"
#include "lib/log.h"
#include "lib/proc.h"
#include "limits.h"

/*
 * agentd's side of a worker. Its answer begins with a line of JSON: {"status":N,"type":T,"length":L}, and then come the
 * bytes of the body; or, without "type", the other members are the whole body. Empty lines before it mean "I live".
 *
 *	request body -> [sink] -> pipe -> worker -> pipe -> [head, then pull] -> answer
 *
 * A slot of the table is free when the request has ended and the process has been reaped, in whichever order. A body is complete
 * when the pipe has ended and the exit status is 0: what a worker that died had written is never taken for all of it.
 *
 * The deadline counts only while the worker is what everybody waits for: with its input full, or its output awaited. For
 * a client that does not send or read, the server's own time-out holds.
 *
 * Watches are added while there is something to wait for and removed otherwise: a pipe whose other end is closed is
 * always ready.
 */

struct worker {
	bool used, reaped, terminated;
	bool begun; /* the head is here: what follows goes to the client */
	bool answered;
	bool pulling; /* the client waits for bytes */
	bool in_full;
	bool body_done;
	struct httpd_req *r; /* NULL when it has ended */
	struct proc_child child;
	int cgroup_fd; /* owned; -1 = none */
	int wait_status;
	int in, out; /* owned; -1 = closed */
	struct loop_watch in_watch, out_watch;
	struct loop_timer deadline;
	struct buf head; /* before begun: the line; then what was read behind it */
	size_t head_at;
	const char *own; /* borrowed from R: a collected body */
	size_t own_len;
};

static struct worker table[LIMIT_WORKERS];
static struct loop *loop;
static int program = -1;

/* --- table --- */
static void release(struct worker *w)
{
	if (w->r || !w->reaped)
		return;
	loop_disarm(&w->deadline);
	buf_done(&w->head);
	fd_close(&w->child.pidfd);
	cgroup_release(&w->cgroup_fd);
	memset(w, 0, sizeof(*w));
}

static void close_input(struct worker *w)
{
	loop_del(&w->in_watch);
	fd_close(&w->in);
	w->in_full = false;
}

static void kill_worker(struct worker *w)
{
	if (!w->reaped)
		ignore_result(proc_signal(&w->child, SIGKILL));
}

/* So that it can remove what it has half made; on_deadline kills what does not end. */
static void terminate(struct worker *w)
{
	if (w->reaped || w->terminated)
		return;
	w->terminated = true;
	ignore_result(proc_signal(&w->child, SIGTERM));
	loop_arm(loop, &w->deadline, LIMIT_WORKER_TERM_NS);
}

/* The request is over, in whatever way. Signalled first, so that the worker never takes the end of its input for the end of
 * the body. */
static void on_end(void *arg)
{
	struct worker *w = arg;

	w->r = NULL;
	terminate(w);
	close_input(w);
	loop_del(&w->out_watch);
	fd_close(&w->out);
	release(w);
}

/* --- the answer --- */
static void progress(struct worker *w)
{
	if (!w->terminated)
		loop_arm(loop, &w->deadline, LIMIT_WORKER_NS);
}

static void fail(struct worker *w, int status, const char *why)
{
	if (w->answered)
		return;
	w->answered = true;
	loop_del(&w->out_watch);
	httpd_reply_error(w->r, status, "%s", why);
}

/* It has ended without an answer. */
static void told_nothing(struct worker *w)
{
	char why[120];

	if (WIFSIGNALED(w->wait_status))
		(void)snprintf(why, sizeof(why), "the worker was killed by signal %d%s",
			       WTERMSIG(w->wait_status),
			       WTERMSIG(w->wait_status) == SIGKILL ? " (out of memory?)" : "");
	else
		(void)snprintf(why, sizeof(why), "the worker ended with %d and no answer",
			       WEXITSTATUS(w->wait_status));
	fail(w, 500, why);
}

static int watch_output(struct worker *w)
{
	return w->out_watch.loop ? 0 : loop_add(loop, &w->out_watch, w->out, EPOLLIN);
}

static ssize_t at_end(struct worker *w)
{
	fd_close(&w->out);
	if (!w->reaped)
		return HTTPD_PULL_LATER; /* worker_ended asks again */
	return w->wait_status == 0 ? HTTPD_PULL_END : HTTPD_PULL_ABORT;
}

static ssize_t pull(void *arg, char *p, size_t max)
{
	struct worker *w = arg;
	size_t n = w->head.len - w->head_at;
	ssize_t k;

	w->pulling = false;
	progress(w);
	if (n) {
		n = n < max ? n : max;
		memcpy(p, w->head.p + w->head_at, n);
		w->head_at += n;
		return (ssize_t)n;
	}
	k = w->out < 0 ? 0 : read(w->out, p, max);
	if (k > 0)
		return k;
	if (k < 0 && errno != EAGAIN && errno != EINTR)
		return HTTPD_PULL_ABORT;
	if (k == 0)
		k = at_end(w);
	else
		k = watch_output(w) < 0 ? HTTPD_PULL_ABORT : HTTPD_PULL_LATER;
	w->pulling = k == HTTPD_PULL_LATER;
	return k;
}

static void begin_body(struct worker *w, int status, const char *type, const cJSON *j)
{
	uint64_t length = 0;
	int has = jsn_u64(j, "length", 0, INT64_MAX, &length, NULL);

	httpd_reply_stream(w->r, status, type, has == 1 ? (int64_t)length : -1, pull, w);
}

/* LINE is the whole first line. */
static void on_head(struct worker *w, const char *line, size_t n)
{
	cJSON *j = jsn_parse(line, n, NULL);
	const char *type = NULL;
	uint64_t status = 0;

	if (!j || jsn_u64(j, "status", 200, 599, &status, NULL) != 1 ||
	    jsn_str(j, "type", &type, NULL) < 0) {
		cJSON_Delete(j);
		fail(w, 500, "the worker's answer makes no sense");
		return;
	}
	w->answered = w->begun = true;
	if (type) {
		begin_body(w, (int)status, type, j);
		cJSON_Delete(j);
		return;
	}
	cJSON_DeleteItemFromObjectCaseSensitive(j, "status");
	httpd_reply_json(w->r, (int)status, j);
}

/* Looks for the first line in what has been read. */
static void take_head(struct worker *w)
{
	size_t skip = 0;
	const char *nl;
	size_t n;

	while (skip < w->head.len && w->head.p[skip] == '\n')
		skip++;
	buf_drop(&w->head, skip);
	nl = w->head.len ? memchr(w->head.p, '\n', w->head.len) : NULL;
	if (!nl) {
		if (w->head.len == w->head.cap)
			fail(w, 500, "the worker's answer is too long");
		return;
	}
	n = (size_t)(nl - w->head.p);
	w->head_at = n + 1;
	loop_del(&w->out_watch);
	on_head(w, w->head.p, n);
}

static void read_head(struct worker *w)
{
	char chunk[4096];
	size_t room = w->head.cap - w->head.len;
	ssize_t k = read(w->out, chunk, room < sizeof(chunk) ? room : sizeof(chunk));

	if (k < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	progress(w);
	if (k > 0 && buf_add(&w->head, chunk, (size_t)k) == 0) {
		take_head(w);
		return;
	}
	if (k > 0) {
		fail(w, 503, "out of memory");
		return;
	}
	loop_del(&w->out_watch);
	fd_close(&w->out);
	if (w->reaped)
		told_nothing(w);
}

static void on_output(struct loop_watch *watch, uint32_t events)
{
	struct worker *w = watch->arg;

	(void)events;
	if (!w->answered) {
		read_head(w);
		return;
	}
	loop_del(watch);
	if (w->pulling)
		httpd_wake(w->r);
}

/* --- its input --- */
/* Bytes taken; those for a worker that reads no more are dropped. */
static ssize_t feed(struct worker *w, const char *p, size_t n)
{
	ssize_t k = w->in < 0 ? (ssize_t)n : write(w->in, p, n);

	if (k >= 0) {
		progress(w);
	} else if (errno == EAGAIN || errno == EINTR) {
		k = 0;
	} else {
		close_input(w);
		return (ssize_t)n;
	}
	w->in_full = k < (ssize_t)n;
	if (w->in_full && !w->in_watch.loop && loop_add(loop, &w->in_watch, w->in, EPOLLOUT) < 0) {
		close_input(w); /* it sees the end too early, so its answer must not count */
		kill_worker(w);
		return (ssize_t)n;
	}
	return k;
}

static ssize_t sink(void *arg, const char *p, size_t n)
{
	struct worker *w = arg;

	if (n)
		return feed(w, p, n);
	w->body_done = true;
	close_input(w);
	progress(w);
	return 0;
}

/* A collected body. */
static void feed_own(struct worker *w)
{
	while (w->own_len) {
		ssize_t k = feed(w, w->own, w->own_len);

		w->own += k;
		w->own_len -= (size_t)k;
		if (w->in_full)
			return;
	}
	w->body_done = true;
	close_input(w);
}

static void on_input(struct loop_watch *watch, uint32_t events)
{
	struct worker *w = watch->arg;

	(void)events;
	w->in_full = false;
	loop_del(watch);
	if (w->own)
		feed_own(w);
	else
		httpd_wake(w->r);
}

/* --- its end --- */
static void on_deadline(struct loop_timer *t)
{
	struct worker *w = t->arg;

	if (w->terminated) {
		kill_worker(w);
		return;
	}
	if (!w->in_full && !w->pulling && (w->answered || !w->body_done)) {
		progress(w); /* it waits for the client */
		return;
	}
	log_warn("worker %ld made no progress for %lld s and is killed", (long)w->child.pid,
		 LIMIT_WORKER_NS / LIMIT_SECOND_NS);
	terminate(w);
	fail(w, 504, "the work made no progress");
}

bool worker_ended(pid_t pid)
{
	struct worker *w = NULL;

	for (size_t i = 0; i < LIMIT_WORKERS && !w; i++)
		if (table[i].used && !table[i].reaped && table[i].child.pid == pid)
			w = &table[i];
	if (!w)
		return false;
	while (waitpid(pid, &w->wait_status, 0) < 0 && errno == EINTR)
		;
	w->reaped = true;
	if (!w->r) {
		release(w);
		return true;
	}
	if (w->out < 0 && !w->answered)
		told_nothing(w);
	else if (w->out < 0 && w->pulling)
		httpd_wake(w->r);
	return true; /* else its output is not read to the end yet */
}

unsigned worker_running(void)
{
	unsigned n = 0;

	for (size_t i = 0; i < LIMIT_WORKERS; i++)
		n += table[i].used;
	return n;
}

void worker_kill_all(void)
{
	for (size_t i = 0; i < LIMIT_WORKERS; i++)
		if (table[i].used)
			kill_worker(&table[i]);
}

/* --- start --- */
void worker_start(struct loop *l)
{
	loop = l;
	program = open("/proc/self/exe", O_PATH | O_CLOEXEC);
	if (program < 0)
		log_warn("no workers: /proc/self/exe: %s", strerror(errno));
}

void worker_stop(void)
{
	worker_kill_all();
	fd_close(&program);
}

/* In the child: becomes the worker. Only returns when that fails. */
static int exec_self(void *arg, enum proc_step *step)
{
	static char *const no_env[] = { NULL };
	char *const *argv = arg;
	char path[40];

	(void)step;
	if (chdir("/") < 0) /* proc.h's own cwd comes after this */
		return -errno;
	(void)syscall(SYS_execveat, program, "", argv, no_env, AT_EMPTY_PATH);
	if (errno != ENOSYS)
		return -errno;
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", program); /* qemu-user */
	(void)execve(path, argv, no_env);
	return -errno;
}

static int make_pipes(struct worker *w, int child[2])
{
	int p[2];

	if (pipe2(p, O_CLOEXEC) < 0)
		return -errno;
	child[0] = p[0];
	w->in = p[1];
	if (pipe2(p, O_CLOEXEC) < 0)
		return -errno;
	w->out = p[0];
	child[1] = p[1];
	(void)fcntl(w->in, F_SETPIPE_SZ, LIMIT_PIPE); /* else smaller and slower */
	(void)fcntl(w->out, F_SETPIPE_SZ, LIMIT_PIPE);
	if (fd_set_nonblock(w->in, true) < 0 || fd_set_nonblock(w->out, true) < 0)
		return -errno;
	return 0;
}

static int spawn(struct worker *w, char **argv, struct err *e)
{
	struct proc_spec p = PROC_SPEC_INIT;
	AUTO_FD in = -1, out = -1;
	int child[2] = { -1, -1 };
	int r = make_pipes(w, child);

	in = child[0];
	out = child[1];
	if (r < 0)
		return err_set(e, ERR_FULL, -r, "pipe");
	if (cgroup_new(&w->cgroup_fd) < 0)
		w->cgroup_fd = -1;
	p.argv = argv;
	p.fd[0] = in;
	p.fd[1] = out;
	p.cgroup_fd = w->cgroup_fd;
	p.flags = PROC_SETSID | PROC_DEATHSIG;
	p.child_fn = exec_self;
	p.child_arg = argv;
	return proc_spawn(&p, &w->child, NULL, e);
}

static struct worker *take_slot(void)
{
	for (size_t i = 0; i < LIMIT_WORKERS; i++)
		if (!table[i].used)
			return &table[i];
	return NULL;
}

static void init_slot(struct worker *w, struct httpd_req *r)
{
	*w = (struct worker){
		.used = true, .reaped = true, .r = r, .in = -1, .out = -1, .cgroup_fd = -1
	};
	w->child.pidfd = -1;
	buf_init(&w->head, LIMIT_WORKER_HEAD);
	w->in_watch = w->out_watch = (struct loop_watch)LOOP_WATCH_INIT;
	w->in_watch.fn = on_input;
	w->out_watch.fn = on_output;
	w->in_watch.arg = w->out_watch.arg = w->deadline.arg = w;
	w->deadline.fn = on_deadline;
}

static void busy(struct httpd_req *r, const char *why)
{
	ignore_result(httpd_add_header(r, "Retry-After", "1")); /* a hint */
	httpd_reply_error(r, 503, "%s", why);
}

static const char *refusal(const struct worker *w)
{
	if (!w)
		return "all workers are busy";
	if (program < 0)
		return "no worker can be started: /proc is missing";
	return cgroup_frozen() ? "the workload is frozen" : NULL;
}

static void connect_input(struct worker *w, enum worker_input input)
{
	if (input == WORKER_STREAM) {
		httpd_set_sink(w->r, sink, w);
		return;
	}
	w->own = httpd_body_data(w->r, &w->own_len);
	if (input == WORKER_NO_INPUT)
		w->own_len = 0;
	feed_own(w);
}

static void free_words(char **argv)
{
	for (; *argv; argv++)
		free(*argv);
}

static int copy_words(char *argv[WORKER_ARGS_MAX + 3], const char *verb, const char *const *args,
		      unsigned nargs)
{
	if (nargs > WORKER_ARGS_MAX)
		return -E2BIG;
	argv[0] = strdup(WORKER_NAME);
	argv[1] = argv[0] ? strdup(verb) : NULL;
	for (unsigned i = 0; argv[i + 1] && i < nargs; i++)
		argv[i + 2] = strdup(args[i]);
	return argv[nargs + 1] ? 0 : -ENOMEM;
}

void worker_serve(struct httpd_req *r, const char *verb, const char *const *args, unsigned nargs,
		  enum worker_input input)
{
	char *argv[WORKER_ARGS_MAX + 3] = { NULL };
	struct worker *w = take_slot();
	const char *why = refusal(w);
	struct err e = ERR_INIT;

	if (why) {
		busy(r, why);
		return;
	}
	init_slot(w, r);
	if (app_enter(r, on_end, w) < 0) {
		w->r = NULL;
		release(w);
		return;
	}
	if (copy_words(argv, verb, args, nargs) < 0) {
		fail(w, 503, "out of memory");
	} else if (spawn(w, argv, &e) < 0) {
		w->answered = true;
		busy(r, e.msg);
	} else {
		w->reaped = false;
		progress(w);
		connect_input(w, input);
		if (watch_output(w) < 0)
			fail(w, 503, "out of memory");
	}
	free_words(argv);
}
