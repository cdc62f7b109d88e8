/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_INFRA_STACK_H
#define ASB_INFRA_STACK_H

#include "host/aws/aws.h"
#include "host/aws/ec2.h"
#include "host/aws/guestdir.h"
#include "host/aws/ops.h"
#include "host/aws/query.h"
#include "host/infra/config.h"
#include "host/infra/plan.h"
#include "host/infra/policy.h"
#include "host/infra/record.h"
#include "lib/buf.h"
#include "lib/compiler.h"
#include "lib/err.h"

/*
 * One stack while a command works on it: look at what is there, plan, apply. Everything that is made is recorded before it is
 * waited for, and what is about to be made before it is asked for, so that being killed anywhere leaves nothing unrecorded.
 */
#define STACK_ARN_MAX 640 /* the path of a role may have 512 bytes */
#define STACK_SHA_LEN 64
#define STACK_TAG     "agent-sandbox-stack" /* of what we make; its value is the key */

struct stack {			      /* stack_done */
	const struct infra_config *c; /* borrowed */
	struct aws *a;		      /* borrowed: the session of the stack's region */
	char key[INFRA_KEY_MAX + 1];
	struct aws_identity me;
	struct policy_place place; /* points into me and c */
	int lock;

	struct infra_record rec[RES_COUNT];
	struct plan_want want[RES_COUNT];
	struct plan_have have[RES_COUNT];
	struct plan plan;

	char bucket[64], operator_name[80], image_arn[STACK_ARN_MAX];
	char role_arn[STACK_ARN_MAX], build_role_arn[STACK_ARN_MAX], operator_arn[STACK_ARN_MAX];
	char vpc[EC2_ID_MAX], group[EC2_ID_MAX];
	char connector[STACK_ARN_MAX]; /* ARN */
	cJSON *subnets;		       /* owned: an array of ids; NULL = not looked up */
	struct guestdir guest;	       /* all zero = the folder was not read */
	char sha[STACK_SHA_LEN +
		 1];	  /* of what the image is built from; "" = the folder was not read */
	char version[32]; /* the image's active one */

	void (*say)(void *arg, const char *line); /* of progress; NULL = silent */
	void *say_arg;
};

/* Takes the stack's lock, asks who we are and reads what is recorded. S is to be released in any case. */
int stack_open(struct stack *s, const struct infra_config *c, struct err *e) MUST_CHECK;
void stack_done(struct stack *s);
void stack_say(const struct stack *s, const char *fmt, ...) PRINTF(2, 3);

/* Writes rec[RES] with this id; ATTR (NULL = none) is set in its attrs. */
int stack_record(struct stack *s, enum infra_res res, const char *id, bool managed, bool creating,
		 struct err *e) MUST_CHECK;
int stack_attr(struct stack *s, enum infra_res res, const char *name, const char *value)
	MUST_CHECK; /* into rec[RES], not yet written */
const char *stack_attr_of(const struct stack *s, enum infra_res res, const char *name); /* or "" */
int stack_drop(struct stack *s, enum infra_res res, struct err *e) MUST_CHECK;
bool stack_ours(const struct stack *s, enum infra_res res); /* it is recorded, as made by us */
/* 1: what has this ARN (an image, a connector) is tagged as this stack's. */
int stack_tagged(struct stack *s, const char *arn, struct err *e) MUST_CHECK;
/* What is recorded as about to be made by us was made by somebody else meanwhile: for this command it is not ours. */
void stack_disown(struct stack *s, enum infra_res res);
char *stack_role_arn(struct stack *s, enum infra_res res); /* of RES_ROLE, …: where its ARN is */

/* Fills want and have from AWS, and plans. stack_look_one fills only have[RES] (0 or a negative errno: it is not known). */
int stack_plan_up(struct stack *s, bool rebuild, struct err *e) MUST_CHECK;
int stack_plan_destroy(struct stack *s, bool force, struct err *e) MUST_CHECK;
int stack_look_one(struct stack *s, enum infra_res res, struct err *e) MUST_CHECK;
void stack_names(struct stack *s); /* want, from the file alone */

/* Does what stands in the plan. */
int stack_up(struct stack *s, struct err *e) MUST_CHECK;
int stack_destroy(struct stack *s, bool force, struct err *e) MUST_CHECK;
/* Drops what is certainly gone. WARN is called for each resource that could not be looked at; it stays. */
int stack_refresh(struct stack *s, void (*warn)(const char *what, const struct err *e),
		  struct err *e) MUST_CHECK;

/* --- the parts --- */

/* The policies of a role, as JSON. */
struct role_texts { /* role_texts_done */
	struct buf trust;
	struct buf own;	    /* what only this role has; empty = nothing */
	const char *policy; /* the name of that */
	struct buf logs;    /* empty = nothing */
};
/* RET is to be released in any case. */
int stack_role_texts(const struct stack *s, enum infra_res res, struct role_texts *ret,
		     struct err *e) MUST_CHECK;
void role_texts_done(struct role_texts *t);
int stack_role_settle(struct stack *s, enum infra_res res, struct err *e) MUST_CHECK;
int stack_role_differs(struct stack *s, enum infra_res res, const cJSON *trust,
		       const char **ret_why, struct err *e) MUST_CHECK;

int stack_bucket_settings(const struct stack *s, char ret[STACK_SHA_LEN + 1]) MUST_CHECK;
int stack_bucket_settle(struct stack *s, struct err *e) MUST_CHECK;

int stack_image_make(struct stack *s, bool update, struct err *e) MUST_CHECK;
int stack_image_wait(struct stack *s, struct err *e) MUST_CHECK; /* and records the result */
int stack_image_delete(struct stack *s, bool force, struct err *e) MUST_CHECK;
/* 1 when a sandbox of it lives. */
int stack_image_live(struct stack *s, struct err *e) MUST_CHECK;

int stack_connector_make(struct stack *s, bool update, struct err *e) MUST_CHECK;
int stack_connector_wait(struct stack *s, struct err *e) MUST_CHECK;
int stack_connector_delete(struct stack *s, struct err *e) MUST_CHECK;

int stack_delete(struct stack *s, enum infra_res res, bool force, struct err *e) MUST_CHECK;

/* aws_poll with the stack. */
int stack_poll(struct stack *s, int (*fn)(struct stack *s, void *arg, struct err *e), void *arg,
	       int64_t limit_ns, const char *what, struct err *e) MUST_CHECK;
#define STACK_GONE_NS  (600LL * 1000000000)
#define STACK_BUILD_NS (1800LL * 1000000000)
#define STACK_ROLE_NS  (120LL * 1000000000) /* until a new role may be taken */
/* Calls an operation with a role that may be new: for some seconds it is refused. RET as of aws_call, of the last attempt. */
int stack_call_with_role(struct stack *s, enum aws_op_id op, const cJSON *params,
			 struct aws_answer *ret, struct err *e) MUST_CHECK;

#endif
