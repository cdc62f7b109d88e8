/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "host/aws/iam.h"
#include "host/aws/ops.h"
#include "host/aws/s3.h"
#include "host/aws/sigv4.h"
#include "host/infra/stack.h"
#include "lib/str.h"

/* What is wanted, and what is there of it. What sandbox.yaml gives is not looked at: who uses it may not be allowed to. */

static const char *last_part(const char *s, char sep)
{
	const char *p = strrchr(s, sep);

	return p ? p + 1 : s;
}

/* "<project>-<stack>-<8 hex digits>", as the Python project does; in the bytes that a bucket's name may have. */
static int new_bucket_name(struct stack *s)
{
	uint32_t random;
	char *c = s->bucket;
	int r;

	if (getrandom(&random, sizeof(random), 0) != (ssize_t)sizeof(random))
		return -EIO;
	r = str_format(s->bucket, sizeof(s->bucket), "%.26s-%.26s-%08x", s->c->text[INFRA_PROJECT],
		       s->c->text[INFRA_STACK], random);
	for (; *c; c++) {
		if (*c >= 'A' && *c <= 'Z')
			*c = (char)(*c | 0x20);
		if (*c == '_' || *c == '.')
			*c = '-';
	}
	if (s->bucket[0] == '-')
		s->bucket[0] = '0';
	return r;
}

static void want(struct stack *s, enum infra_res res, enum infra_text given, const char *name)
{
	const char *g = given == INFRA_TEXT_COUNT ? "" : s->c->text[given];

	s->want[res] = (struct plan_want){ true, *g != '\0', *g ? g : name };
}

/* The texts are fixed in size, and what goes into them has been checked to fit. */
void stack_names(struct stack *s)
{
	char *const *t = s->c->text;
	bool own_connector = s->c->egress && !*t[INFRA_CONNECTOR_ARN];

	ignore_result(str_format(s->operator_name, sizeof(s->operator_name), "%s-operator",
				 t[INFRA_EGRESS_NAME]));
	ignore_result(str_format(s->image_arn, sizeof(s->image_arn),
				 "arn:%s:lambda:%s:%s:microvm-image:%s", s->me.partition,
				 t[INFRA_REGION], s->me.account, t[INFRA_IMAGE_NAME]));
	ignore_result(str_format(s->role_arn, sizeof(s->role_arn), "%s", t[INFRA_ROLE_ARN]));
	ignore_result(str_format(s->build_role_arn, sizeof(s->build_role_arn), "%s",
				 t[INFRA_BUILD_ROLE_ARN]));
	ignore_result(
		str_format(s->operator_arn, sizeof(s->operator_arn), "%s", t[INFRA_OPERATOR_ARN]));
	ignore_result(str_format(s->connector, sizeof(s->connector), "%s", t[INFRA_CONNECTOR_ARN]));
	ignore_result(str_format(s->group, sizeof(s->group), "%s", t[INFRA_SECURITY_GROUP]));
	if (*t[INFRA_BUCKET] || s->rec[RES_BUCKET].id)
		ignore_result(
			str_format(s->bucket, sizeof(s->bucket), "%s",
				   *t[INFRA_BUCKET] ? t[INFRA_BUCKET] : s->rec[RES_BUCKET].id));
	want(s, RES_ROLE, INFRA_ROLE_ARN, t[INFRA_ROLE_NAME]);
	want(s, RES_BUILD_ROLE, INFRA_BUILD_ROLE_ARN, t[INFRA_BUILD_ROLE_NAME]);
	want(s, RES_BUCKET, INFRA_BUCKET, s->bucket);
	want(s, RES_OBJECT, INFRA_TEXT_COUNT, s->guest.key);
	want(s, RES_IMAGE, INFRA_TEXT_COUNT, t[INFRA_IMAGE_NAME]);
	want(s, RES_GROUP, INFRA_SECURITY_GROUP, t[INFRA_EGRESS_NAME]);
	want(s, RES_OPERATOR, INFRA_OPERATOR_ARN, s->operator_name);
	want(s, RES_CONNECTOR, INFRA_CONNECTOR_ARN, t[INFRA_EGRESS_NAME]);
	s->want[RES_GROUP].wanted = s->want[RES_OPERATOR].wanted = own_connector;
	s->want[RES_CONNECTOR].wanted = s->c->egress;
}

