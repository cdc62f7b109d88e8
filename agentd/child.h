/* SPDX-License-Identifier: Apache-2.0 */
#ifndef AGENTD_CHILD_H
#define AGENTD_CHILD_H

#include <sys/types.h>

#include "lib/compiler.h"
#include "lib/proc.h"

struct confine;
struct passwd_user;
struct spec_limits;
struct tree;

/* What agentd has changed for itself, and what every command therefore gets back. */
void child_remember(void); /* at start: limits, priority, OOM score as agentd found them */
void child_protect_self(
	void); /* agentd's own: less likely to be killed for memory, enough descriptors */

/* What a child does to itself before it becomes the command. All borrowed. */
struct child {
	const struct tree *tree;
	const struct spec_limits *limits; /* NULL: none */
	bool memory_by_rlimit;		  /* limits->memory has no cgroup to hold it */
	const struct passwd_user *user;	  /* NULL: agentd's */
	const struct confine *confine;
};

/* In agentd, after each start: a child that shares its memory has changed who may read that. */
void child_protect_memory(void);

/* proc_spec.child_fn. CHILD: struct child. */
int child_setup(void *child, enum proc_step *step) MUST_CHECK;

#endif
