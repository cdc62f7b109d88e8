/* SPDX-License-Identifier: Apache-2.0 */
#include "proc.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

#include "clone3.h"
#include "fd.h"

#ifndef CLONE_INTO_CGROUP
#define CLONE_INTO_CGROUP 0x200000000ULL
#endif

#define CHILD_STACK 65536

extern char **environ;

/*
 * Copying the page tables of the parent and then faulting on each page is most of what a fork costs. So the child borrows the
 * parent's memory until it executes its program, as with vfork(2), and nothing it does before may be meant to stay in its
 * memory only. Into a cgroup a process can be born by clone3(2) alone (clone3.c). What went wrong stands in that memory then. Where clone3(2) is missing it comes over a pipe, because emulators of user
 * space (qemu-user) share no memory even when asked to.
 *
 * The parent stands until then, and others can hold a child up: a stranger of its new user by SIGSTOP, a frozen group, a file
 * system of the workload's that does not answer. So the kernel kills what has not become its program in START_S: a timer of
 * the child's, which execve(2) deletes (timer_create(2)), and whose SIGKILL reaches stopped and frozen processes too.
 */

#define START_S 5

#ifdef ASB_TEST
int proc_start_s = START_S;
#else
#define proc_start_s START_S
#endif

struct failure {
	enum proc_step step;
	int errnum;
};

struct start {
	const struct proc_spec *spec;
	struct failure failure; /* of a child that shares this memory */
	int report;		/* write end of a pipe for one that may not; -1: none */
	pid_t parent;
	bool join; /* the child is not born into its cgroup, and enters it */
};

/*
 * By the system call: the C libraries keep signals 32 to 34 to themselves and do not let sigaction(3) touch them, but
 * a parent can have left them ignored. The kernel's struct begins with the handler; zero bytes are SIG_DFL with no
 * flags and an empty mask on every architecture.
 */
#define KERNEL_SIGACTION_WORDS 4
#define KERNEL_SIGSET_BYTES    8

/* Bit N - 1: signal N was not at its default when the first child was started. */
static uint64_t touched;

static void remember_signals(void)
{
	static bool known;
	unsigned long old[KERNEL_SIGACTION_WORDS];

	if (known)
		return;
	known = true;
	for (int sig = 1; sig <= 64; sig++)
		if (syscall(SYS_rt_sigaction, sig, NULL, old, KERNEL_SIGSET_BYTES) == 0 &&
		    old[0] != 0)
			touched |= 1ULL << (sig - 1);
	touched |= 1ULL << (SIGPIPE - 1); /* the one that servers ignore at any time */
}

/* What the program inherits: execve(2) itself undoes handlers, but neither ignored signals nor the mask. */
static void reset_signals(void)
{
	static const unsigned long dfl[KERNEL_SIGACTION_WORDS];
	sigset_t none;

	for (int sig = 1; sig <= 64; sig++)
		if (touched & 1ULL << (sig - 1))
			(void)syscall(SYS_rt_sigaction, sig, dfl, NULL, KERNEL_SIGSET_BYTES);
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
}

/* Moves the three descriptors to 0, 1, 2. Those below 3 first away from there, so that none is overwritten before it
 * is used. What is left of them is CLOEXEC. */
static int place_stdio(const int fd[3])
{
	int src[3];

	for (int i = 0; i < 3; i++) {
		src[i] = fd[i] < 0 ? open("/dev/null", O_RDWR | O_CLOEXEC) : fd[i];
		if (src[i] >= 0 && src[i] < 3)
			src[i] = fcntl(src[i], F_DUPFD_CLOEXEC, 3);
		if (src[i] < 0)
			return -errno;
	}
	for (int i = 0; i < 3; i++)
		if (dup2(src[i], i) < 0)
			return -errno;
	return 0;
}

static int cloexec_all_but(const struct proc_spec *s)
{
	if (syscall(SYS_close_range, 3U, ~0U, 4U /* CLOSE_RANGE_CLOEXEC */) < 0 &&
	    errno != ENOSYS && errno != EINVAL)
		return -errno; /* every descriptor is CLOEXEC from birth: this is the second lock on the door */
	for (int i = 0; i < s->keep_len; i++) {
		int r = fd_set_cloexec(s->keep[i], false);

		if (r < 0)
			return r;
	}
	return 0;
}

static const char *env_get(char *const *envp, const char *name)
{
	size_t n = strlen(name);

	for (; *envp; envp++)
		if (!strncmp(*envp, name, n) && (*envp)[n] == '=')
			return *envp + n + 1;
	return NULL;
}

/* execvpe(3) as POSIX describes it, without its ENOEXEC shell fallback: a text file is not run by a shell that
 * nobody asked for. EACCES is remembered and reported when no other directory has the program. */
