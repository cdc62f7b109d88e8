/* SPDX-License-Identifier: Apache-2.0 */
#ifndef AGENTD_REAP_H
#define AGENTD_REAP_H

#include "lib/loop.h"

/* Reaps every child that has ended: leaders go to the exec engine, workers to theirs, orphans (agentd is their
 * subreaper, or PID 1) to nobody. Call it on SIGCHLD. */
void reap(struct loop *l);

#endif
