/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_AWS_S3INT_H
#define ASB_AWS_S3INT_H

#include <stddef.h>

#include "host/aws/call.h"
#include "lib/compiler.h"
#include "lib/err.h"

/* One request to S3, as the files of s3.h make them. All borrowed. */
struct s3_request {
	const char *what, *method, *bucket, *owner;
	const char *key;   /* NULL = the bucket itself */
	const char *query; /* encoded; NULL = none */
	const char *type;
	const void *body;
	size_t len;
};

/* As aws_call, with checksum and owner. RET->json is the tree of xml.h. */
int s3_call(struct aws *a, const struct s3_request *q, struct aws_answer *ret, struct err *e)
	MUST_CHECK;

#define S3_XMLNS "xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\""

#endif
