/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "host/aws/iam.h"
#include "host/aws/s3.h"
#include "host/infra/stack.h"
#include "lib/str.h"

/* Deleting, and finding out what has gone by itself. A record goes after the thing; being killed in between only repeats a deletion. */

/* Interfaces hold the group for some minutes after their connector has gone. */
static int delete_group(struct stack *s, void *arg, struct err *e)
{
	int r = ec2_delete_group(s->a, arg, e);

	return r == 0 ? 1 : r == -EBUSY ? 0 : r;
}

/* What is recorded as about to be made has the name for an id; another's of that name is not ours to delete. */
static int group_id(struct stack *s, char ret[EC2_ID_MAX], struct err *e)
{
	const char *id = s->rec[RES_GROUP].id;

	if (str_starts(id, "sg-"))
		return str_format(ret, EC2_ID_MAX, "%s", id);
	return ec2_find_group(s->a, stack_attr_of(s, RES_GROUP, "vpc"), id, NULL, "tag:" STACK_TAG,
			      s->key, ret, e);
}

static int delete_one(struct stack *s, enum infra_res res, bool force, struct err *e)
{
	const char *id = s->rec[res].id, *bucket;
	char group[EC2_ID_MAX];
	int r;

	switch (res) {
	case RES_ROLE:
	case RES_BUILD_ROLE:
	case RES_OPERATOR:
		return iam_delete_role(s->a, id, e);
	case RES_BUCKET:
		return s3_delete_bucket(s->a, id, s->me.account, e);
	case RES_OBJECT:
		bucket = stack_attr_of(s, RES_OBJECT, "bucket");
		return *bucket ? s3_delete_object(s->a, bucket, s->me.account, id, e) : 0;
	case RES_IMAGE:
		return stack_image_delete(s, force, e);
	case RES_GROUP:
		r = group_id(s, group, e);
		if (r == -ENOENT)
			return 0;
		return r < 0 ? r
			     : stack_poll(s, delete_group, group, STACK_GONE_NS,
					  "the security group is free", e);
	case RES_CONNECTOR:
		return stack_connector_delete(s, e);
	case RES_COUNT:
		break;
	}
	return 0;
}

int stack_delete(struct stack *s, enum infra_res res, bool force, struct err *e)
{
	int r = 0;

	if (s->rec[res].creating && res != RES_GROUP && res != RES_BUCKET && res != RES_OBJECT)
		r = stack_look_one(s, res, e); /* somebody may have made it meanwhile */
	if (r == 0 && s->rec[res].managed)
		r = delete_one(s, res, force, e);
	return r < 0 ? r : stack_drop(s, res, e);
}

int stack_destroy(struct stack *s, bool force, struct err *e)
{
	AUTO_JSN *none = cJSON_CreateObject();
	int r = none ? infra_outputs_put(s->key, none, e)
		     : err_set(e, ERR_INTERNAL, ENOMEM, "%s", s->key);

	for (size_t i = 0; r == 0 && i < s->plan.len; i++) {
		const struct plan_step *p = &s->plan.steps[i];

		stack_say(s, "%s: %s %s (%s)", infra_kinds[p->res].say, plan_verbs[p->verb],
			  p->name, p->why);
		r = p->verb == PLAN_DELETE ? stack_delete(s, p->res, force, e)
					   : stack_drop(s, p->res, e);
		if (r < 0)
			ignore_result(err_wrap(e, "%s", infra_kinds[p->res].say));
	}
	return r < 0 ? r : infra_record_clear(s->key, e);
}

/* --- refresh --- */

static const char *const output_of[RES_COUNT] = {
	[RES_ROLE] = "execution_role_arn", [RES_BUILD_ROLE] = "build_role_arn",
	[RES_BUCKET] = "build_bucket",	   [RES_IMAGE] = "image_arn",
	[RES_GROUP] = "security_group_id", [RES_CONNECTOR] = "egress_network_connector_arn"
};

static int refresh_one(struct stack *s, enum infra_res res, cJSON *outputs, struct err *e)
{
	int r = stack_look_one(s, res, e);

	if (r < 0)
		return r;
	if (s->have[res].state == PLAN_NONE && !s->rec[res].creating) {
		stack_say(s, "%s: %s is gone", infra_kinds[res].say, s->rec[res].id);
		if (output_of[res])
			cJSON_DeleteItemFromObjectCaseSensitive(outputs, output_of[res]);
		return stack_drop(s, res, e);
	}
	if (res != RES_IMAGE || !*s->version ||
	    strcmp(s->version, stack_attr_of(s, RES_IMAGE, "version")) == 0)
		return 0;
	stack_say(s, "image: its version is %s", s->version);
	if (stack_attr(s, RES_IMAGE, "version", s->version) < 0)
		return err_set(e, ERR_INTERNAL, ENOMEM, "recording the image");
	return infra_record_put(s->key, res, &s->rec[res], e);
}

int stack_refresh(struct stack *s, void (*warn)(const char *what, const struct err *e),
		  struct err *e)
{
	AUTO_JSN *outputs = NULL;
	int r = infra_outputs_get(s->key, &outputs, e), bad = 0;
	bool any;

	if (r < 0)
		return r;
	any = outputs->child; /* else there is nothing to drop, and maybe no such stack */
	stack_names(s);
	for (size_t i = 0; i < RES_COUNT; i++) {
		struct err why = ERR_INIT;

		s->want[i].wanted = false; /* what is recorded is looked at, not what is wanted */
		if (!s->rec[i].id)
			continue;
		r = refresh_one(s, (enum infra_res)i, outputs, &why);
		if (r < 0) {
			bad++;
			warn(infra_kinds[i].say, &why);
		}
	}
	r = any ? infra_outputs_put(s->key, outputs, e) : 0;
	if (r == 0 && bad)
		return err_set(e, ERR_UNAVAILABLE, 0,
			       "%d resources could not be looked at; they stay recorded", bad);
	return r;
}