/* --- one of each --- */

/* R of looking whether what is there has our tag: asked only of what is recorded as about to be made. */
static int take_tag(struct stack *s, enum infra_res res, int r)
{
	if (r == 0)
		stack_disown(s, res);
	return r < 0 ? r : 0;
}

static int look_role(struct stack *s, enum infra_res res, const char *name, struct err *e)
{
	char *arn = stack_role_arn(s, res);
	struct plan_have *h = &s->have[res];
	const char *tag;
	struct iam_role role;
	int r = iam_get_role(s->a, name, &role, e);

	if (r == -ENOENT)
		return 0;
	if (r == 0 && str_format(arn, STACK_ARN_MAX, "%s", role.arn) < 0)
		r = err_set(e, ERR_INTERNAL, EBADMSG, "the ARN of role %s is too long", name);
	if (r == 0)
		h->state = PLAN_READY;
	tag = cJSON_GetStringValue(jsn_get(role.tags, STACK_TAG));
	if (r == 0 && s->rec[res].creating && (!tag || strcmp(tag, s->key) != 0))
		stack_disown(s, res);
	if (r == 0 && stack_ours(s, res) && s->want[res].name &&
	    strcmp(s->want[res].name, name) == 0 && (res != RES_OPERATOR || s->group[0]))
		r = stack_role_differs(s, res, role.trust, &h->differs, e);
	iam_role_done(&role);
	return r;
}

static int look_bucket(struct stack *s, const char *name, struct err *e)
{
	struct plan_have *h = &s->have[RES_BUCKET];
	char sha[STACK_SHA_LEN + 1];
	int r = s3_head_bucket(s->a, name, s->me.account, e);

	if (r == -ENOENT)
		return 0;
	if (r < 0)
		return r;
	h->state = PLAN_READY;
	if (stack_bucket_settings(s, sha) < 0)
		return err_set(e, ERR_INTERNAL, ENOMEM, "the bucket's settings");
	if (strcmp(sha, stack_attr_of(s, RES_BUCKET, "settings")) != 0)
		h->differs = "its settings differ";
	return 0;
}

static int look_object(struct stack *s, const char *key, struct err *e)
{
	int r = *s->bucket ? s3_head_object(s->a, s->bucket, s->me.account, key, e) : -ENOENT;

	if (r == 0)
		s->have[RES_OBJECT].state = PLAN_READY;
	return r == -ENOENT ? 0 : r;
}

static enum plan_state image_state(const char *state)
{
	static const struct {
		const char *word;
		enum plan_state state;
	} table[] = { { "CREATING", PLAN_BUSY },
		      { "UPDATING", PLAN_BUSY },
		      { "CREATE_FAILED", PLAN_FAILED },
		      { "DELETING", PLAN_DELETING },
		      { "DELETED", PLAN_NONE } };

	for (size_t i = 0; state && i < ARRAY_LEN(table); i++)
		if (strcmp(table[i].word, state) == 0)
			return table[i].state;
	return PLAN_READY;
}

