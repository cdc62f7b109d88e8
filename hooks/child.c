/* SPDX-License-Identifier: Apache-2.0 */
#include "child.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/fd.h"
#include "lib/proc.h"

static struct child *children;

static void forget(struct child *c)
{
	struct child **at = &children;

	while (*at && *at != c)
		at = &(*at)->next;
	if (*at)
		*at = c->next;
	loop_disarm(&c->limit);
	c->pid = 0;
}

static void on_limit(struct loop_timer *t)
{
	struct child *c = t->arg;

	if (!c->patient) {
		c->killed = true;
		(void)kill(-c->pid, SIGKILL); /* not reaped yet, so the number is still its own */
		return;
	}
	forget(c); /* child_reap takes it one day, as nobody's */
	c->done(c->arg, -1);
}

static void watch(struct child *c, struct loop *l, pid_t pid, int64_t limit_ns)
{
	c->pid = pid;
	c->killed = false;
	c->limit = (struct loop_timer){ .fn = on_limit, .arg = c };
	c->next = children;
	children = c;
	loop_arm(l, &c->limit, limit_ns);
}

int child_run(struct child *c, struct loop *l, const char *path, char *const *envp,
	      int64_t limit_ns, struct err *e)
{
	char *argv[2];
	struct proc_spec s = PROC_SPEC_INIT;
	struct proc_child p;
	char copy[512];
	size_t n = 0;
	int r;

	for (; path[n] && n < sizeof(copy) - 1; n++)
		copy[n] = path[n];
	copy[n] = '\0';
	argv[0] = copy;
	argv[1] = NULL;
	s.argv = argv;
	s.envp = envp;
	s.cwd = "/";
	s.fd[1] = STDERR_FILENO;
	s.fd[2] = STDERR_FILENO;
	s.flags = PROC_SETSID | PROC_NOPATH;
	r = proc_spawn(&s, &p, NULL, e);
	if (r < 0)
		return r;
	fd_close(&p.pidfd); /* SIGCHLD tells, on every kernel */
	c->patient = false;
	watch(c, l, p.pid, limit_ns);
	return 0;
}

int child_sync(struct child *c, struct loop *l, int64_t limit_ns)
{
	pid_t pid = fork();

	if (pid < 0)
		return -errno;
	if (pid == 0) {
		fd_close_from(3); /* the listener above all: it may live longer than its parent */
		sync();
		_exit(0);
	}
	c->patient = true;
	watch(c, l, pid, limit_ns);
	return 0;
}

void child_reap(void)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		struct child *c = children;

		while (c && c->pid != pid)
			c = c->next;
		if (!c)
			continue;
		forget(c);
		c->done(c->arg, c->killed ? -1 : status);
	}
}
