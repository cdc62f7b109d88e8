/* SPDX-License-Identifier: Apache-2.0 */
#include "sup.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "lib/fd.h"
#include "lib/log.h"
#include "lib/str.h"

/*
 * The table `on` at the end of this file is the whole behaviour: for a state and an event, the
 * function that acts and names the next state; nothing there means that the event is of no
 * interest. An end is never a reason for asb-init to end.
 *
 * A notify pipe that breaks without a byte says nothing: the exit that goes with it arrives by
 * SIGCHLD.
 */

#define ENV_MAX	    256
#define OOM_SERVICE "-900" /* agentd undoes it for what it starts */

typedef enum sup_state action_fn(struct sup_service *v);

static void dispatch(struct sup_service *v, enum sup_event ev);

int64_t sup_next_backoff(int64_t backoff_ns, int64_t ran_ns)
{
	if (backoff_ns == 0 || ran_ns >= SUP_GOOD_NS)
		return SUP_BACKOFF_MIN_NS;
	return backoff_ns * 2 < SUP_BACKOFF_MAX_NS ? backoff_ns * 2 : SUP_BACKOFF_MAX_NS;
}

static void drop_notify(struct sup_service *v)
{
	loop_del(&v->notify_watch);
	fd_close(&v->notify_fd);
}

static void on_notify(struct loop_watch *w, uint32_t events)
{
	struct sup_service *v = w->arg;
	char b;
	ssize_t k = read(w->fd, &b, 1);

	(void)events;
	if (k < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	drop_notify(v);
	if (k == 1)
		dispatch(v, SUP_NOTIFY);
}

static void on_timer(struct loop_timer *t)
{
	dispatch(t->arg, SUP_TIMER);
}

/* In the child. Not allowed in a plain container: then the kernel's own choice stands. */
static int protect(void *arg, enum proc_step *step)
{
	(void)arg;
	(void)step;
	ignore_result(fd_write_str(AT_FDCWD, "/proc/self/oom_score_adj", OOM_SERVICE));
	return 0;
}

/* The environment of a service, without such words of ours as were inherited. */
static void make_env(struct sup *s, int fd, char *out[static ENV_MAX + 3], char word[static 32])
{
	int n = 0;

	for (char *const *env = s->env; *env && n < ENV_MAX; env++)
		if (!str_starts(*env, "ASB_NOTIFY_FD=") && !str_starts(*env, "ASB_INIT_ID="))
			out[n++] = *env;
	(void)snprintf(word, 32, "ASB_NOTIFY_FD=%d", fd);
	out[n++] = word;
	out[n++] = s->init_id;
	out[n] = NULL;
}

static int spawn(struct sup_service *v, struct err *e)
{
	char *argv[] = { v->path, NULL };
	char *envp[ENV_MAX + 3], word[32];
	struct proc_spec spec = PROC_SPEC_INIT;
	AUTO_FD rd = -1, wr = -1;
	int p[2], r;

	if (pipe2(p, O_CLOEXEC) < 0)
		return err_set(e, ERR_IO, errno, "pipe");
	rd = p[0];
	wr = p[1];
	make_env(v->sup, wr, envp, word);
	spec.argv = argv;
	spec.envp = envp;
	spec.cwd = "/";
	spec.fd[1] = STDOUT_FILENO;
	spec.fd[2] = STDERR_FILENO;
	spec.keep = &wr;
	spec.keep_len = 1;
	spec.cgroup_fd = v->sup->cgroup_fd;
	spec.flags = PROC_SETSID | PROC_NOPATH;
	spec.child_fn = protect;
	r = fd_set_nonblock(rd, true);
	if (r == 0)
		r = proc_spawn(&spec, &v->child, NULL, e);
	if (r < 0)
		return r;
	v->started_ns = loop_now();
	v->notify_watch = (struct loop_watch){ .fd = -1, .fn = on_notify, .arg = v };
	if (loop_add(v->sup->loop, &v->notify_watch, rd, EPOLLIN) == 0)
		v->notify_fd = fd_take(&rd);
	return 0;
}

static enum sup_state back_off(struct sup_service *v)
{
	v->backoff_ns = sup_next_backoff(v->backoff_ns, loop_now() - v->started_ns);
	loop_arm(v->sup->loop, &v->timer, v->backoff_ns);
	return SUP_BACKOFF;
}

static enum sup_state do_start(struct sup_service *v)
{
	struct err e = ERR_INIT;

	v->started_ns = loop_now();
	if (spawn(v, &e) == 0)
		return SUP_STARTING;
	log_error("%s: %s", v->name, e.msg);
	return back_off(v);
}

static void forget_child(struct sup_service *v)
{
	drop_notify(v);
	fd_close(&v->child.pidfd);
	v->child.pid = 0;
}

static enum sup_state do_restart(struct sup_service *v)
{
	forget_child(v);
	return back_off(v);
}

static enum sup_state do_up(struct sup_service *v)
{
	struct sup *s = v->sup;

	v->was_up = true;
	for (int i = 0; i < s->n; i++)
		if (!s->service[i].was_up)
			return SUP_UP;
	if (!s->told) {
		s->told = true;
		loop_disarm(&s->deadline);
		s->ready(s->arg, NULL);
	}
	return SUP_UP;
}

static enum sup_state do_term(struct sup_service *v)
{
	ignore_result(proc_signal(&v->child, SIGTERM)); /* -ESRCH: its end is on the way to us */
	return SUP_STOPPING;
}

static enum sup_state do_cancel(struct sup_service *v)
{
	loop_disarm(&v->timer);
	return SUP_DOWN;
}

static enum sup_state do_ended(struct sup_service *v)
{
	forget_child(v);
	return SUP_DOWN;
}

static action_fn *const on[SUP_STATE_COUNT][SUP_EVENT_COUNT] = {
	[SUP_DOWN] = { [SUP_START] = do_start },
	[SUP_STARTING] = { [SUP_NOTIFY] = do_up, [SUP_EXIT] = do_restart, [SUP_STOP] = do_term },
	[SUP_UP] = { [SUP_EXIT] = do_restart, [SUP_STOP] = do_term },
	[SUP_BACKOFF] = { [SUP_TIMER] = do_start, [SUP_STOP] = do_cancel },
	[SUP_STOPPING] = { [SUP_EXIT] = do_ended },
};

static void dispatch(struct sup_service *v, enum sup_event ev)
{
	action_fn *fn = on[v->state][ev];

	if (fn)
		v->state = fn(v);
}

static void on_deadline(struct loop_timer *t)
{
	struct sup *s = t->arg;

	for (int i = 0; i < s->n; i++)
		if (!s->service[i].was_up)
			s->ready(s->arg, s->service[i].name);
}

void sup_init(struct sup *s, struct loop *l)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_REALTIME, &t);
	(void)snprintf(s->init_id, sizeof(s->init_id), "ASB_INIT_ID=%lld.%09ld",
		       (long long)t.tv_sec, t.tv_nsec);
	s->loop = l;
	s->deadline = (struct loop_timer){ .fn = on_deadline, .arg = s };
}

