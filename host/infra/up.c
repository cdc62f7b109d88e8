/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "host/aws/iam.h"
#include "host/aws/s3.h"
#include "host/infra/stack.h"
#include "lib/str.h"

/* The steps of a plan, done one after the other. */

#define ROLE_SHOWN_NS (30LL * 1000000000)

static int record_role(struct stack *s, enum infra_res res, bool managed, bool creating,
		       struct err *e)
{
	const char *arn = stack_role_arn(s, res);

	if (*arn && stack_attr(s, res, "arn", arn) < 0)
		return err_set(e, ERR_INTERNAL, ENOMEM, "recording a role");
	return stack_record(s, res, s->want[res].name, managed, creating, e);
}

/* 1: it is tagged as this stack's. */
static int read_role(struct stack *s, enum infra_res res, struct err *e)
{
	const char *tag;
	struct iam_role role;
	int r = iam_get_role(s->a, s->want[res].name, &role, e);

	if (r == 0 && str_format(stack_role_arn(s, res), STACK_ARN_MAX, "%s", role.arn) < 0)
		r = err_set(e, ERR_INTERNAL, EBADMSG, "the ARN of a role is too long");
	tag = cJSON_GetStringValue(jsn_get(role.tags, STACK_TAG));
	if (r == 0)
		r = tag && strcmp(tag, s->key) == 0;
	iam_role_done(&role);
	return r;
}

struct awaited {
	enum infra_res res;
	bool ours;
};

/* IAM may not show for some seconds what it has just made. */
static int role_there(struct stack *s, void *arg, struct err *e)
{
	struct awaited *w = arg;
	int r = read_role(s, w->res, e);

	w->ours = r == 1;
	return r == -ENOENT ? 0 : r < 0 ? r : 1;
}

static int make_role(struct stack *s, enum infra_res res, struct err *e)
{
	struct awaited w = { res, false };
	struct role_texts t;
	char about[120];
	int r = stack_role_texts(s, res, &t, e);

	ignore_result(str_format(about, sizeof(about), "%s of agent-sandbox-os MicroVMs",
				 infra_kinds[res].say)); /* fits */
	if (r == 0)
		r = record_role(s, res, true, true, e);
	if (r == 0)
		r = iam_create_role(s->a, s->want[res].name, t.trust.p, about, STACK_TAG, s->key,
				    e);
	role_texts_done(&t);
	if (r == 0 || r == -EEXIST) /* the first of two attempts may have made it */
		r = stack_poll(s, role_there, &w, ROLE_SHOWN_NS, "the role is shown", e);
	if (r == 0 && !w.ours) /* somebody was quicker: it is theirs */
		return record_role(s, res, false, false, e);
	if (r == 0)
		r = stack_role_settle(s, res, e);
	return r < 0 ? r : record_role(s, res, true, false, e);
}

static int do_role(struct stack *s, const struct plan_step *p, struct err *e)
{
	int r = 0;

	switch ((int)p->verb) { /* of the verbs, those that this can have */
	case PLAN_CREATE:
	case PLAN_REPLACE:
		return make_role(s, p->res, e);
	case PLAN_UPDATE:
		r = stack_role_settle(s, p->res, e);
		return r < 0 ? r : record_role(s, p->res, true, false, e);
	case PLAN_REUSE: { /* the record's id is the name, the ARN an attribute, as in the Python project */
		const char *name = strrchr(p->name, '/');

		if (stack_attr(s, p->res, "arn", p->name) < 0)
			return err_set(e, ERR_INTERNAL, ENOMEM, "recording a role");
		return stack_record(s, p->res, name ? name + 1 : p->name, false, false, e);
	}
	default:
		return record_role(s, p->res, p->verb == PLAN_KEEP, false, e);
	}
}

