/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_CMD_EXECID_H
#define ASB_CMD_EXECID_H

#include "host/core/core.h"
#include "lib/compiler.h"
#include "lib/err.h"
#include "lib/jsn.h"

/* Commands that run in a sandbox, as its agent lists them (docs/agent-api.md, GET /v1/execs). */

#define EXECID_MAX   64 /* characters of an id: A-Z a-z 0-9 _ - */
#define EXECID_SHORT 12 /* what tables show of it */

/* The agent's list: *RET_DOC, owned by the caller, is {"execs":[objects]}; what is in the objects is
 * not checked. */
int execid_list(const struct core_named *n, cJSON **ret_doc, struct err *e) MUST_CHECK;

/* The id of one of them, borrowed; NULL when it has none or says something else there. */
const char *execid_of(const cJSON *x);

/*
 * The whole id that WORD stands for: itself, or the only one that begins with it. -ENOENT +
 * ERR_NOT_FOUND, -EINVAL + ERR_INVALID when several begin so, or what asking the agent failed of.
 */
int execid_find(const struct core_named *n, const char *word, char ret[static EXECID_MAX + 1],
		struct err *e) MUST_CHECK;

/* What to type after such a failure: "asb execs NAME lists …", or cmd_hint's. */
const char *execid_hint(const struct err *e, int r, const char *name);

#endif