int sup_add(struct sup *s, const char *name, const char *path)
{
	struct sup_service *v = &s->service[s->n];

	if (s->n == SUP_MAX)
		return -ENFILE;
	*v = (struct sup_service){ .sup = s, .name = name, .child = { 0, -1 }, .notify_fd = -1 };
	v->notify_watch.fd = -1;
	v->timer = (struct loop_timer){ .fn = on_timer, .arg = v };
	s->n++;
	return str_format(v->path, sizeof(v->path), "%s", path);
}

void sup_start(struct sup *s)
{
	loop_arm(s->loop, &s->deadline, SUP_READY_NS);
	for (int i = 0; i < s->n; i++)
		dispatch(&s->service[i], SUP_START);
}

void sup_stop(struct sup *s)
{
	loop_disarm(&s->deadline);
	for (int i = 0; i < s->n; i++)
		dispatch(&s->service[i], SUP_STOP);
}

bool sup_exited(struct sup *s, pid_t pid, int status)
{
	for (int i = 0; i < s->n; i++) {
		struct sup_service *v = &s->service[i];

		if (v->child.pid != pid)
			continue;
		if (v->state != SUP_STOPPING)
			log_warn("%s ended (%s %d)", v->name,
				 WIFSIGNALED(status) ? "signal" : "status",
				 WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
		dispatch(v, SUP_EXIT);
		return true;
	}
	return false;
}

bool sup_running(const struct sup *s)
{
	for (int i = 0; i < s->n; i++)
		if (s->service[i].child.pid)
			return true;
	return false;
}