static int exec_search(const struct proc_spec *s, char *const *envp)
{
	const char *path = env_get(envp, "PATH");
	int first = ENOENT;

	if ((s->flags & PROC_NOPATH) || strchr(s->argv[0], '/')) {
		(void)execve(s->argv[0], s->argv, envp);
		return -errno;
	}
	if (!s->argv[0][0])
		return -ENOENT;
	if (!path)
		path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
	for (;;) {
		size_t n = strcspn(path, ":");
		char full[4096];

		if (snprintf(full, sizeof(full), "%.*s%s%s", (int)n, path, n ? "/" : "",
			     s->argv[0]) < (int)sizeof(full)) {
			(void)execve(full, s->argv, envp);
			if (errno == EACCES)
				first = EACCES;
			else if (errno != ENOENT && errno != ENOTDIR)
				return -errno;
		}
		if (!path[n])
			return -first;
		path += n + 1;
	}
}

static int enter_cwd(const struct proc_spec *s)
{
	if (!s->cwd || chdir(s->cwd) == 0)
		return 0;
	if (!(s->flags & PROC_CWD_WISH) || chdir("/") < 0)
		return -errno;
	return 0;
}

static int child_setup(const struct proc_spec *s, enum proc_step *step)
{
	int r;

	*step = PROC_STEP_SETUP;
	if ((s->flags & PROC_DEATHSIG) && prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
		return -errno;
	if ((s->flags & PROC_SETSID) && setsid() < 0)
		return -errno;
	r = place_stdio(s->fd);
	if (r == 0)
		r = cloexec_all_but(s);
	if (r < 0)
		return r;
	if ((s->flags & PROC_CTTY) && ioctl(0, TIOCSCTTY, 0) < 0)
		return -errno;
	*step = PROC_STEP_HOOK;
	r = s->child_fn ? s->child_fn(s->child_arg, step) : 0;
	if (r < 0)
		return r;
	*step = PROC_STEP_CWD;
	return enter_cwd(s);
}

/* What the kernel takes; the libraries' struct sigevent has the same begin. Best effort: emulators may not have it. */
static void bound_start(void)
{
	struct sigevent ev = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGKILL };
	const long when[4] = { 0, 0, proc_start_s,
			       0 }; /* interval, value: seconds and nanoseconds */
	int id = 0;

	if (syscall(SYS_timer_create, CLOCK_MONOTONIC, &ev, &id) == 0)
		(void)syscall(SYS_timer_settime, id, 0, when, NULL);
}

static int child_main(void *arg)
{
	struct start *st = arg;
	const struct proc_spec *s = st->spec;
	struct failure f = { 0 };
	int r;

	bound_start();
	reset_signals();
	if (st->join) /* best effort: the group is a limit, not the command */
		ignore_result(fd_write_str(s->cgroup_fd, "cgroup.procs", "0"));
	r = child_setup(s, &f.step);
	if (r == 0 && (s->flags & PROC_DEATHSIG) && getppid() != st->parent)
		_exit(127); /* the parent died before PR_SET_PDEATHSIG was in force */
	if (r == 0) {
		f.step = PROC_STEP_EXEC;
		r = exec_search(s, s->envp ? s->envp : environ);
	}
	f.errnum = -r;
	st->failure = f;
	if (st->report >= 0 && write(st->report, &f, sizeof(f)) < 0) {
		/* the parent then sees EOF and the exit status 127 */
	}
	_exit(127);
}

/* Old kernels, filters of containers and emulators of user space lack one or the other call. */
static bool is_missing(int errnum)
{
	return errnum == ENOSYS || errnum == EPERM || errnum == EINVAL;
}

/* A child leaves its stack by execve(2), not by returning: the sanitizer must forget what it knows of the last one. */
static void clean_stack(void *p, size_t n)
{
#if defined(__SANITIZE_ADDRESS__)
	__asan_unpoison_memory_region(p, n);
#else
	(void)p;
	(void)n;
#endif
}

static _Alignas(16) char stack[CHILD_STACK]; /* one child at a time: the parent waits */

/* As vfork(2): the parent's memory, a stack of its own, and the parent waits until the program runs. */
static pid_t clone_shared(struct start *st, int *ret_pidfd)
{
	int group = st->spec->cgroup_fd;
	struct clone_args a = { .flags = CLONE_VM | CLONE_VFORK | CLONE_PIDFD |
					 (group < 0 ? 0 : CLONE_INTO_CGROUP),
				.pidfd = (uint64_t)(uintptr_t)ret_pidfd,
				.exit_signal = SIGCHLD,
				.stack = (uint64_t)(uintptr_t)stack,
				.stack_size = sizeof(stack),
				.cgroup = group < 0 ? 0 : (unsigned)group };

	return clone3_call(&a, child_main, st);
}

