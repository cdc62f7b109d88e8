/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_AWS_OPS_H
#define ASB_AWS_OPS_H

#include "host/aws/call.h"
#include "host/aws/shape.h"
#include "lib/buf.h"
#include "lib/compiler.h"
#include "lib/err.h"
#include "lib/jsn.h"

/*
 * The operations of Lambda MicroVMs and of network connectors, by the tables of shape.h. Sent is only what the model has, within
 * its limits; read is whatever comes: unknown members, nulls and missing ones are all the same.
 */
const struct aws_op *ops_of(enum aws_op_id id);

struct ops_request {		/* ops_request_done */
	struct buf path, query; /* encoded; query empty = none */
	struct buf body;	/* JSON; empty = none */
};

/*
 * The request for PARAMS, an object with the operation's members. Pure. ERR_INVALID names the member that is unknown, missing, of
 * another type or out of its limits. RET is to be released in any case.
 */
int ops_build(const struct aws_op *op, const cJSON *params, struct ops_request *ret, struct err *e)
	MUST_CHECK;
void ops_request_done(struct ops_request *r);

/* That what is there in ANSWER (NULL: nothing) has the types of the model. ERR_INTERNAL names what has not. */
int ops_check(const struct aws_op *op, const cJSON *answer, struct err *e) MUST_CHECK;

/* Calls it. A client token that PARAMS lacks is put there: a fresh UUID. RET as of aws_call. */
int ops_call(struct aws *a, enum aws_op_id id, cJSON *params, struct aws_answer *ret, struct err *e)
	MUST_CHECK;

/*
 * Calls FN for each entry of a list operation, page after page until there is no token for a next one: empty pages are ordinary.
 * PARAMS is changed. Non-zero from FN stops and is returned.
 */
int ops_each(struct aws *a, enum aws_op_id id, cJSON *params,
	     int (*fn)(void *arg, const cJSON *item), void *arg, struct err *e) MUST_CHECK;
#define OPS_PAGES_MAX 10000

/* Copies of all entries, OPS_ITEMS_MAX at most, into the array ALL (NULL: there was no memory for it). PARAMS as above. */
int ops_list(struct aws *a, enum aws_op_id id, cJSON *params, cJSON *all, struct err *e) MUST_CHECK;
#define OPS_ITEMS_MAX 20000
/* A copy of ITEM at the end of the array ARG: 0, -ENOMEM, -E2BIG. */
int ops_keep(void *arg, const cJSON *item) MUST_CHECK;

/* A random UUID (RFC 9562, version 4) in its usual form. */
#define OPS_UUID_LEN 36
int ops_uuid(char ret[static OPS_UUID_LEN + 1], struct err *e) MUST_CHECK;

#endif
