/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_AWS_EC2_H
#define ASB_AWS_EC2_H

#include <stdbool.h>

#include "host/aws/call.h"
#include "lib/compiler.h"
#include "lib/err.h"
#include "lib/jsn.h"

/* What of EC2 a network connector needs. */
#define EC2_ID_MAX 64
/* Letters, digits and '-', at most EC2_ID_MAX - 1: what an answer has besides is refused. */
bool ec2_is_id(const char *s);

int ec2_default_vpc(struct aws *a, char ret[EC2_ID_MAX], struct err *e) MUST_CHECK; /* -ENOENT */
/* The ids of VPC's subnets, or those whose Name is NAME (NULL = any), as an array; the caller frees it. */
int ec2_subnets(struct aws *a, const char *vpc, const char *name, cJSON **ret, struct err *e)
	MUST_CHECK;
/* The security group NAME of VPC, or the one with the id ID; with TAG, "tag:NAME", only one that has its value. -ENOENT. */
int ec2_find_group(struct aws *a, const char *vpc, const char *name, const char *id,
		   const char *tag, const char *tag_value, char ret[EC2_ID_MAX], struct err *e)
	MUST_CHECK;
/* -EEXIST when there is one of that name. Outgoing traffic is allowed, nothing incoming. */
int ec2_create_group(struct aws *a, const char *vpc, const char *name, const char *about,
		     const char *tag, const char *tag_value, char ret[EC2_ID_MAX], struct err *e)
	MUST_CHECK;
/* One that is gone is fine; -EBUSY while something uses it. */
int ec2_delete_group(struct aws *a, const char *id, struct err *e) MUST_CHECK;

#endif
