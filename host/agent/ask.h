/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_AGENT_ASK_H
#define ASB_AGENT_ASK_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/buf.h"
#include "lib/compiler.h"
#include "lib/err.h"
#include "lib/jsn.h"

/* One question to the agent in a sandbox, blocking until its answer: for commands that ask and
 * print. Streams and whole commands are exec.h's. */
struct backend;

struct ask {
	const struct backend *backend;
	const char *id;	    /* of the sandbox */
	const char *method; /* a GET whose connection is cut is sent again, a few times */
	const char *path;   /* with its query, encoded */
	const char *body;   /* NULL = none */
	int64_t limit_ns;   /* for all attempts; 0 = ASK_LIMIT_NS */
};
#define ASK_LIMIT_NS (15LL * 1000000000)

/*
 * 0 for a 200 or 201 with *RET_JSON (may be NULL) as the document; the caller owns it. Otherwise a
 * negative errno with E: the agent's own "detail" as message, and -ENOSYS for a route that it lacks, -ENOENT for 404, -ESRCH for 410,
 * -EBUSY for 409, -EINVAL for another 4xx, -EIO for a 5xx or an answer that is no JSON. What the
 * connection failed of comes as it is.
 */
int agent_ask(const struct ask *a, cJSON **ret_json, struct err *e) MUST_CHECK;

/* An answer of STATUS with BODY says that the agent has no such route: it is not ours, and has only the compatible ones (compat.h). */
bool ask_no_route(int status, const struct buf *body);
/* ERR_UNSUPPORTED: the agent of the image WHAT ("has no terminals"). Returns -ENOSYS. */
int ask_unsupported(struct err *e, const char *what);

/* The same for an answer that is here already: its STATUS and BODY. */
int ask_take(int status, const struct buf *body, cJSON **ret_json, struct err *e) MUST_CHECK;

#endif
