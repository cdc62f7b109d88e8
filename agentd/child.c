/* SPDX-License-Identifier: Apache-2.0 */
#include "child.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "confine.h"
#include "lib/buf.h"
#include "lib/fd.h"
#include "passwd.h"
#include "spec.h"
#include "tree.h"

#define OWN_OOM_SCORE "-500"
#define OWN_FILES     65536

static struct rlimit files;
static bool have_files, files_changed, oom_changed, nice_changed;

static bool own_oom_score_is_0(void)
{
	AUTO_BUF b = { .cap = 32 };

	return fd_read_file(AT_FDCWD, "/proc/self/oom_score_adj", &b) < 0 || !b.p ||
	       !strcmp(b.p, "0\n");
}

void child_remember(void)
{
	have_files = getrlimit(RLIMIT_NOFILE, &files) == 0;
	errno = 0;
	nice_changed = getpriority(PRIO_PROCESS, 0) != 0 && errno == 0;
	oom_changed = !own_oom_score_is_0();
}

void child_protect_self(void)
{
	struct rlimit more = files;

	if (have_files && files.rlim_cur < OWN_FILES) {
		more.rlim_cur = files.rlim_max < OWN_FILES ? files.rlim_max : OWN_FILES;
		files_changed =
			more.rlim_cur != files.rlim_cur && setrlimit(RLIMIT_NOFILE, &more) == 0;
	}
	if (!oom_changed && fd_write_str(AT_FDCWD, "/proc/self/oom_score_adj", OWN_OOM_SCORE) == 0)
		oom_changed = true;
}

/* prctl(2): no ptrace and no /proc/PID/mem, which would show the token. The kernel sets it anew when a process changes
 * its user, for the memory and not for the process. */
void child_protect_memory(void)
{
	(void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
}

/* Where one of these is refused, the command runs all the same: they are comfort, not confinement. */
static void give_back(void)
{
	if (oom_changed) {
		if (geteuid() != 0)
			(void)prctl(PR_SET_DUMPABLE, 1, 0, 0, 0); /* else the file is root's */
		ignore_result(fd_write_str(AT_FDCWD, "/proc/self/oom_score_adj", "0"));
	}
	if (nice_changed)
		(void)setpriority(PRIO_PROCESS, 0, 0);
	if (files_changed)
		(void)setrlimit(RLIMIT_NOFILE, &files);
}

static int set_limits(const struct child *c)
{
	const struct spec_limits *l = c->limits;

	if (!l)
		return 0;
	if (c->memory_by_rlimit) {
		const struct rlimit as = { l->memory, l->memory };

		if (setrlimit(RLIMIT_AS, &as) < 0)
			return -errno;
	}
	for (size_t i = 0; i < l->n_rlimit; i++)
		if (setrlimit(l->rlimit[i].resource, &l->rlimit[i].value) < 0)
			return -errno;
	return 0;
}

/* By the system calls: libc's functions would tell other threads, of which there are none, with locks
 * that belong to the parent while its memory is shared. */
static int become(const struct passwd_user *u)
{
	if (!u)
		return 0;
	if (geteuid() != 0 && u->uid == geteuid() && u->gid == getegid())
		return 0; /* it is already; only root may say so */
	if (syscall(SYS_setgroups, u->n_groups, u->groups) < 0 ||
	    syscall(SYS_setresgid, u->gid, u->gid, u->gid) < 0 ||
	    syscall(SYS_setresuid, u->uid, u->uid, u->uid) < 0)
		return -errno;
	return 0;
}

int child_setup(void *child, enum proc_step *step)
{
	const struct child *c = child;
	int r;

	give_back();
	r = tree_child(c->tree);
	if (r == 0)
		r = confine_child_first(c->confine);
	if (r < 0)
		return r;
	*step = PROC_STEP_LIMITS; /* before the user: raising one is for root */
	r = set_limits(c);
	if (r < 0)
		return r;
	*step = PROC_STEP_USER;
	r = become(c->user);
	if (r < 0)
		return r;
	*step = PROC_STEP_HOOK;
	return confine_child_last(c->confine);
}
