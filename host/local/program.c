/* SPDX-License-Identifier: Apache-2.0 */
#include "host/local/program.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "lib/fd.h"
#include "lib/loop.h"
#include "lib/proc.h"
#include "lib/str.h"

#define LOOK_MS	   200
#define LOG_MAX	   (64 << 20) /* bytes that it may say */
#define KILL_NS	   5000000000LL
#define FULL_BYTES (1U << 20)

bool program_is_there(const char *name)
{
	const char *path = getenv("PATH");
	char file[4096];
	struct stat st;

	while (path && *path) {
		size_t n = strcspn(path, ":");

		if (n && path[0] == '/' &&
		    str_format(file, sizeof(file), "%.*s/%s", (int)n, path, name) == 0 &&
		    access(file, X_OK) == 0 && stat(file, &st) == 0 && S_ISREG(st.st_mode))
			return true;
		path += n + (path[n] == ':');
	}
	return false;
}

static bool too_big(int fd, uint64_t max)
{
	struct stat st;

	return fd >= 0 && fstat(fd, &st) == 0 && (uint64_t)st.st_size > max;
}

static void pause_for(int pidfd, int ms)
{
	struct pollfd pf = { .fd = pidfd, .events = POLLIN };
	const struct timespec step = { .tv_nsec = 10000000L };

	if (pidfd >= 0)
		(void)poll(&pf, 1, ms);
	else
		(void)nanosleep(&step, NULL);
}

/* 1: it has ended and is not yet reaped, so that its number stays its own. */
static int has_ended(const struct proc_child *c)
{
	siginfo_t si = { .si_pid = 0 };

	if (waitid(P_PID, (id_t)c->pid, &si, WEXITED | WNOHANG | WNOWAIT) < 0)
		return errno == EINTR ? 0 : -errno;
	return si.si_pid == c->pid;
}

/* Kills what is left of its session and reaps it. */
static int end_session(const struct proc_child *c)
{
	const int64_t end = loop_now() + KILL_NS;
	int status = 0;

	(void)kill(-c->pid, SIGKILL);
	while (has_ended(c) == 0 && loop_now() < end)
		pause_for(c->pidfd, LOOK_MS);
	(void)waitpid(c->pid, &status, WNOHANG);
	return status;
}

static int wait_for(const struct program *p, const struct proc_child *c)
{
	for (;;) {
		int r = has_ended(c);

		if (r != 0)
			return r < 0 ? r : 0;
		if (p->cancel && *p->cancel)
			return -EINTR;
		if (loop_now() >= p->deadline_ns)
			return -ETIMEDOUT;
		if (too_big(p->log, LOG_MAX) || too_big(p->out, p->out_max))
			return -EFBIG;
		pause_for(c->pidfd, LOOK_MS);
	}
}

/* Its log lies where its files do, so on a full disk it cannot even say so. */
static bool is_full(int fd)
{
	struct statvfs st;

	return fstatvfs(fd, &st) == 0 && st.f_bavail * st.f_frsize < FULL_BYTES;
}

static int tell_end(const char *name, int status, int log, struct err *e)
{
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	if (is_full(log))
		return err_set(e, ERR_IO, ENOSPC, "%s failed", name);
	if (WIFSIGNALED(status))
		(void)err_set(e, ERR_INVALID, 0, "%s was killed by signal %d", name,
			      WTERMSIG(status));
	else
		(void)err_set(e, ERR_INVALID, 0, "%s failed with status %d", name,
			      WEXITSTATUS(status));
	return -ECHILD;
}

int program_run(const struct program *p, struct err *e)
{
	struct proc_spec s = PROC_SPEC_INIT;
	struct proc_child child;
	const char *name = p->argv[0];
	int status, r;

	s.argv = p->argv;
	s.envp = p->envp;
	s.fd[1] = s.fd[2] = p->log;
	s.flags = PROC_SETSID | PROC_DEATHSIG;
	r = proc_spawn(&s, &child, NULL, e);
	if (r < 0)
		return r;
	r = wait_for(p, &child);
	status = end_session(&child);
	fd_close(&child.pidfd);
	if (r == -EINTR)
		return err_set(e, ERR_UNAVAILABLE, EINTR, "%s", name);
	if (r == -ETIMEDOUT)
		return err_set(e, ERR_TIMEOUT, ETIMEDOUT, "%s took too long and was killed", name);
	if (r < 0)
		return err_set(e, r == -EFBIG ? ERR_TOO_BIG : ERR_IO, -r, "%s", name);
	return tell_end(name, status, p->log, e);
}

int program_tail(int log, size_t max, struct buf *b)
{
	struct stat st;
	off_t at;
	char *nl;
	ssize_t n;
	int r;

	buf_clear(b);
	if (fstat(log, &st) < 0)
		return -errno;
	at = st.st_size > (off_t)max ? st.st_size - (off_t)max : 0;
	r = buf_reserve(b, max);
	if (r < 0)
		return r;
	n = pread(log, b->p, max, at);
	if (n < 0)
		return -errno;
	b->len = (size_t)n;
	b->p[n] = '\0';
	nl = at ? memchr(b->p, '\n', b->len) : NULL;
	if (nl) /* not the rest of a line */
		buf_drop(b, (size_t)(nl + 1 - b->p));
	return 0;
}
