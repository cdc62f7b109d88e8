/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_AWS_ARN_H
#define ASB_AWS_ARN_H

#include <stdbool.h>

#include "host/aws/settings.h"
#include "lib/compiler.h"
#include "lib/err.h"

/* Shapes of names, so that what cannot be right is refused before any call. Pure. */

#define IMAGE_NAME_MAX	  64
#define ARN_CONNECTOR_MAX 320 /* with its NUL */

struct image_arn {
	char region[AWS_REGION_MAX + 1];
	char account[13];
	char name[IMAGE_NAME_MAX + 1];
};
/* "arn:aws:lambda:REGION:ACCOUNT:microvm-image:NAME". ERR_INVALID says what is wrong with it. */
int arn_image(const char *s, struct image_arn *ret, struct err *e) MUST_CHECK;
bool arn_is_image_name(const char *s, size_t n); /* 1 to 64 letters, digits, '-', '_' */

/* "arn:aws:iam::ACCOUNT:role/NAME" */
int arn_check_role(const char *s, struct err *e) MUST_CHECK;
/* A network connector of REGION: AWS's own or one's own; AWS's own, of its names' endings, is for that direction. */
enum arn_direction { ARN_INGRESS, ARN_EGRESS };
int arn_check_connector(const char *s, const char *region, enum arn_direction d, struct err *e)
	MUST_CHECK;
/* ERR_UNSUPPORTED where Lambda MicroVMs do not exist. */
int arn_check_region(const char *region, struct err *e) MUST_CHECK;

#endif
