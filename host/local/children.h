/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_LOCAL_CHILDREN_H
#define ASB_LOCAL_CHILDREN_H

#include "host/backend.h"
#include "host/local/vmdir.h"
#include "lib/compiler.h"

/* `branch` of struct backend. */
int children_make(const char *id, struct sandbox_child *children, size_t n,
		  const struct progress *p, int64_t deadline_ns, struct err *e) MUST_CHECK;

/*
 * The two halves of it, for other things that sandboxes begin with. First each child becomes a sandbox under CONFIG (but
 * its own id and name) that is suspended, or, when FROM has no memory, has ended; when that is done FROM is not needed
 * any more. Then they are started. Of one whose result is negative nothing remains.
 */
void children_fill(const struct vm_config *config, const struct vm_source *from,
		   struct sandbox_child *children, size_t n);
void children_start(struct sandbox_child *children, size_t n, const struct progress *p,
		    int64_t deadline_ns);

#endif