static int look_image(struct stack *s, const char *arn, struct err *e)
{
	struct plan_have *h = &s->have[RES_IMAGE];
	struct aws_answer w;
	AUTO_JSN *params = cJSON_CreateObject();
	const char *state, *version, *built;
	int r;

	if (!params || !jsn_add_str(params, "imageIdentifier", arn))
		return err_set(e, ERR_INTERNAL, ENOMEM, "GetMicrovmImage");
	r = ops_call(s->a, OP_GET_MICROVM_IMAGE, params, &w, e);
	if (r == 0 && s->rec[RES_IMAGE].creating)
		r = take_tag(s, RES_IMAGE, stack_tagged(s, arn, e));
	if (r == 0) {
		state = cJSON_GetStringValue(jsn_get(w.json, "state"));
		version = cJSON_GetStringValue(jsn_get(w.json, "latestActiveImageVersion"));
		h->state = image_state(state);
		ignore_result(
			str_format(s->version, sizeof(s->version), "%s", version ? version : ""));
		built = stack_attr_of(s, RES_IMAGE, "building");
		if (!*built)
			built = stack_attr_of(s, RES_IMAGE, "sha256");
		if (state && strcmp(state, "UPDATE_FAILED") == 0)
			h->differs = "its last build has failed";
		else if (*built && *s->sha && strcmp(built, s->sha) != 0)
			h->differs =
				"the guest folder, its base image or the build role has changed";
		else if (h->state == PLAN_READY)
			h->creating = false; /* it was only not told any more that it is made */
	}
	aws_answer_done(&w);
	return r == -ENOENT ? 0 : r;
}

static int look_group(struct stack *s, const char *id, struct err *e)
{
	char found[EC2_ID_MAX];
	const char *name = s->c->text[INFRA_EGRESS_NAME];
	int r = -ENOENT;

	if (id && str_starts(id, "sg-"))
		r = ec2_find_group(s->a, NULL, NULL, id, NULL, NULL, found, e);
	else if (s->rec[RES_GROUP].creating)
		r = ec2_find_group(s->a, s->vpc, name, NULL, "tag:" STACK_TAG, s->key, found, e);
	if (r == -ENOENT && !(id && str_starts(id, "sg-"))) {
		r = ec2_find_group(s->a, s->vpc, name, NULL, NULL, NULL, found, e);
		if (r == 0)
			stack_disown(s, RES_GROUP);
	}

	if (r == 0) {
		ignore_result(str_format(s->group, sizeof(s->group), "%s", found)); /* fits */
		s->have[RES_GROUP].state = PLAN_READY;
	}
	return r == -ENOENT ? 0 : r;
}

/* Whether A, an array of texts, has the same members as B. */
static bool same_set(const cJSON *a, const cJSON *b)
{
	const cJSON *x, *y;

	if (cJSON_GetArraySize(a) != cJSON_GetArraySize(b))
		return false;
	cJSON_ArrayForEach(x, a)
	{
		bool found = false;

		cJSON_ArrayForEach(y, b) found |= cJSON_IsString(x) && cJSON_IsString(y) &&
						  strcmp(x->valuestring, y->valuestring) == 0;
		if (!found)
			return false;
	}
	return true;
}

static enum plan_state connector_state(const char *state)
{
	if (!state || strcmp(state, "PENDING") == 0)
		return PLAN_BUSY;
	if (strcmp(state, "FAILED") == 0)
		return PLAN_FAILED;
	return strcmp(state, "DELETING") == 0 ? PLAN_DELETING : PLAN_READY;
}

static void compare_connector(struct stack *s, const cJSON *j)
{
	struct plan_have *h = &s->have[RES_CONNECTOR];
	const cJSON *v = jsn_get(jsn_get(j, "Configuration"), "VpcEgressConfiguration");
	const cJSON *groups = jsn_get(v, "SecurityGroupIds");
	const char *role = cJSON_GetStringValue(jsn_get(j, "OperatorRole"));
	const cJSON *first = groups ? groups->child : NULL;

	if (s->subnets && v && !same_set(jsn_get(v, "SubnetIds"), s->subnets))
		h->differs = "its subnets differ";
	else if (*s->group && v &&
		 (!first || !cJSON_IsString(first) || first->next ||
		  strcmp(first->valuestring, s->group) != 0))
		h->differs = "its security group differs";
	else if (*s->operator_arn && role && strcmp(role, s->operator_arn) != 0)
		h->differs = "its operator role differs";
}

