/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_CLONE3_H
#define ASB_CLONE3_H

#include <linux/sched.h>
#include <sys/types.h>

#include "compiler.h"

/*
 * clone3(2) with A->stack: the child runs FN(ARG) there and must not return from it. The number of the
 * child, or -1 with errno (ENOSYS too on an architecture that this has no code for).
 */
pid_t clone3_call(const struct clone_args *a, int (*fn)(void *arg), void *arg) MUST_CHECK;

#endif