static int do_bucket(struct stack *s, const struct plan_step *p, struct err *e)
{
	int r = 0;

	switch ((int)p->verb) { /* of the verbs, those that this can have */
	case PLAN_CREATE:
	case PLAN_REPLACE:
		r = stack_record(s, RES_BUCKET, s->bucket, true, true, e);
		if (r == 0)
			r = s3_create_bucket(s->a, s->bucket, s->me.account, e);
		if (r == -EEXIST) {
			ignore_result(stack_drop(s, RES_BUCKET,
						 NULL)); /* the next `up` takes another name */
			return err_set(e, ERR_EXISTS, 0, "the bucket %s is somebody else's",
				       s->bucket);
		}
		if (r == 0)
			r = stack_bucket_settle(s, e);
		break;
	case PLAN_UPDATE:
		r = stack_bucket_settle(s, e);
		break;
	case PLAN_REUSE:
	case PLAN_ADOPT:
		return stack_record(s, RES_BUCKET, s->bucket, false, false, e);
	default:
		break;
	}
	return r < 0 ? r : stack_record(s, RES_BUCKET, s->bucket, true, false, e);
}

static int do_object(struct stack *s, const struct plan_step *p, struct err *e)
{
	const struct s3_object zip = { .bucket = s->bucket,
				       .owner = s->me.account,
				       .key = s->guest.key,
				       .body = s->guest.zip.p,
				       .len = s->guest.zip.len };
	int r = 0;

	if (stack_attr(s, RES_OBJECT, "bucket", s->bucket) < 0)
		return err_set(e, ERR_INTERNAL, ENOMEM, "recording the guest folder");
	if (p->verb == PLAN_UPLOAD)
		r = s3_put_object(s->a, &zip, e);
	return r < 0 ? r : stack_record(s, RES_OBJECT, s->guest.key, true, false, e);
}

static int do_image(struct stack *s, const struct plan_step *p, struct err *e)
{
	int r = 0;

	switch ((int)p->verb) { /* of the verbs, those that this can have */
	case PLAN_REPLACE:
		if (!stack_ours(s, RES_IMAGE)) /* another's, that is being deleted */
			r = stack_record(s, RES_IMAGE, s->image_arn, true, true, e);
		if (r == 0)
			r = stack_image_delete(s, false, e);
		return r < 0 ? r : stack_image_make(s, false, e);
	case PLAN_CREATE:
		return stack_image_make(s, false, e);
	case PLAN_UPDATE:
		return stack_image_make(s, true, e);
	case PLAN_ADOPT:
		if (stack_attr(s, RES_IMAGE, "version", s->version) < 0)
			return err_set(e, ERR_INTERNAL, ENOMEM, "recording the image");
		return stack_record(s, RES_IMAGE, s->image_arn, false, false, e);
	default: /* keep, wait: until it works, and recorded as such */
		break;
	}
	if (!s->rec[RES_IMAGE].id)
		r = stack_record(s, RES_IMAGE, s->image_arn, false, false, e);
	return r < 0 ? r : stack_image_wait(s, e);
}

static int make_group(struct stack *s, struct err *e)
{
	const char *name = s->c->text[INFRA_EGRESS_NAME];
	bool managed = true;
	int r;

	if (stack_attr(s, RES_GROUP, "name", name) < 0 ||
	    stack_attr(s, RES_GROUP, "vpc", s->vpc) < 0)
		return err_set(e, ERR_INTERNAL, ENOMEM, "recording the security group");
	r = stack_record(s, RES_GROUP, name, true, true, e);
	if (r == 0)
		r = ec2_create_group(s->a, s->vpc, name, "Egress of agent-sandbox-os MicroVMs",
				     STACK_TAG, s->key, s->group, e);
	if (r == -EEXIST) /* the first of two attempts may have made it */
		r = ec2_find_group(s->a, s->vpc, name, NULL, "tag:" STACK_TAG, s->key, s->group, e);
	if (r == -ENOENT) { /* somebody was quicker */
		managed = false;
		r = ec2_find_group(s->a, s->vpc, name, NULL, NULL, NULL, s->group, e);
	}
	return r < 0 ? r : stack_record(s, RES_GROUP, s->group, managed, false, e);
}

