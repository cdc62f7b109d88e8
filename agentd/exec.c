/* SPDX-License-Identifier: Apache-2.0 */
#include "exec.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cgroup.h"
#include "child.h"
#include "lib/fd.h"
#include "lib/proto.h"
#include "runclock.h"

/*
 * States of a slot:
 *
 *   FREE -> RUNNING      exec_start: the program has been executed, else the slot stays FREE and
 * nobody has seen it RUNNING -> LINGER    the leader has been reaped (SIGCHLD). What it left in the
 * pipes is read (exec_out.c) LINGER -> EXITED     the output is complete or the linger over:
 * exec_finish. The result is told now EXITED -> FREE       forgotten, and nothing is left of the
 * tree or it may live on any -> DYING -> FREE forgotten with a tree to kill: the slot is kept until
 * the tree is gone and the leader reaped
 *
 * A background child that holds a pipe after the end (`server &`) must neither delay the result nor
 * die of SIGPIPE: the read ends stay open and are emptied slowly until they end or the slot is
 * needed.
 *
 * A full table first gives up the oldest ended command that nobody follows.
 */

static struct exec table[LIMIT_EXECS];
static struct loop *loop;
static struct exec_stats stats;

const struct exec_stats *exec_get_stats(void)
{
	return &stats;
}

void exec_init(struct loop *l)
{
	loop = l;
}

static bool ended(const struct exec *e)
{
	return e->state == EXEC_EXITED;
}

static void stop_clock(struct exec *e)
{
	loop_disarm(&e->timeout);
	if (e->timed)
		runclock_release();
	e->timed = false;
}

/* Releases what E owns. Its tree lives on. */
static void free_slot(struct exec *e)
{
	stop_clock(e);
	exec_out_close(e);
	exec_in_close(e);
	tree_done(&e->tree);
	fd_close(&e->child.pidfd);
	fd_close(&e->tty);
	outlog_done(&e->log);
	cJSON_Delete(e->asked);
	for (int i = 0; i < 2; i++)
		buf_done(&e->cap[i]);
	memset(e, 0, sizeof(*e));
}

/* Whether A goes before B: nobody may have heard of the end of one that was not told. */
static bool sooner(const struct exec *a, const struct exec *b)
{
	const bool told = exec_is_told(a);

	return told == exec_is_told(b) ? a->end_ns < b->end_ns : told;
}

static struct exec *take_slot(void)
{
	struct exec *oldest = NULL;

	for (size_t i = 0; i < LIMIT_EXECS; i++) {
		struct exec *e = &table[i];

		if (e->state == EXEC_FREE)
			return e;
		if (ended(e) && !e->followers && (!oldest || sooner(e, oldest)))
			oldest = e;
	}
	if (oldest)
		exec_forget(oldest, true);
	return oldest && oldest->state == EXEC_FREE ? oldest : NULL;
}

/* --- start --- */
void exec_told(struct exec *e)
{
	if (e->keep_ns)
		loop_arm(loop, &e->timeout, e->keep_ns);
}

bool exec_is_told(const struct exec *e)
{
	return e->state == EXEC_EXITED && e->timeout.loop;
}

/* One half is over. */
static void keep_or_forget(struct exec *e)
{
	if (e->half_kept && !e->followers) {
		exec_forget(e, true);
		return;
	}
	e->half_kept = true;
	exec_told(e);
}

/* Fires twice: at the time limit, and when the killed leader has still not ended, because the
 * kernel holds it. Somebody who waits for an answer is then given one. And after the end: see exec_told. */
static void on_timeout(struct loop_timer *t)
{
	struct exec *e = t->arg;
	void (*done)(struct exec * e, void *arg) = e->on_done;

	if (ended(e))
		keep_or_forget(e);
	if (e->state != EXEC_RUNNING)
		return;
	if (!e->timed_out) {
		int64_t left = e->deadline - runclock_now();

		if (left > 0) {
			loop_arm(loop, &e->timeout, left); /* the guest has stood still */
			return;
		}
		e->timed_out = true;
		stats.timed_out++;
		exec_kill(e);
		loop_arm(loop, &e->timeout, LIMIT_KILL_NS);
	} else if (done) {
		e->on_done = NULL;
		done(e, e->done_arg);
	}
}

static void init_slot(struct exec *e, const char *id)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_REALTIME, &now);
	memset(e, 0, sizeof(*e));
	e->loop = loop;
	e->child.pidfd = e->tty = -1;
	exec_in_init(e);
	e->capture = id == NULL;
	if (id)
		(void)snprintf(e->id, sizeof(e->id), "%s", id);
	for (int i = 0; i < 2; i++) {
		e->out[i].fd = -1;
		buf_init(&e->cap[i], PROTO_MAX_CAPTURE);
	}
	outlog_init(&e->log, LIMIT_LOG);
	e->start_ns = loop_now();
	e->started_at_ms = (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
	e->pace_until = e->start_ns + LIMIT_ATTACH_NS;
	e->timeout.fn = on_timeout;
	e->timeout.arg = e;
	tree_prepare(&e->tree, loop);
}

