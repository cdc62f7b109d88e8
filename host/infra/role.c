/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "host/aws/iam.h"
#include "host/infra/stack.h"
#include "lib/str.h"

/*
 * The three roles. Each has a trust policy and inline policies under fixed names, which are put anew whenever one differs; what is
 * attached to the execution role follows role.extra_policy_arns.
 */

#define LOGS	 "agent-sandbox-logs"
#define READ	 "agent-sandbox-s3-read"
#define OPERATOR "agent-sandbox-network-connector"

static int make_texts(const struct stack *s, enum infra_res res, struct role_texts *ret)
{
	const char *subnets[INFRA_LIST_MAX];
	size_t n = 0;
	const cJSON *v;
	int r;

	if (res == RES_OPERATOR) {
		cJSON_ArrayForEach(v, s->subnets) if (n < INFRA_LIST_MAX) subnets[n++] =
			v->valuestring;
		r = policy_operator_trust(&ret->trust);
		return r < 0 ? r : policy_operator(&s->place, subnets, n, s->group, &ret->own);
	}
	r = policy_trust(&s->place, &ret->trust);
	if (r == 0)
		r = policy_logs(&s->place,
				res == RES_BUILD_ROLE ? "*" : s->c->text[INFRA_IMAGE_NAME],
				&ret->logs);
	if (r == 0 && res == RES_BUILD_ROLE)
		r = policy_read(&s->place, s->bucket, &ret->own);
	return r;
}

int stack_role_texts(const struct stack *s, enum infra_res res, struct role_texts *ret,
		     struct err *e)
{
	int r;

	ret->policy = res == RES_BUILD_ROLE ? READ : OPERATOR;
	buf_init(&ret->trust, POLICY_MAX);
	buf_init(&ret->own, POLICY_MAX);
	buf_init(&ret->logs, POLICY_MAX);
	r = make_texts(s, res, ret);
	return r < 0 ? err_set(e, ERR_INTERNAL, -r, "the policies of %s", s->want[res].name) : 0;
}

void role_texts_done(struct role_texts *t)
{
	buf_done(&t->trust);
	buf_done(&t->own);
	buf_done(&t->logs);
}

/* 1: the same. */
static int same(struct stack *s, const char *role, const char *policy, const struct buf *text,
		struct err *e)
{
	AUTO_JSN *is = NULL, *want = text->len ? cJSON_Parse(text->p) : NULL;
	int r = want ? iam_get_policy(s->a, role, policy, &is, e) : 1;

	if (r == -ENOENT)
		return 0;
	return r == 0 ? cJSON_Compare(is, want, true) : r;
}

static bool has(const cJSON *list, const char *text)
{
	const cJSON *v;

	cJSON_ArrayForEach(v, list) if (strcmp(v->valuestring, text) == 0) return true;
	return false;
}

static bool wanted(const struct stack *s, const char *arn)
{
	for (size_t i = 0; i < s->c->policies.len; i++)
		if (strcmp(s->c->policies.all[i], arn) == 0)
			return true;
	return false;
}

/* What is attached and should not be goes, what is missing comes. COUNT: only tell how many those are. */
static int attachments(struct stack *s, bool count, struct err *e)
{
	const char *role = s->want[RES_ROLE].name;
	AUTO_JSN *list = NULL;
	const cJSON *v;
	int n = 0, r = iam_list_attached(s->a, role, &list, e);

	cJSON_ArrayForEach(v, list) if (r == 0 && !wanted(s, v->valuestring))
	{
		n++;
		r = count ? 0 : iam_detach(s->a, role, v->valuestring, e);
	}
	for (size_t i = 0; r == 0 && i < s->c->policies.len; i++)
		if (!has(list, s->c->policies.all[i])) {
			n++;
			r = count ? 0 : iam_attach(s->a, role, s->c->policies.all[i], e);
		}
	return r < 0 ? r : count ? n : 0;
}

int stack_role_differs(struct stack *s, enum infra_res res, const cJSON *trust,
		       const char **ret_why, struct err *e)
{
	const char *role = s->want[res].name;
	struct role_texts t;
	AUTO_JSN *want = NULL;
	int r = stack_role_texts(s, res, &t, e);

	if (r == 0) {
		want = cJSON_Parse(t.trust.p);
		if (!cJSON_Compare(want, trust, true))
			*ret_why = "its trust policy differs";
		r = same(s, role, t.policy, &t.own, e);
		if (r == 1)
			r = same(s, role, LOGS, &t.logs, e);
		if (r == 0)
			*ret_why = "its policies differ";
	}
	if (r == 1 && res == RES_ROLE) {
		r = attachments(s, true, e);
		if (r > 0)
			*ret_why = "its attached policies differ";
	}
	role_texts_done(&t);
	return r < 0 ? r : 0;
}

int stack_role_settle(struct stack *s, enum infra_res res, struct err *e)
{
	const char *role = s->want[res].name;
	struct role_texts t;
	int r = stack_role_texts(s, res, &t, e);

	if (r == 0)
		r = iam_set_trust(s->a, role, t.trust.p, e);
	if (r == 0 && t.own.len)
		r = iam_put_policy(s->a, role, t.policy, t.own.p, e);
	if (r == 0 && t.logs.len)
		r = iam_put_policy(s->a, role, LOGS, t.logs.p, e);
	role_texts_done(&t);
	return r == 0 && res == RES_ROLE ? attachments(s, false, e) : r;
}
