/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "host/aws/ops.h"
#include "host/infra/stack.h"
#include "lib/str.h"

/* The network connector: made within minutes, and holding the security group's interfaces until it is gone. */

static int no_memory(struct err *e)
{
	return err_set(e, ERR_INTERNAL, ENOMEM, "the network connector");
}

static cJSON *strings(const char *one)
{
	cJSON *a = cJSON_CreateArray(), *s = cJSON_CreateString(one);

	if (a && s && cJSON_AddItemToArray(a, s))
		return a;
	cJSON_Delete(a);
	cJSON_Delete(s);
	return NULL;
}

static cJSON *make_params(const struct stack *s, bool update)
{
	cJSON *p = cJSON_CreateObject(), *v, *tags;
	bool good = p &&
		    (update ? jsn_add_str(p, "Identifier", s->connector)
			    : jsn_add_str(p, "Name", s->c->text[INFRA_EGRESS_NAME])) &&
		    jsn_add_str(p, "OperatorRole", s->operator_arn);

	v = good ? cJSON_AddObjectToObject(p, "Configuration") : NULL;
	v = v ? cJSON_AddObjectToObject(v, "VpcEgressConfiguration") : NULL;
	good = v && cJSON_AddItemToObject(v, "SubnetIds", cJSON_Duplicate(s->subnets, true)) &&
	       cJSON_AddItemToObject(v, "SecurityGroupIds", strings(s->group)) &&
	       jsn_add_str(v, "NetworkProtocol", "IPv4") &&
	       cJSON_AddItemToObject(v, "AssociatedComputeResourceTypes", strings("MicroVm"));
	tags = good && !update ? cJSON_AddObjectToObject(p, "Tags") : NULL;
	if (good && (update || (tags && jsn_add_str(tags, STACK_TAG, s->key))))
		return p;
	cJSON_Delete(p);
	return NULL;
}

static int get(struct stack *s, const char *id, struct aws_answer *ret, struct err *e)
{
	AUTO_JSN *p = cJSON_CreateObject();

	*ret = (struct aws_answer){ .attempts = 0 };
	if (!p || !jsn_add_str(p, "Identifier", id))
		return no_memory(e);
	return ops_call(s->a, OP_GET_NETWORK_CONNECTOR, p, ret, e);
}

/* Somebody was quicker, or the first of two attempts was: 0 when there is one now, which is recorded as whose it is. */
static int exists(struct stack *s, struct err *e)
{
	struct aws_answer w;
	const char *arn;
	int r = get(s, s->c->text[INFRA_EGRESS_NAME], &w, e);

	arn = cJSON_GetStringValue(jsn_get(w.json, "Arn"));
	if (r == 0 && (!arn || str_format(s->connector, sizeof(s->connector), "%s", arn) < 0))
		r = err_set(e, ERR_INTERNAL, EBADMSG, "the connector's ARN");
	aws_answer_done(&w);
	if (r == 0)
		r = stack_tagged(s, s->connector, e);
	if (r == 0)
		stack_disown(s, RES_CONNECTOR);
	return r < 0 ? r : 0;
}

int stack_connector_make(struct stack *s, bool update, struct err *e)
{
	AUTO_JSN *params = NULL;
	struct aws_answer w = { .attempts = 0 };
	const char *arn;
	bool managed;
	int r = 0;

	if (stack_attr(s, RES_CONNECTOR, "name", s->c->text[INFRA_EGRESS_NAME]) < 0)
		return no_memory(e);
	if (!update)
		r = stack_record(s, RES_CONNECTOR, s->c->text[INFRA_EGRESS_NAME], true, true, e);
	params = make_params(s, update);
	if (r == 0 && !params)
		r = no_memory(e);
	if (r == 0) /* which tries the operator role at once */
		r = stack_call_with_role(s,
					 update ? OP_UPDATE_NETWORK_CONNECTOR
						: OP_CREATE_NETWORK_CONNECTOR,
					 params, &w, e);
	arn = cJSON_GetStringValue(jsn_get(w.json, "Arn"));
	if (r == 0 && arn && str_format(s->connector, sizeof(s->connector), "%s", arn) < 0)
		r = err_set(e, ERR_INTERNAL, EBADMSG, "the connector's ARN is too long");
	aws_answer_done(&w);
	if (r == -EBUSY && !update)
		r = exists(s, e);
	managed = stack_ours(s, RES_CONNECTOR);
	if (r == 0)
		r = stack_record(s, RES_CONNECTOR, s->connector, managed, managed && !update, e);
	return r < 0 ? r : stack_connector_wait(s, e);
}

static int active(struct stack *s, void *arg, struct err *e)
{
	struct aws_answer w;
	const char *state, *why, *last;
	int r = get(s, s->connector, &w, e);

	(void)arg;
	state = cJSON_GetStringValue(jsn_get(w.json, "State"));
	last = cJSON_GetStringValue(jsn_get(w.json, "LastUpdateStatus"));
	why = cJSON_GetStringValue(jsn_get(w.json, "StateReason"));
	if (r == 0 && state && strcmp(state, "FAILED") == 0)
		r = err_set(e, ERR_UNAVAILABLE, 0, "the network connector has failed: %.200s",
			    why ? why : "no reason is given");
	else if (r == 0 && last && strcmp(last, "Failed") == 0)
		r = err_set(e, ERR_UNAVAILABLE, 0, "changing the network connector has failed");
	else if (r == 0)
		r = state && strcmp(state, "PENDING") != 0 &&
		    (!last || strcmp(last, "InProgress") != 0);
	aws_answer_done(&w);
	return r;
}

int stack_connector_wait(struct stack *s, struct err *e)
{
	bool managed = stack_ours(s, RES_CONNECTOR);
	int r = stack_poll(s, active, NULL, STACK_GONE_NS, "the network connector works", e);

	return r < 0 ? r : stack_record(s, RES_CONNECTOR, s->connector, managed, false, e);
}

static int gone(struct stack *s, void *arg, struct err *e)
{
	struct aws_answer w;
	const char *state;
	int r = get(s, arg, &w, e);

	state = cJSON_GetStringValue(jsn_get(w.json, "State"));
	if (r == 0 && state && strcmp(state, "DELETE_FAILED") == 0)
		r = err_set(e, ERR_UNAVAILABLE, 0, "deleting the network connector has failed");
	aws_answer_done(&w);
	return r == -ENOENT ? 1 : r;
}

static int ask_to_delete(struct stack *s, void *arg, struct err *e)
{
	AUTO_JSN *p = cJSON_CreateObject();
	struct aws_answer w = { .attempts = 0 };
	int r = p && jsn_add_str(p, "Identifier", arg)
			? ops_call(s->a, OP_DELETE_NETWORK_CONNECTOR, p, &w, e)
			: no_memory(e);

	aws_answer_done(&w);
	return r == 0 || r == -ENOENT ? 1 : r == -EBUSY ? 0 : r;
}

int stack_connector_delete(struct stack *s, struct err *e)
{
	char id[STACK_ARN_MAX];
	int r = str_format(id, sizeof(id), "%s", s->rec[RES_CONNECTOR].id);

	if (r < 0)
		return err_set(e, ERR_INVALID, -r, "the connector's ARN");
	r = stack_poll(s, ask_to_delete, id, STACK_GONE_NS, "the connector may be deleted", e);
	return r < 0 ? r
		     : stack_poll(s, gone, id, STACK_GONE_NS, "the network connector is gone", e);
}
