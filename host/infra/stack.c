/* SPDX-License-Identifier: Apache-2.0 */
#include "host/infra/stack.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host/aws/poll.h"
#include "lib/fd.h"
#include "lib/str.h"

int stack_open(struct stack *s, const struct infra_config *c, struct err *e)
{
	int r;

	*s = (struct stack){ .c = c, .lock = -1 };
	r = str_format(s->key, sizeof(s->key), "%s/%s", c->text[INFRA_PROJECT],
		       c->text[INFRA_STACK]);
	if (r < 0)
		return err_set(e, ERR_INVALID, -r, "%s", c->file);
	r = infra_stack_lock(s->key, &s->lock, e);
	for (size_t i = 0; r == 0 && i < RES_COUNT; i++)
		r = infra_record_get(s->key, (enum infra_res)i, &s->rec[i], e);
	if (r == 0)
		r = aws_session(c->text[INFRA_REGION], &s->a, e);
	if (r == 0)
		r = query_identity(s->a, &s->me, e);
	s->place = (struct policy_place){ s->me.partition, s->me.account, c->text[INFRA_REGION] };
	return r;
}

void stack_done(struct stack *s)
{
	for (size_t i = 0; i < RES_COUNT; i++)
		infra_record_done(&s->rec[i]);
	cJSON_Delete(s->subnets);
	guestdir_done(&s->guest);
	fd_close(&s->lock);
}

void stack_say(const struct stack *s, const char *fmt, ...)
{
	char line[400];
	va_list ap;

	if (!s->say)
		return;
	va_start(ap, fmt);
	(void)vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	s->say(s->say_arg, line);
}

int stack_attr(struct stack *s, enum infra_res res, const char *name, const char *value)
{
	cJSON *attrs = s->rec[res].attrs;

	cJSON_DeleteItemFromObjectCaseSensitive(attrs, name);
	return jsn_add_str(attrs, name, value) ? 0 : -ENOMEM;
}

const char *stack_attr_of(const struct stack *s, enum infra_res res, const char *name)
{
	const char *v = cJSON_GetStringValue(jsn_get(s->rec[res].attrs, name));

	return v ? v : "";
}

int stack_record(struct stack *s, enum infra_res res, const char *id, bool managed, bool creating,
		 struct err *e)
{
	struct infra_record *r = &s->rec[res];
	char *copy = strdup(id); /* ID may be the old one */

	if (!copy)
		return err_set(e, ERR_INTERNAL, ENOMEM, "recording %s", id);
	free(r->id);
	r->id = copy;
	r->managed = managed;
	r->creating = creating;
	return infra_record_put(s->key, res, r, e);
}

int stack_drop(struct stack *s, enum infra_res res, struct err *e)
{
	int r = infra_record_drop(s->key, res, e);

	if (r < 0) /* and the plan's names still point to what is recorded */
		return r;
	infra_record_done(&s->rec[res]);
	s->rec[res].attrs = cJSON_CreateObject();
	return s->rec[res].attrs ? 0 : err_set(e, ERR_INTERNAL, ENOMEM, "%s", s->key);
}

int stack_tagged(struct stack *s, const char *arn, struct err *e)
{
	AUTO_JSN *p = cJSON_CreateObject();
	struct aws_answer w = { .attempts = 0 };
	const char *tag;
	int r = p && jsn_add_str(p, "Resource", arn) ? ops_call(s->a, OP_LIST_TAGS, p, &w, e)
						     : err_set(e, ERR_INTERNAL, ENOMEM, "%s", arn);

	tag = cJSON_GetStringValue(jsn_get(jsn_get(w.json, "Tags"), STACK_TAG));
	if (r == 0)
		r = tag && strcmp(tag, s->key) == 0;
	aws_answer_done(&w);
	return r;
}

void stack_disown(struct stack *s, enum infra_res res)
{
	s->rec[res].managed = s->rec[res].creating = false;
	s->have[res].managed = s->have[res].creating = false;
}

bool stack_ours(const struct stack *s, enum infra_res res)
{
	return s->rec[res].id && s->rec[res].managed;
}

char *stack_role_arn(struct stack *s, enum infra_res res)
{
	return res == RES_ROLE	       ? s->role_arn
	       : res == RES_BUILD_ROLE ? s->build_role_arn
				       : s->operator_arn;
}

struct polled {
	struct stack *s;
	int (*fn)(struct stack *s, void *arg, struct err *e);
	void *arg;
};

static int poll_once(void *arg, struct err *e)
{
	const struct polled *p = arg;

	return p->fn(p->s, p->arg, e);
}

int stack_poll(struct stack *s, int (*fn)(struct stack *s, void *arg, struct err *e), void *arg,
	       int64_t limit_ns, const char *what, struct err *e)
{
	struct polled p = { s, fn, arg };

	return aws_poll(s->a, poll_once, &p, limit_ns, what, e);
}

struct attempt {
	enum aws_op_id op;
	const cJSON *params;
	struct aws_answer *ret;
};

static int try_call(struct stack *s, void *arg, struct err *e)
{
	const struct attempt *t = arg;
	AUTO_JSN *params = cJSON_Duplicate(t->params, true);
	int r;

	aws_answer_done(t->ret);
	r = ops_call(s->a, t->op, params, t->ret, e);
	if (r == -EINVAL && (strstr(e->msg, "ssume") || strstr(e->msg, "unauthorized operation")))
		return 0;
	return r < 0 ? r : 1;
}

int stack_call_with_role(struct stack *s, enum aws_op_id op, const cJSON *params,
			 struct aws_answer *ret, struct err *e)
{
	struct attempt t = { op, params, ret };

	*ret = (struct aws_answer){ .attempts = 0 };
	return stack_poll(s, try_call, &t, STACK_ROLE_NS, "Lambda may take the new role", e);
}
