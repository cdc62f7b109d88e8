/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HOOKS_PAYLOAD_H
#define HOOKS_PAYLOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/compiler.h"
#include "lib/err.h"

/*
 * The body of /run (and, in a local VM, of /resume): the platform's envelope
 * {"microvmId":…,"runHookPayload":"<string>"}, or the payload without one, or nothing. Pure.
 */
struct cJSON;

#define PAYLOAD_BODY_MAX    (64UL << 10)
#define PAYLOAD_ENTROPY_MAX 4096

struct payload {
	struct cJSON *doc;	 /* owned: the payload when it is a JSON object, else NULL */
	char *text;		 /* owned: the payload as it came, NULL when there is none */
	char *microvm_id;	 /* owned, or NULL */
	const char *hostname;	 /* valid; points into doc; NULL when absent, as all below */
	const char *agent_token; /* not empty */
	const struct cJSON *env; /* an object of strings */
	int64_t time_ns;	 /* since 1970; 0 when absent */
	unsigned char *entropy;	 /* owned */
	size_t entropy_len;
};

#define PAYLOAD_INIT                                           \
	{                                                      \
		NULL, NULL, NULL, NULL, NULL, NULL, 0, NULL, 0 \
	}

/*
 * BODY has N bytes and a NUL behind them. 0; or a negative errno with a message and RET untouched:
 * the body is neither empty nor a JSON object, or a key that we know holds something else than it
 * must. A payload that is not a JSON object is opaque text.
 */
int payload_parse(const char *body, size_t n, struct payload *ret, struct err *e) MUST_CHECK;
void payload_done(struct payload *p);

/* What the image's own scripts may see of it: the text, less the members that are secrets. Owned by
 * the caller; NULL: nothing. */
char *payload_public(const struct payload *p) MUST_CHECK;

#endif
