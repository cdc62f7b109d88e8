/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_AWS_IAM_H
#define ASB_AWS_IAM_H

#include "host/aws/call.h"
#include "lib/compiler.h"
#include "lib/err.h"
#include "lib/jsn.h"

/* The roles of IAM. Documents are JSON texts. What is missing is -ENOENT. */
struct iam_role {
	char *arn;    /* owned; iam_role_done */
	cJSON *trust; /* owned */
	cJSON *tags;  /* owned: an object of texts */
};
void iam_role_done(struct iam_role *r);

int iam_get_role(struct aws *a, const char *name, struct iam_role *ret, struct err *e) MUST_CHECK;
/* -EEXIST when there is one. */
int iam_create_role(struct aws *a, const char *name, const char *trust, const char *about,
		    const char *tag, const char *tag_value, struct err *e) MUST_CHECK;
int iam_set_trust(struct aws *a, const char *name, const char *trust, struct err *e) MUST_CHECK;

/* The inline policy POLICY; the caller frees *RET. */
int iam_get_policy(struct aws *a, const char *role, const char *policy, cJSON **ret, struct err *e)
	MUST_CHECK;
int iam_put_policy(struct aws *a, const char *role, const char *policy, const char *document,
		   struct err *e) MUST_CHECK;

/* The ARNs of the attached policies, as an array; the caller frees it. */
int iam_list_attached(struct aws *a, const char *role, cJSON **ret, struct err *e) MUST_CHECK;
int iam_attach(struct aws *a, const char *role, const char *arn, struct err *e) MUST_CHECK;
int iam_detach(struct aws *a, const char *role, const char *arn, struct err *e) MUST_CHECK;

/* With all its policies. One that is gone is fine. */
int iam_delete_role(struct aws *a, const char *name, struct err *e) MUST_CHECK;

#endif
