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

/* OWN is what only this role has (under *RET_POLICY), LOGS what it shares; either stays empty when there is none. */
int stack_role_texts(const struct stack *s, enum infra_res res, struct buf *trust, struct buf *own,
		     const char **ret_policy, struct buf *logs)
{
	const char *subnets[INFRA_LIST_MAX];
	size_t n = 0;
	const cJSON *v;
	int r;

	*ret_policy = res == RES_BUILD_ROLE ? READ : OPERATOR;
	if (res == RES_OPERATOR) {
		cJSON_ArrayForEach(v, s->subnets) if (n < INFRA_LIST_MAX) subnets[n++] =
			v->valuestring;
		r = policy_operator_trust(trust);
		return r < 0 ? r : policy_operator(&s->place, subnets, n, s->group, own);
	}
	r = policy_trust(&s->place, trust);
	if (r == 0)
		r = policy_logs(&s->place, s->c->text[INFRA_IMAGE_NAME], logs);
	if (r == 0 && res == RES_BUILD_ROLE)
		r = policy_read(&s->place, s->bucket, own);
	return r;
}

static const char *name_of(const struct stack *s, enum infra_res res)
{
	return s->want[res].name;
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
	const char *role = name_of(s, RES_ROLE);
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
	AUTO_BUF want, own, logs;
	AUTO_JSN *j = NULL;
	const char *policy;
	int r;

	buf_init(&want, POLICY_MAX);
	buf_init(&own, POLICY_MAX);
	buf_init(&logs, POLICY_MAX);
	r = stack_role_texts(s, res, &want, &own, &policy, &logs);
	j = r == 0 ? cJSON_Parse(want.p) : NULL;
	if (!j)
		return err_set(e, ERR_INTERNAL, ENOMEM, "the policies of %s", name_of(s, res));
	if (!cJSON_Compare(j, trust, true))
		*ret_why = "its trust policy differs";
	r = same(s, name_of(s, res), policy, &own, e);
	if (r == 1)
		r = same(s, name_of(s, res), LOGS, &logs, e);
	if (r == 0)
		*ret_why = "its policies differ";
	if (r == 1 && res == RES_ROLE) {
		r = attachments(s, true, e);
		if (r > 0)
			*ret_why = "its attached policies differ";
	}
	return r < 0 ? r : 0;
}

int stack_role_settle(struct stack *s, enum infra_res res, struct err *e)
{
	const char *role = name_of(s, res), *policy;
	AUTO_BUF trust, own, logs;
	int r;

	buf_init(&trust, POLICY_MAX);
	buf_init(&own, POLICY_MAX);
	buf_init(&logs, POLICY_MAX);
	r = stack_role_texts(s, res, &trust, &own, &policy, &logs);
	if (r < 0)
		return err_set(e, ERR_INTERNAL, -r, "the policies of %s", role);
	r = iam_set_trust(s->a, role, trust.p, e);
	if (r == 0 && own.len)
		r = iam_put_policy(s->a, role, policy, own.p, e);
	if (r == 0 && logs.len)
		r = iam_put_policy(s->a, role, LOGS, logs.p, e);
	return r == 0 && res == RES_ROLE ? attachments(s, false, e) : r;
}