/* By ARN, or by its name. */
static int look_connector(struct stack *s, const char *id, struct err *e)
{
	struct plan_have *h = &s->have[RES_CONNECTOR];
	AUTO_JSN *params = cJSON_CreateObject();
	struct aws_answer w;
	const char *arn;
	int r;

	if (!params || !jsn_add_str(params, "Identifier", id))
		return err_set(e, ERR_INTERNAL, ENOMEM, "GetNetworkConnector");
	r = ops_call(s->a, OP_GET_NETWORK_CONNECTOR, params, &w, e);
	arn = cJSON_GetStringValue(jsn_get(w.json, "Arn"));
	if (r == 0) {
		h->state = connector_state(cJSON_GetStringValue(jsn_get(w.json, "State")));
		ignore_result(str_format(s->connector, sizeof(s->connector), "%s", arn ? arn : id));
		if (s->rec[RES_CONNECTOR].creating)
			r = take_tag(s, RES_CONNECTOR, stack_tagged(s, s->connector, e));
		if (stack_ours(s, RES_CONNECTOR) && h->state == PLAN_READY)
			compare_connector(s, w.json);
	}
	aws_answer_done(&w);
	return r == -ENOENT ? 0 : r;
}

/* --- all of them --- */

static bool is_renamed(const struct stack *s, enum infra_res res)
{
	const char *id = s->rec[res].id, *name = s->want[res].name, *attr;

	if (!id || !s->want[res].wanted || s->want[res].given)
		return false;
	switch (res) {
	case RES_ROLE:
	case RES_BUILD_ROLE:
	case RES_OPERATOR:
		return strcmp(id, name) != 0;
	case RES_IMAGE:
		return strcmp(last_part(id, ':'), name) != 0;
	case RES_GROUP:
	case RES_CONNECTOR:
		attr = stack_attr_of(s, res, "name");
		return *attr && strcmp(attr, name) != 0;
	case RES_BUCKET:
	case RES_OBJECT:
	case RES_COUNT:
		break;
	}
	return false;
}

int stack_look_one(struct stack *s, enum infra_res res, struct err *e)
{
	struct plan_have *h = &s->have[res];
	const struct infra_record *rec = &s->rec[res];
	bool use = rec->id && (!h->renamed || !s->want[res].wanted);
	const char *id = use ? rec->id : s->want[res].name;

	switch (res) {
	case RES_ROLE:
	case RES_BUILD_ROLE:
	case RES_OPERATOR:
		return look_role(s, res, last_part(id, '/'), e);
	case RES_BUCKET:
		return id && *id ? look_bucket(s, id, e) : 0;
	case RES_OBJECT:
		return id && *id ? look_object(s, id, e) : 0;
	case RES_IMAGE:
		return look_image(s, use ? id : s->image_arn, e);
	case RES_GROUP:
		return look_group(s, use ? id : NULL, e);
	case RES_CONNECTOR:
		return look_connector(s, id, e);
	case RES_COUNT:
		break;
	}
	return 0;
}

static void take_record(struct stack *s, enum infra_res res)
{
	const struct infra_record *rec = &s->rec[res];

	s->have[res] = (struct plan_have){ .recorded = rec->id,
					   .managed = rec->managed,
					   .creating = rec->creating,
					   .name = rec->id };
	s->have[res].renamed = is_renamed(s, res);
}

static int add_subnets(struct stack *s, const char *name, struct err *e)
{
	AUTO_JSN *found = NULL;
	cJSON *v;
	int r;

	if (name && str_starts(name, "subnet-") && ec2_is_id(name)) {
		v = cJSON_CreateString(name);
		return v && cJSON_AddItemToArray(s->subnets, v)
			       ? 0
			       : err_set(e, ERR_INTERNAL, ENOMEM, "the subnets");
	}
	r = ec2_subnets(s->a, s->vpc, name, &found, e);
	if (r == 0 && !found->child)
		return err_set(e, ERR_NOT_FOUND, 0, "%s has no subnet%s%s", s->vpc,
			       name ? " named " : "", name ? name : "");
	while (r == 0 && (v = cJSON_DetachItemFromArray(found, 0)) != NULL)
		ignore_result(cJSON_AddItemToArray(s->subnets, v) ? 0 : -1); /* neither is NULL */
	return r;
}

