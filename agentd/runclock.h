/* SPDX-License-Identifier: Apache-2.0 */
#ifndef AGENTD_RUNCLOCK_H
#define AGENTD_RUNCLOCK_H

#include <stdint.h>

#include "lib/loop.h"

/*
 * Time that this guest has run, in ns: what time limits of commands count. Pure but for the pulse that it
 * keeps in a loop while somebody holds it.
 */
int64_t runclock_now(void);

/* The clock notices a standstill only while it is held. As many releases as holds. */
void runclock_hold(struct loop *l);
void runclock_release(void);

#endif
