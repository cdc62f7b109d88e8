/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_AWS_IMAGEOPS_H
#define ASB_AWS_IMAGEOPS_H

#include "host/aws/arn.h"
#include "host/aws/image.h"
#include "host/image.h"
#include "lib/compiler.h"
#include "lib/err.h"

extern const struct image_ops imageops_aws;

/* `build` of struct image_ops. */
int imagebuild_aws(const struct image_spec *s, const struct progress *p, struct image_built *ret,
		   struct err *e) MUST_CHECK;

/* `prune` of struct backend: PRUNE_IMAGES is all it knows. Blocks until AWS has accepted each deletion. */
int imageprune_aws(unsigned flags, prune_fn *fn, void *arg, struct err *e) MUST_CHECK;

/* Where images of ours are. */
struct image_place {
	struct aws *a; /* borrowed */
	char account[16], partition[16];
	const char *region;
};
int image_place_open(struct image_place *ret, struct err *e) MUST_CHECK;
int image_arn_of(const struct image_place *w, const char *name, size_t n,
		 char ret[static IMAGE_ARN_MAX], struct err *e) MUST_CHECK;

#define IMAGE_TAG \
	"agent-sandbox-image" /* of what `asb image build` makes; its value is the image's name */
#define IMAGE_GONE_NS (600LL * 1000000000)
/* Asks for its deletion until that is accepted, and waits until it is gone. */
int image_delete(struct aws *a, const char *arn, struct err *e) MUST_CHECK;
/* The same of a version, without the second wait, and LIMIT_NS for the first. */
int image_delete_version(struct aws *a, const char *arn, const char *version, int64_t limit_ns,
			 struct err *e) MUST_CHECK;

#endif
