/* SPDX-License-Identifier: Apache-2.0 */
#include "reap.h"

#include <sys/wait.h>

#include "exec.h"
#include "limits.h"
#include "worker.h"

/*
 * SIGCHLD says that at least one child has ended. Each is looked at without being reaped (WNOWAIT):
 * a leader's number must stay taken until the engine has let go of it. A bounded number in one
 * turn, so that a command that makes orphans as fast as they are reaped does not own the loop.
 */

static struct loop_timer again;
static struct loop *loop;

static void on_again(struct loop_timer *t)
{
	(void)t;
	reap(loop);
}

void reap(struct loop *l)
{
	loop = l;
	for (int i = 0; i < LIMIT_REAP; i++) {
		siginfo_t si = { .si_pid = 0 };

		if (waitid(P_ALL, 0, &si, WEXITED | WNOHANG | WNOWAIT) < 0 || si.si_pid == 0)
			return;
		if (!exec_leader_ended(si.si_pid) && !worker_ended(si.si_pid))
			(void)waitid(P_PID, (id_t)si.si_pid, &si, WEXITED | WNOHANG);
	}
	again.fn = on_again;
	loop_arm(l, &again, 0);
}
