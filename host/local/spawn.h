/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_LOCAL_SPAWN_H
#define ASB_LOCAL_SPAWN_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/compiler.h"
#include "lib/err.h"

/* How a supervisor is started, and what its arguments mean: both sides in one place. */

struct spawn_args { /* of `asb __supervise FOLDER MODE OWNER LOCK MS` */
	const char *folder;
	bool start;	  /* MODE "start", else "create" */
	int owner_fd;	  /* OWNER: a socket to who started it */
	int lock_fd;	  /* LOCK: holds the lock on the folder */
	int64_t limit_ns; /* MS: until it must be ready */
};

int spawn_parse(int argc, char **argv, struct spawn_args *ret) MUST_CHECK; /* 0 or -EINVAL */

/*
 * Starts a supervisor of A->folder, detached: no child of ours. A->owner_fd is set to our end of
 * the owner socket, A->lock_fd stays open here too. Its stderr is supervisor.log in the folder.
 */
int spawn_supervisor(struct spawn_args *a, struct err *e) MUST_CHECK;

#endif
