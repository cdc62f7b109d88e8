/* SPDX-License-Identifier: Apache-2.0 */
#include "reap.h"

#include <errno.h>
#include <sys/wait.h>

/* A workload that only makes orphans must not keep PID 1 from its other events. */
#define AT_A_TIME 256

enum reap_result reap_children(void (*ended)(void *arg, pid_t pid, int status), void *arg)
{
	for (int i = 0; i < AT_A_TIME; i++) {
		int status;
		pid_t pid = waitpid(-1, &status, WNOHANG);

		if (pid == 0)
			return REAP_IDLE;
		if (pid < 0 && errno == EINTR)
			continue;
		if (pid < 0)
			return REAP_NONE;
		ended(arg, pid, status);
	}
	return REAP_MORE;
}
