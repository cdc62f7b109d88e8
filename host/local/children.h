/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_LOCAL_CHILDREN_H
#define ASB_LOCAL_CHILDREN_H

#include "host/backend.h"
#include "lib/compiler.h"

/* `branch` of struct backend. */
int children_make(const char *id, struct sandbox_child *children, size_t n,
		  const struct progress *p, int64_t deadline_ns, struct err *e) MUST_CHECK;

#endif
