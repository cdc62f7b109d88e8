/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HOOKS_CHILD_H
#define HOOKS_CHILD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "lib/compiler.h"
#include "lib/err.h"
#include "lib/loop.h"

/* Children with a deadline. SIGCHLD must be in the set that the loop takes; its handler calls
 * child_reap. */
struct child {
	pid_t pid; /* 0 when none */
	bool killed;
	bool patient; /* sync(2) cannot be killed: after the deadline it is left alone */
	struct loop_timer limit;
	/* Once, from the loop: wait status; -1 when the deadline was over. */
	void (*done)(void *arg, int status);
	void *arg;
	struct child *next;
};

/* Runs PATH without arguments in a session of its own; killed with its group after LIMIT_NS. 0, or
 * negative errno with a message, and DONE is not called then. */
int child_run(struct child *c, struct loop *l, const char *path, char *const *envp,
	      int64_t limit_ns, struct err *e) MUST_CHECK;

/* Runs sync(2) in a process of its own. */
int child_sync(struct child *c, struct loop *l, int64_t limit_ns) MUST_CHECK;

void child_reap(void);

#endif
