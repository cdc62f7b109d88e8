/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_INFRA_RECORD_H
#define ASB_INFRA_RECORD_H

#include <stdbool.h>

#include "lib/compiler.h"
#include "lib/err.h"
#include "lib/jsn.h"

/*
 * infra-state.json: what was set up, in the Python project's format
 *     {"stacks": {"<project>/<stack>": {"resources": {"<name>": {"kind", "id", "managed", "attrs"}}, "outputs": {}}}}
 * Unknown keys are preserved. $AGENT_SANDBOX_INFRA_STATE or ~/.agent_sandbox/infra-state.json. Every change is read-modify-write
 * under a lock. "managed" means: made by us, so destroy deletes it. attrs.creating says that it is about to be made, or was when
 * we ended: it may be there or not.
 */
enum infra_res {
	RES_ROLE, /* in the order in which they are made */
	RES_BUILD_ROLE,
	RES_BUCKET,
	RES_OBJECT,
	RES_IMAGE,
	RES_GROUP,
	RES_OPERATOR,
	RES_CONNECTOR,
	RES_COUNT
};
struct infra_kind {
	const char *logical; /* its name in the file */
	const char *kind;
	const char *say; /* for people: "execution role" */
};
extern const struct infra_kind infra_kinds[RES_COUNT];

#define INFRA_KEY_MAX 140

struct infra_record { /* of one resource; infra_record_done */
	char *id;     /* owned; NULL = there is no record */
	bool managed, creating;
	cJSON *attrs; /* owned; an object */
};
void infra_record_done(struct infra_record *r);

/* What is recorded of KEY ("project/stack") for RES; R->id is NULL when nothing is. */
int infra_record_get(const char *key, enum infra_res res, struct infra_record *r, struct err *e)
	MUST_CHECK;
/* Writes it: R->creating becomes attrs.creating, unknown members of the old attrs stay. */
int infra_record_put(const char *key, enum infra_res res, const struct infra_record *r,
		     struct err *e) MUST_CHECK;
int infra_record_drop(const char *key, enum infra_res res, struct err *e) MUST_CHECK;
/* The stack's entry goes when no resource is left in it. */
int infra_record_clear(const char *key, struct err *e) MUST_CHECK;

/* The outputs of KEY, {} when there are none; the caller frees it. */
int infra_outputs_get(const char *key, cJSON **ret, struct err *e) MUST_CHECK;
int infra_outputs_put(const char *key, const cJSON *outputs, struct err *e) MUST_CHECK;
/* Every stack with its outputs (an object), in the order of the file. Non-zero from FN stops and is returned. */
int infra_outputs_each(int (*fn)(void *arg, const char *key, const cJSON *outputs), void *arg,
		       struct err *e) MUST_CHECK;

/* One `up` or `destroy` of KEY at a time: the caller closes *RET_FD. ERR_CONFLICT when another is at work. */
int infra_stack_lock(const char *key, int *ret_fd, struct err *e) MUST_CHECK;

#endif
