/* SPDX-License-Identifier: Apache-2.0 */
#ifndef AGENTD_CHILD_H
#define AGENTD_CHILD_H

#include "lib/compiler.h"

/* What agentd has changed for itself, and what every command therefore gets back. */
void child_remember(void); /* at start: limits, priority, OOM score as agentd found them */
void child_protect_self(
	void); /* agentd's own: less likely to be killed for memory, enough descriptors */

/* proc_spec.child_fn, in the child. TREE: struct tree. 0 or negative errno. */
int child_setup(void *tree) MUST_CHECK;

#endif
