/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_AWS_QUERY_H
#define ASB_AWS_QUERY_H

#include "host/aws/call.h"
#include "lib/buf.h"
#include "lib/compiler.h"
#include "lib/err.h"

/*
 * AWS's query protocol (IAM, STS) and its relative of EC2: a form is posted, XML comes back. A failed addition is remembered and
 * told by query_call.
 */
struct query { /* query_begin, then query_call, which releases it */
	const struct aws_service *service;
	const char *action; /* borrowed */
	struct buf body;
	int failed;
};

void query_begin(struct query *q, const struct aws_service *service, const char *action);
void query_add(struct query *q, const char *name, const char *value); /* NULL or "": nothing */
/* "NAME.N" or, with a REST, "NAME.N.REST"; N from 1. */
void query_add_nth(struct query *q, const char *name, unsigned n, const char *rest,
		   const char *value);

/* As aws_call; RET->json is the tree of xml.h. A void answer may have none. */
int query_call(struct aws *a, struct query *q, struct aws_answer *ret, struct err *e) MUST_CHECK;
/* For actions of which only success is of interest. RET_CODE (may be NULL) is the error's. */
int query_do(struct aws *a, struct query *q, char ret_code[CALL_CODE_MAX], struct err *e)
	MUST_CHECK;

/* Who we are: the account's number and the partition ("aws"). */
struct aws_identity {
	char account[16], partition[16];
};
int query_identity(struct aws *a, struct aws_identity *ret, struct err *e) MUST_CHECK;

#endif
