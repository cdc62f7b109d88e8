/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_PROC_H
#define ASB_PROC_H

#include <stdbool.h>
#include <sys/types.h>

#include "compiler.h"
#include "err.h"

/*
 * Starting a program: a child as by vfork(2) with a pidfd, born straight into a cgroup where one is given. The child has a
 * clean signal mask and dispositions (a signal other than SIGPIPE that is ignored must be so before the first start), no
 * descriptor but 0, 1, 2 (and KEEP), and its own session when asked. A failure in the
 * child (which step, which errno) comes back to the parent, so that a process that never became its
 * program is never reported as started.
 */
enum proc_step {
	PROC_STEP_FORK,
	PROC_STEP_SETUP, /* session, terminal, descriptors */
	PROC_STEP_LIMITS,
	PROC_STEP_USER,
	PROC_STEP_CWD,
	PROC_STEP_HOOK, /* the caller's own child_fn, unless it names another */
	PROC_STEP_EXEC,
};

enum proc_flags {
	PROC_SETSID = 1 << 0,
	PROC_CTTY = 1 << 1,	/* descriptor 0 becomes the controlling terminal */
	PROC_DEATHSIG = 1 << 2, /* SIGKILL when the parent dies */
	PROC_NOPATH = 1 << 3,	/* argv[0] is a path: no search along PATH of the new environment */
	PROC_CWD_WISH = 1 << 4, /* where CWD cannot be entered, "/" will do */
};

struct proc_spec {
	char *const *
		argv; /* NULL-terminated, argv[0] is searched along PATH of ENVP unless it has a '/' */
	char *const *envp; /* NULL-terminated; NULL = the caller's environment */
	const char *cwd;   /* NULL = the caller's */
	int fd[3];	   /* become 0, 1, 2; -1 = /dev/null */
	const int *
		keep; /* further descriptors to leave open, same number in the child; NULL = none */
	int keep_len;
	int cgroup_fd;	/* directory of a cgroup2 group, -1 = the caller's */
	unsigned flags; /* enum proc_flags */
	/* Runs in the child when its descriptors and session are as asked, before it enters CWD (so CWD is entered with the
	 * user and the confinement that this has put on), in memory that may be the parent's: it must not change any, and
	 * must make the calls that libcs spread over threads (setuid) directly. 0, or a negative errno; may set *STEP to
	 * tell where it failed. NULL = none. */
	int (*child_fn)(void *arg, enum proc_step *step);
	void *child_arg;
};

#define PROC_SPEC_INIT                                                       \
	{                                                                    \
		NULL, NULL, NULL, { -1, -1, -1 }, NULL, 0, -1, 0, NULL, NULL \
	}

struct proc_child {
	pid_t pid;
	int pidfd; /* owned, CLOEXEC; -1 where the kernel has none */
};

/*
 * Blocks until the child has executed its program or failed, 5 s at the most: a child that has done neither by then is
 * killed, and looks like a program that died of SIGKILL. 0, or a negative errno with *RET_STEP telling where it failed (may be NULL) and a message in E; a failed child has been reaped.
 */
int proc_spawn(const struct proc_spec *s, struct proc_child *ret, enum proc_step *ret_step,
	       struct err *e) MUST_CHECK;

/* Signals by pidfd where there is one. 0 or negative errno (-ESRCH when it has ended). */
int proc_signal(const struct proc_child *c, int sig) MUST_CHECK;

#ifdef ASB_TEST
extern int proc_start_s; /* the limit for tests that wait for it */
#endif

/*
 * Children can be waited for. Those of a process that ignores SIGCHLD cannot (wait(2)), and ignored signals are inherited: some who
 * start us have done so. For programs that wait without loop_signals, which calls it.
 */
void proc_keep_children(void);

/* Becomes the reaper of orphaned descendants (PR_SET_CHILD_SUBREAPER). */
int proc_become_subreaper(void) MUST_CHECK;

#endif
