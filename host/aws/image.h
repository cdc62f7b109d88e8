/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_AWS_IMAGE_H
#define ASB_AWS_IMAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "host/aws/aws.h"
#include "lib/buf.h"
#include "lib/compiler.h"
#include "lib/err.h"
#include "lib/jsn.h"

/* MicroVM images: what `asb image` and `asb infra` have in common. */

#define IMAGE_ARN_MAX	  256
#define IMAGE_VERSION_MAX 32 /* "12.0" */

struct image_recipe {	  /* all borrowed; NULL or "" = not given */
	const char *name; /* also of the log group */
	const char *arn;  /* of the one that gets a new version; NULL = a new image */
	const char *bucket, *object;
	const char *build_role;
	const char *base, *base_version; /* not given: the newest that AWS manages */
	const char *tag, *tag_value;	 /* of a new image; NULL = none */
	uint64_t memory_mib;		 /* 0 = AWS's default */
};

/*
 * What CreateMicrovmImage or UpdateMicrovmImage is to be called with. All is sent each time, for an update puts back to their defaults
 * what it is not given. ERR_NOT_FOUND when no base is given and AWS manages none.
 */
int image_params(struct aws *a, const struct image_recipe *i, cJSON **ret, struct err *e)
	MUST_CHECK;

/* The newest base that AWS manages: its ARN. */
int image_base(struct aws *a, char ret[static IMAGE_ARN_MAX], struct err *e) MUST_CHECK;

struct image_state {
	char state[24];				/* MicrovmImageState: "CREATING", … */
	bool busy;				/* it will be another one by itself */
	bool failed;				/* the last thing that was wanted of it */
	char active_version[IMAGE_VERSION_MAX]; /* "" = none */
	char failed_version[IMAGE_VERSION_MAX];
};
/* GetMicrovmImage. -ENOENT. */
int image_get(struct aws *a, const char *arn, struct image_state *ret, struct err *e) MUST_CHECK;

/* The number in "3.0", and in "3"; 0 for anything else. */
uint64_t image_major(const char *version);

/*
 * DeleteMicrovmImage, or with VERSION (else NULL) DeleteMicrovmImageVersion. 1: accepted, or there is none; 0: not now, because the image
 * is being changed or its last sandbox is just ending. E is not NULL.
 */
int image_ask_to_delete(struct aws *a, const char *arn, const char *version, struct err *e)
	MUST_CHECK;
/* 1: it is gone; 0: not yet. */
int image_is_gone(struct aws *a, const char *arn, struct err *e) MUST_CHECK;

/* Why a build has failed, in AWS's words: appended to RET, nothing when it does not say. */
void image_reason(struct aws *a, const char *arn, const char *version, struct buf *ret);

#endif
