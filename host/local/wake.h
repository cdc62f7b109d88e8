/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_LOCAL_WAKE_H
#define ASB_LOCAL_WAKE_H

#include "host/backend.h"
#include "lib/compiler.h"

/* wake of struct backend. */
int wake(const char *id, const struct progress *p, int64_t deadline_ns, int *ret_hold,
	 struct err *e) MUST_CHECK;

#endif