static pid_t fork_plain(struct start *st, int *ret_pidfd)
{
	pid_t pid = fork();

	if (pid == 0)
		_exit(child_main(st));
	*ret_pidfd = pid > 0 ? (int)syscall(SYS_pidfd_open, pid, 0) : -1; /* CLOEXEC by itself */
	return pid;
}

/* The same as far as there is less to be had, and until the program runs or has failed. */
static pid_t clone_reporting(struct start *st, int *ret_pidfd)
{
	int p[2];
	AUTO_FD rd = -1, wr = -1;
	pid_t pid;
	ssize_t k;

	if (pipe2(p, O_CLOEXEC) < 0)
		return -1;
	rd = p[0];
	wr = fcntl(p[1], F_DUPFD_CLOEXEC, 3); /* above 2, where place_stdio cannot hit it */
	(void)close(p[1]);
	if (wr < 0)
		return -1;
	st->report = wr;
	st->join = st->spec->cgroup_fd >= 0;
	pid = clone(child_main, stack + sizeof(stack),
		    CLONE_VM | CLONE_VFORK | CLONE_PIDFD | SIGCHLD, st, ret_pidfd);
	if (pid < 0 && is_missing(errno))
		pid = fork_plain(st, ret_pidfd);
	fd_close(&wr);
	if (pid < 0)
		return pid;
	do
		k = read(rd, &st->failure, sizeof(st->failure));
	while (k < 0 && errno == EINTR);
	return pid;
}

static pid_t start_child(struct start *st, int *ret_pidfd)
{
	sigset_t all, old;
	pid_t pid;

	clean_stack(stack, sizeof(stack));
	(void)sigfillset(&all); /* a handler of the parent must not run in the child */
	(void)sigprocmask(SIG_SETMASK, &all, &old);
	pid = clone_shared(st, ret_pidfd);
	if (pid < 0 && is_missing(errno)) {
		*ret_pidfd = -1;
		pid = clone_reporting(st, ret_pidfd);
	}
	(void)sigprocmask(SIG_SETMASK, &old, NULL);
	return pid;
}

static int describe(const struct proc_spec *s, const struct failure *f, struct err *e)
{
	switch (f->step) {
	case PROC_STEP_CWD:
		return err_set(e, ERR_INVALID, f->errnum, "working directory %s", s->cwd);
	case PROC_STEP_EXEC:
		if (f->errnum == ENOENT)
			return err_set(e, ERR_NOT_FOUND, f->errnum, "command not found: %s",
				       s->argv[0]);
		return err_set(e, ERR_DENIED, f->errnum, "cannot execute %s", s->argv[0]);
	case PROC_STEP_LIMITS:
		return err_set(e, ERR_INVALID, f->errnum, "cannot set the limits of %s",
			       s->argv[0]);
	case PROC_STEP_USER:
		return err_set(e, ERR_DENIED, f->errnum, "cannot change the user for %s",
			       s->argv[0]);
	case PROC_STEP_FORK:
	case PROC_STEP_SETUP:
	case PROC_STEP_HOOK:
	default:
		return err_set(e, ERR_IO, f->errnum, "cannot prepare %s", s->argv[0]);
	}
}

int proc_spawn(const struct proc_spec *s, struct proc_child *ret, enum proc_step *ret_step,
	       struct err *e)
{
	AUTO_FD pidfd = -1;
	struct start st = { .spec = s, .report = -1, .parent = getpid() };
	pid_t pid;

	remember_signals();
	pid = start_child(&st, &pidfd);
	if (pid < 0) {
		if (ret_step)
			*ret_step = PROC_STEP_FORK;
		return err_set(e, ERR_FULL, errno, "cannot start %s: fork", s->argv[0]);
	}
	if (st.failure.errnum) {
		while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
			;
		if (ret_step)
			*ret_step = st.failure.step;
		return describe(s, &st.failure, e);
	}
	ret->pid = pid;
	ret->pidfd = fd_take(&pidfd);
	return 0;
}

int proc_signal(const struct proc_child *c, int sig)
{
	if (c->pidfd >= 0)
		return syscall(SYS_pidfd_send_signal, c->pidfd, sig, NULL, 0) < 0 ? -errno : 0;
	return kill(c->pid, sig) < 0 ? -errno : 0;
}

void proc_keep_children(void)
{
	(void)signal(SIGCHLD, SIG_DFL);
}

int proc_become_subreaper(void)
{
	return prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0 ? -errno : 0;
}