/* The limits that a cgroup holds; memory can do with less. */
static int set_limits(struct exec *e, const struct spec_limits *l, struct child *c, struct err *err)
{
	const struct {
		enum cgroup_controller controller;
		uint64_t value;
		const char *file, *member;
	} t[] = { { CGROUP_MEMORY, l->memory, "memory.max", "memory" },
		  { CGROUP_CPU, l->cpu_us, "cpu.max", "cpus" },
		  { CGROUP_PIDS, l->pids, "pids.max", "pids" } };
	int group = e->tree.cgroup_fd, r;

	c->limits = l;
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		if (t[i].value == 0)
			continue;
		if (group >= 0 && cgroup_can(t[i].controller)) {
			r = cgroup_set(group, t[i].file, t[i].value);
			if (r < 0)
				return err_set(err, ERR_INVALID, -r, "\"limits.%s\"", t[i].member);
		} else if (t[i].controller == CGROUP_MEMORY) {
			c->memory_by_rlimit = true;
		} else {
			return err_set(
				err, ERR_INVALID, 0,
				"\"limits.%s\" cannot be kept here: there is no cgroup2 with "
				"that controller",
				t[i].member);
		}
	}
	if (l->memory && !c->memory_by_rlimit) /* else what is too much only goes to the disk */
		ignore_result(cgroup_set(group, "memory.swap.max", 0));
	return 0;
}

/* What becomes 0, 1, 2 of the command. FD are -1, and the caller's to close. */
static int open_stdio(struct exec *e, const struct spec *s, int fd[3])
{
	int r;

	if (s->pty) {
		r = exec_tty_open(e, s);
		for (int i = 0; i < 3 && r == 0; i++) {
			fd[i] = fcntl(e->tty, F_DUPFD_CLOEXEC, 3);
			r = fd[i] < 0 ? -errno : 0;
		}
	} else {
		r = exec_in_open(e, s, &fd[0]);
		if (r == 0)
			r = exec_out_open(e, &fd[1]);
	}
	return r == 0 ? exec_out_start(e) : r;
}

static int spawn(struct exec *e, const struct spec *s, enum proc_step *ret_step, struct err *err)
{
	struct proc_spec p = PROC_SPEC_INIT;
	struct child c = { .tree = &e->tree, .user = s->user, .confine = &e->confine };
	int r = set_limits(e, &s->limits, &c, err);

	if (r < 0) {
		*ret_step = PROC_STEP_LIMITS;
		return r;
	}
	r = confine_prepare(&e->confine, s->seccomp_given, s->seccomp, err);
	if (r < 0) {
		*ret_step = PROC_STEP_HOOK;
		return r;
	}
	r = open_stdio(e, s, p.fd);
	p.argv = s->argv;
	p.envp = s->envp;
	p.cwd = s->cwd;
	p.cgroup_fd = e->tree.cgroup_fd;
	p.flags = PROC_SETSID | (s->pty ? PROC_CTTY : 0U) | (s->cwd_given ? 0U : PROC_CWD_WISH);
	p.child_fn = child_setup;
	p.child_arg = &c;
	if (r < 0)
		ignore_result(err_set(err, ERR_FULL, -r, "cannot start %s", s->argv[0]));
	else
		r = proc_spawn(&p, &e->child, ret_step, err);
	child_protect_memory();
	confine_started(&e->confine);
	for (int i = 0; i < 3; i++)
		fd_close(&p.fd[i]);
	return r;
}

int exec_start(const struct spec *s, const char *id, struct exec **ret, enum proc_step *ret_step,
	       struct err *err)
{
	struct exec *e;
	int r;

	*ret_step = PROC_STEP_FORK;
	if (cgroup_frozen())
		return err_set(err, ERR_UNAVAILABLE, 0, "the workload is frozen");
	e = take_slot();
	if (!e) {
		stats.failed++;
		return err_set(err, ERR_FULL, 0, "%d commands are running already", LIMIT_EXECS);
	}
	init_slot(e, id);
	r = spawn(e, s, ret_step, err);
	if (r < 0) {
		stats.failed++;
		free_slot(e);
		return r;
	}
	stats.started++;
	e->state = EXEC_RUNNING;
	tree_started(&e->tree, e->child.pid);
	exec_in_start(e);
	if (s->timed) {
		e->timed = true;
		runclock_hold(loop);
		e->deadline = runclock_now() + s->timeout_ns;
		loop_arm(loop, &e->timeout, s->timeout_ns);
	}
	*ret = e;
	return 0;
}

