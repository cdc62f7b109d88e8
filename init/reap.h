/* SPDX-License-Identifier: Apache-2.0 */
#ifndef INIT_REAP_H
#define INIT_REAP_H

#include <sys/types.h>

#include "lib/compiler.h"

enum reap_result {
	REAP_IDLE, /* what is left still runs */
	REAP_MORE, /* there may be more: call again soon, after other events had their turn */
	REAP_NONE, /* there is no child at all */
};

/* Reaps what has ended, ours and orphans alike, a bounded number at a time; ENDED is called for
 * each with waitpid's status. */
enum reap_result reap_children(void (*ended)(void *arg, pid_t pid, int status), void *arg)
	MUST_CHECK;

#endif