static int do_group(struct stack *s, const struct plan_step *p, struct err *e)
{
	if (p->verb == PLAN_CREATE || p->verb == PLAN_REPLACE)
		return make_group(s, e);
	if (stack_attr(s, RES_GROUP, "name", s->c->text[INFRA_EGRESS_NAME]) < 0)
		return err_set(e, ERR_INTERNAL, ENOMEM, "recording the security group");
	return stack_record(s, RES_GROUP, s->group, p->verb == PLAN_KEEP || p->verb == PLAN_UPDATE,
			    false, e);
}

static int do_connector(struct stack *s, const struct plan_step *p, struct err *e)
{
	int r = 0;

	switch ((int)p->verb) { /* of the verbs, those that this can have */
	case PLAN_REPLACE:
		if (!stack_ours(s, RES_CONNECTOR)) /* as above */
			r = stack_record(s, RES_CONNECTOR, s->connector, true, true, e);
		if (r == 0)
			r = stack_connector_delete(s, e);
		return r < 0 ? r : stack_connector_make(s, false, e);
	case PLAN_CREATE:
		return stack_connector_make(s, false, e);
	case PLAN_UPDATE:
		return stack_connector_make(s, true, e);
	case PLAN_REUSE:
	case PLAN_ADOPT:
		if (stack_attr(s, RES_CONNECTOR, "name", s->c->text[INFRA_EGRESS_NAME]) < 0)
			return err_set(e, ERR_INTERNAL, ENOMEM, "recording the connector");
		return stack_record(s, RES_CONNECTOR, s->connector, false, false, e);
	default:
		break;
	}
	return stack_connector_wait(s, e);
}

static int do_step(struct stack *s, const struct plan_step *p, struct err *e)
{
	if (p->verb == PLAN_DELETE)
		return stack_delete(s, p->res, false, e);
	if (p->verb == PLAN_FORGET)
		return stack_drop(s, p->res, e);
	switch (p->res) {
	case RES_ROLE:
	case RES_BUILD_ROLE:
	case RES_OPERATOR:
		return do_role(s, p, e);
	case RES_BUCKET:
		return do_bucket(s, p, e);
	case RES_OBJECT:
		return do_object(s, p, e);
	case RES_IMAGE:
		return do_image(s, p, e);
	case RES_GROUP:
		return do_group(s, p, e);
	case RES_CONNECTOR:
		return do_connector(s, p, e);
	case RES_COUNT:
		break;
	}
	return 0;
}

/* --- outputs --- */

static int put_outputs(struct stack *s, struct err *e)
{
	AUTO_JSN *o = cJSON_CreateObject();
	bool own = s->want[RES_GROUP].wanted;
	bool good = o && jsn_add_str(o, "image_arn", s->image_arn) &&
		    jsn_add_str(o, "execution_role_arn", s->role_arn) &&
		    jsn_add_str(o, "build_role_arn", s->build_role_arn) &&
		    jsn_add_str(o, "build_bucket", s->bucket);

	if (good && s->c->egress)
		good = jsn_add_str(o, "egress_network_connector_arn", s->connector);
	if (good && own)
		good = jsn_add_str(o, "security_group_id", s->group) &&
		       cJSON_AddItemToObject(o, "subnet_ids", cJSON_Duplicate(s->subnets, true)) &&
		       jsn_add_str(o, "vpc_id", s->vpc);
	return good ? infra_outputs_put(s->key, o, e)
		    : err_set(e, ERR_INTERNAL, ENOMEM, "the outputs of %s", s->key);
}

int stack_up(struct stack *s, struct err *e)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < s->plan.len; i++) {
		const struct plan_step *p = &s->plan.steps[i];

		if (p->verb != PLAN_KEEP)
			stack_say(s, "%s: %s %s (%s)", infra_kinds[p->res].say, plan_verbs[p->verb],
				  p->name, p->why);
		r = do_step(s, p, e);
		if (r < 0)
			ignore_result(err_wrap(e, "%s %s", infra_kinds[p->res].say, p->name));
	}
	return r < 0 ? r : put_outputs(s, e);
}
