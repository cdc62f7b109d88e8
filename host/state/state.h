/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_STATE_H
#define ASB_STATE_H

#include "lib/compiler.h"
#include "lib/err.h"

/*
 * state.json: which names the user gave to which sandboxes, in the format of the Python project
 *     {"sandboxes": {"<name>": {"name", "microvm_id", "endpoint", "image_arn", "region"}}}
 * indent 2. Unknown keys are preserved, and a record gets no key that the Python loader does not
 * know (it refuses them): what else a backend knows lives with the backend; "local-…" in microvm_id
 * tells which one. $AGENT_SANDBOX_STATE or
 * ~/.agent_sandbox/state.json. Every change is read-modify-write under a lock, by atomic replace,
 * mode 0600.
 */
struct cJSON;

struct state_record { /* owned strings; state_record_done */
	char *name;
	char *microvm_id;
	char *endpoint;	 /* NULL = null */
	char *image_arn; /* NULL = null; local: the image's name */
	char *region;	 /* NULL = null */
};

void state_record_done(struct state_record *r);

/* ~/.agent_sandbox or the folder of $AGENT_SANDBOX_STATE's file; made with mode 0700 when missing.
 * Static storage. */
int state_dir(const char **ret, struct err *e) MUST_CHECK;

/* 0, -ENOENT + ERR_NOT_FOUND naming the file; a corrupt file is ERR_INVALID with its path, never
 * "empty". */
int state_get(const char *name, struct state_record *ret, struct err *e) MUST_CHECK;
/* -EEXIST + ERR_EXISTS when the name is taken. */
int state_add(const struct state_record *r, struct err *e) MUST_CHECK;
/* Gives the record R->name, which has OLD_ID, what R has. -ENOENT + ERR_NOT_FOUND when there is none like that. */
int state_replace(const char *old_id, const struct state_record *r, struct err *e) MUST_CHECK;
/* Removes NAME if its record has MICROVM_ID (NULL: whatever it has). A missing one is fine. */
int state_remove(const char *name, const char *microvm_id, struct err *e) MUST_CHECK;
/* In the order of the file. Non-zero from FN stops and is returned. */
int state_each(int (*fn)(void *arg, const struct state_record *r), void *arg, struct err *e)
	MUST_CHECK;

/* 1 to 128 bytes of letters, digits, '.', '_', '-', beginning with a letter or digit. */
int state_check_name(const char *name, struct err *e) MUST_CHECK;

#endif
