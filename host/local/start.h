/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_LOCAL_START_H
#define ASB_LOCAL_START_H

#include "host/backend.h"
#include "host/local/template.h"
#include "lib/compiler.h"

/* The owner's side of a VM's start: create, keep and drop of struct backend, and the start of one
 * that has ended. */
int start_create(const struct sandbox_spec *spec, const char *id, const struct progress *p,
		 int64_t deadline_ns, struct backend_owner **ret, struct err *e) MUST_CHECK;
int start_keep(struct backend_owner *o, struct err *e) MUST_CHECK;
void start_drop(struct backend_owner *o);

/* From TERMINATED: a new supervisor on the same disk. */
int start_again(const char *id, const struct progress *p, int64_t deadline_ns, struct err *e)
	MUST_CHECK;
/* The same for whoever has its LOCK already (vmdir_lock), which is consumed. */
int start_locked(const char *id, int lock, const struct progress *p, int64_t deadline_ns,
		 struct err *e) MUST_CHECK;

/* The key of the template that a sandbox like SPEC starts from, be there one or not. */
int start_template_key(const struct sandbox_spec *spec, char ret[TEMPLATE_KEY_LEN + 1],
		       struct err *e) MUST_CHECK;

#endif
