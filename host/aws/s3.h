/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_AWS_S3_H
#define ASB_AWS_S3_H

#include <stddef.h>
#include <stdint.h>

#include "host/aws/call.h"
#include "lib/compiler.h"
#include "lib/err.h"

/*
 * Buckets and objects of S3. OWNER is the account that the bucket has to belong to (x-amz-expected-bucket-owner): what is another
 * account's is -EACCES, whatever its policy allows. Keys are sent encoded.
 */
/* 0, -ENOENT, -EACCES. */
int s3_head_bucket(struct aws *a, const char *bucket, const char *owner, struct err *e) MUST_CHECK;
/* One that is ours already is fine; -EEXIST when it is another's. */
int s3_create_bucket(struct aws *a, const char *bucket, const char *owner, struct err *e)
	MUST_CHECK;
/* One of the bucket's settings: WHAT is "publicAccessBlock", "encryption", "lifecycle", "policy" (JSON), … */
int s3_configure(struct aws *a, const char *bucket, const char *owner, const char *what,
		 const char *document, struct err *e) MUST_CHECK;
/* 0, -ENOENT. */
int s3_head_object(struct aws *a, const char *bucket, const char *owner, const char *key,
		   struct err *e) MUST_CHECK;

struct s3_object { /* borrowed */
	const char *bucket, *owner, *key;
	const void *body; /* a zip */
	size_t len;
	void (*told)(void *arg, uint64_t done, uint64_t all); /* of each part; NULL = nobody */
	void *told_arg;
};
#define S3_PART	    (8U << 20)	/* S3 wants 5 MiB at least */
#define S3_PART_MAX (16U << 20) /* up to that in one piece */
/* On failure nothing of it remains that is not ended by the bucket's lifecycle. */
int s3_put_object(struct aws *a, const struct s3_object *o, struct err *e) MUST_CHECK;

int s3_delete_object(struct aws *a, const char *bucket, const char *owner, const char *key,
		     struct err *e) MUST_CHECK;
/* Ends its uploads, deletes all versions of all objects, and the bucket. One that is gone is fine. */
int s3_delete_bucket(struct aws *a, const char *bucket, const char *owner, struct err *e)
	MUST_CHECK;

#endif