static int look_vpc(struct stack *s, struct err *e)
{
	int r = str_format(s->vpc, sizeof(s->vpc), "%s", s->c->text[INFRA_VPC]); /* fits */

	if (!*s->vpc)
		r = ec2_default_vpc(s->a, s->vpc, e);
	if (r == -ENOENT)
		return err_set(e, ERR_NOT_FOUND, 0,
			       "there is no default VPC: give network.egress.vpc_id");
	s->subnets = cJSON_CreateArray();
	if (r == 0 && !s->subnets)
		r = err_set(e, ERR_INTERNAL, ENOMEM, "the subnets");
	for (size_t i = 0; r == 0 && i < s->c->subnets.len; i++)
		r = add_subnets(s, s->c->subnets.all[i], e);
	if (r == 0 && !s->c->subnets.len)
		r = add_subnets(s, NULL, e);
	if (r == 0 && cJSON_GetArraySize(s->subnets) > INFRA_LIST_MAX)
		r = err_set(
			e, ERR_TOO_BIG, 0,
			"%d subnets are more than a connector takes (%d): give network.egress.subnet_ids",
			cJSON_GetArraySize(s->subnets), INFRA_LIST_MAX);
	return r;
}

/* The guest folder, and the hash of all that decides what a build of it becomes. */
static int read_guest(struct stack *s, struct err *e)
{
	AUTO_BUF all;
	char *dir;
	int r = infra_guest_dir(s->c, &dir, e);

	buf_init(&all, 4096);
	if (r < 0)
		return r;
	guestdir_done(&s->guest);
	r = guestdir_read(dir, s->c->text[INFRA_IMAGE_NAME], NULL, &s->guest, e);
	free(dir);
	if (r < 0)
		return r;
	r = buf_addf(&all, "%s\n%s\n%s\n%s\n", s->guest.sha, s->c->text[INFRA_BASE_ARN],
		     s->c->text[INFRA_BASE_VERSION], s->want[RES_BUILD_ROLE].name);
	if (r < 0)
		return err_set(e, ERR_INTERNAL, -r, "the guest folder");
	sigv4_hash(all.p, all.len, s->sha);
	return 0;
}

int stack_plan_up(struct stack *s, bool rebuild, struct err *e)
{
	/* the connector's roles and itself depend on what is found of the group */
	static const enum infra_res order[] = { RES_ROLE,  RES_BUCKET,	 RES_BUILD_ROLE, RES_IMAGE,
						RES_GROUP, RES_OPERATOR, RES_CONNECTOR };
	int r;

	stack_names(s);
	r = read_guest(s, e);
	if (r == 0 && !*s->bucket && new_bucket_name(s) < 0)
		r = err_set(e, ERR_INTERNAL, EIO, "a name for the bucket");
	if (r == 0 && s->want[RES_GROUP].wanted)
		r = look_vpc(s, e);
	for (size_t i = 0; r == 0 && i < ARRAY_LEN(order); i++) {
		enum infra_res res = order[i];

		take_record(s, res);
		if (s->want[res].given)
			s->have[res].state = PLAN_READY;
		else if (s->want[res].wanted)
			r = stack_look_one(s, res, e);
	}
	take_record(s, RES_OBJECT);
	if (r == 0 && (s->want[RES_BUCKET].given || s->have[RES_BUCKET].state == PLAN_READY))
		r = look_object(s, s->guest.key, e);
	if (r == 0)
		plan_up(s->want, s->have, rebuild, &s->plan);
	return r;
}

int stack_plan_destroy(struct stack *s, bool force, struct err *e)
{
	bool live = false;
	int r = 0;

	stack_names(s);
	for (size_t i = 0; i < RES_COUNT; i++)
		take_record(s, (enum infra_res)i);
	if (stack_ours(s, RES_IMAGE) && !force) {
		r = stack_image_live(s, e);
		live = r == 1;
	}
	if (r >= 0)
		plan_destroy(s->have, live, &s->plan);
	return r < 0 ? r : 0;
}
