/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_AWS_CREDS_H
#define ASB_AWS_CREDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/compiler.h"
#include "lib/err.h"

/*
 * Who asks: the standard credential chain, in botocore's order. The first source that is configured wins; one that is configured
 * and fails ends the search with its error.
 */
struct aws;

#define CREDS_SOURCE_MAX 200

struct aws_creds {		       /* aws_creds_done */
	char *key_id, *secret;	       /* owned */
	char *token;		       /* owned; NULL = none */
	int64_t expires_s;	       /* Unix time; 0 = never */
	char source[CREDS_SOURCE_MAX]; /* where from, for people; holds no secret */
};
void aws_creds_done(struct aws_creds *c); /* wipes them too */

/*
 * Runs the chain. ERR_DENIED when nothing is configured (-ENOKEY), or what the source says. QUICK: does not ask the instance
 * metadata service, which costs a second where there is none.
 */
int creds_find(struct aws *a, bool quick, struct aws_creds *ret, struct err *e) MUST_CHECK;

/* The session's own: found when first asked for, found again when they are about to expire or FRESH. Borrowed from A. */
int creds_now(struct aws *a, bool fresh, const struct aws_creds **ret, struct err *e) MUST_CHECK;

/* The region that the instance metadata service tells; 0 = there is none, 1 = RET is set. */
int creds_imds_region(struct aws *a, char *ret, size_t size);

#endif