/* --- the table --- */
static bool visible(const struct exec *e)
{
	return e->id[0] && e->state != EXEC_FREE && e->state != EXEC_DYING;
}

struct exec *exec_find(const char *id)
{
	for (size_t i = 0; i < LIMIT_EXECS; i++)
		if (visible(&table[i]) && !strcmp(table[i].id, id))
			return &table[i];
	return NULL;
}

struct exec *exec_next(const struct exec *e)
{
	for (size_t i = e ? (size_t)(e - table) + 1 : 0; i < LIMIT_EXECS; i++)
		if (visible(&table[i]))
			return &table[i];
	return NULL;
}

unsigned exec_running(void)
{
	unsigned n = 0;

	for (size_t i = 0; i < LIMIT_EXECS; i++)
		n += table[i].state == EXEC_RUNNING || table[i].state == EXEC_LINGER;
	return n;
}

unsigned exec_busy(void)
{
	unsigned n = 0;

	for (size_t i = 0; i < LIMIT_EXECS; i++)
		n += table[i].state != EXEC_FREE;
	return n;
}

/* --- end --- */
/* A dying slot is free when nothing of it is left: the leader too must be reaped, or its number
 * would be a stranger's. */
static void on_tree_gone(void *arg)
{
	struct exec *e = arg;

	if (e->state == EXEC_DYING && e->leader_ended)
		free_slot(e);
}

bool exec_leader_ended(pid_t pid)
{
	struct exec *e = NULL;
	siginfo_t si;

	for (size_t i = 0; i < LIMIT_EXECS && !e; i++)
		if (table[i].state != EXEC_FREE && !table[i].leader_ended &&
		    table[i].child.pid == pid)
			e = &table[i];
	if (!e)
		return false;
	if (e->pty)
		exec_tty_leader_ended(e);
	memset(&si, 0, sizeof(si));
	while (waitid(P_PID, (id_t)pid, &si, WEXITED) < 0 && errno == EINTR)
		;
	stats.ended++;
	e->leader_ended = e->tree.leader_gone = true;
	e->end_ns = loop_now();
	if (si.si_code == CLD_EXITED)
		e->exit_code = si.si_status;
	else
		e->signal = si.si_status;
	fd_close(&e->child.pidfd);
	stop_clock(e);
	exec_in_close(e);
	if (e->state == EXEC_DYING) {
		if (!e->tree.again.loop)
			free_slot(e);
		return true;
	}
	e->state = EXEC_LINGER;
	exec_out_leader_ended(e);
	return true;
}

void exec_finish(struct exec *e)
{
	void (*done)(struct exec * e, void *arg) = e->on_done;

	if (e->state != EXEC_LINGER)
		return;
	e->state = EXEC_EXITED;
	e->oom = tree_oom(&e->tree);
	stats.oom += e->oom;
	e->on_done = NULL;
	if (e->pty)
		exec_out_hang_up(e);
	exec_wake_followers(e);
	if (done)
		done(e, e->done_arg);
	exec_out_release(e);
}

/* --- signals --- */
int exec_signal(struct exec *e, int sig, enum exec_to to)
{
	if (to == EXEC_TO_TREE)
		return tree_signal(&e->tree, sig);
	if (e->leader_ended)
		return -ESRCH;
	if (to == EXEC_TO_LEADER)
		return proc_signal(&e->child, sig);
	if (e->pty)
		return exec_tty_signal(e, sig);
	/* the leader is not reaped, so its number is still the group's */
	return kill(-e->child.pid, sig) < 0 ? -errno : 0;
}

void exec_kill(struct exec *e)
{
	tree_kill(&e->tree, on_tree_gone, e);
	if (!e->leader_ended)
		ignore_result(proc_signal(&e->child, SIGKILL)); /* also where /proc shows nothing */
}

void exec_signal_all(int sig)
{
	if (!cgroup_have()) {
		tree_signal_all(sig);
		return;
	}
	for (size_t i = 0; i < LIMIT_EXECS; i++)
		if (table[i].state != EXEC_FREE)
			ignore_result(tree_signal(&table[i].tree, sig)); /* gone is fine */
}

void exec_kill_all(void)
{
	exec_signal_all(SIGKILL);
}

void exec_forget(struct exec *e, bool keep_tree)
{
	while (e->followers) {
		struct exec_follower *f = e->followers;

		exec_unfollow(f);
		f->wake(f);
	}
	e->on_done = NULL;
	if (e->leader_ended && keep_tree && !e->tree.again.loop) {
		free_slot(e);
		return;
	}
	e->state = EXEC_DYING;
	exec_out_close(e);
	exec_in_close(e);
	outlog_done(&e->log);
	exec_kill(e);
}

void exec_stop(void)
{
	for (size_t i = 0; i < LIMIT_EXECS; i++)
		if (table[i].state != EXEC_FREE)
			free_slot(&table[i]);
}
