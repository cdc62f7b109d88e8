/* SPDX-License-Identifier: Apache-2.0 */
#include "host/aws/iam.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "host/aws/aws.h"
#include "host/aws/query.h"
#include "host/aws/xml.h"
#include "lib/buf.h"
#include "lib/str.h"

#define DOCUMENT_MAX (64U << 10)
#define PAGES_MAX    100

void iam_role_done(struct iam_role *r)
{
	free(r->arn);
	cJSON_Delete(r->trust);
	cJSON_Delete(r->tags);
	*r = (struct iam_role){ NULL, NULL, NULL };
}

static int hex(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Documents come percent-encoded (RFC 3986). NULL when S is no JSON then. */
static cJSON *document(const char *s)
{
	AUTO_BUF b;
	int r = 0;

	buf_init(&b, DOCUMENT_MAX);
	for (; s && r == 0 && *s; s++) {
		char c = *s;

		if (c == '%' && hex(s[1]) >= 0 && hex(s[2]) >= 0) {
			c = (char)(hex(s[1]) * 16 + hex(s[2]));
			s += 2;
		}
		r = buf_add(&b, &c, 1);
	}
	return r == 0 && b.len ? jsn_parse(b.p, b.len, NULL) : NULL;
}

static int strange(struct err *e, const char *what)
{
	return err_set(e, ERR_INTERNAL, EBADMSG, "%s: the answer has not what it should", what);
}

static int on_tag(void *arg, const cJSON *c)
{
	const char *key = xml_text(c, "Key"), *value = xml_text(c, "Value");

	return key && value && jsn_add_str(arg, key, value) ? 0 : -EBADMSG;
}

int iam_get_role(struct aws *a, const char *name, struct iam_role *ret, struct err *e)
{
	struct query q;
	struct aws_answer w;
	const cJSON *role;
	const char *arn;
	int r;

	*ret = (struct iam_role){ NULL, NULL, NULL };
	query_begin(&q, &aws_iam, "GetRole");
	query_add(&q, "RoleName", name);
	r = query_call(a, &q, &w, e);
	role = xml_at(w.json, "GetRoleResponse/GetRoleResult/Role");
	arn = xml_text(role, "Arn");
	if (r == 0) {
		ret->trust = document(xml_text(role, "AssumeRolePolicyDocument"));
		ret->arn = arn ? strdup(arn) : NULL;
		ret->tags = cJSON_CreateObject();
		if (!ret->arn || !ret->trust || !ret->tags ||
		    xml_each(xml_at(role, "Tags"), "member", on_tag, ret->tags) < 0) {
			iam_role_done(ret);
			r = strange(e, "GetRole");
		}
	}
	aws_answer_done(&w);
	return r;
}

int iam_create_role(struct aws *a, const char *name, const char *trust, const char *about,
		    const char *tag, const char *tag_value, struct err *e)
{
	struct query q;
	char code[CALL_CODE_MAX];
	int r;

	query_begin(&q, &aws_iam, "CreateRole");
	query_add(&q, "RoleName", name);
	query_add(&q, "AssumeRolePolicyDocument", trust);
	query_add(&q, "Description", about);
	query_add_nth(&q, "Tags.member", 1, "Key", tag);
	query_add_nth(&q, "Tags.member", 1, "Value", tag_value);
	r = query_do(a, &q, code, e);
	return r < 0 && strcmp(code, "EntityAlreadyExists") == 0 ? -EEXIST : r;
}

/* ACTION on ROLE with one or two more parameters. */
static int act(struct aws *a, const char *action, const char *role, const char *name,
	       const char *value, const char *name2, const char *value2, struct err *e)
{
	struct query q;

	query_begin(&q, &aws_iam, action);
	query_add(&q, "RoleName", role);
	query_add(&q, name, value);
	if (name2)
		query_add(&q, name2, value2);
	return query_do(a, &q, NULL, e);
}

int iam_set_trust(struct aws *a, const char *name, const char *trust, struct err *e)
{
	return act(a, "UpdateAssumeRolePolicy", name, "PolicyDocument", trust, NULL, NULL, e);
}

int iam_put_policy(struct aws *a, const char *role, const char *policy, const char *document_text,
		   struct err *e)
{
	return act(a, "PutRolePolicy", role, "PolicyName", policy, "PolicyDocument", document_text,
		   e);
}

int iam_attach(struct aws *a, const char *role, const char *arn, struct err *e)
{
	return act(a, "AttachRolePolicy", role, "PolicyArn", arn, NULL, NULL, e);
}

int iam_detach(struct aws *a, const char *role, const char *arn, struct err *e)
{
	int r = act(a, "DetachRolePolicy", role, "PolicyArn", arn, NULL, NULL, e);

	return r == -ENOENT ? 0 : r;
}

int iam_get_policy(struct aws *a, const char *role, const char *policy, cJSON **ret, struct err *e)
{
	struct query q;
	struct aws_answer w;
	int r;

	query_begin(&q, &aws_iam, "GetRolePolicy");
	query_add(&q, "RoleName", role);
	query_add(&q, "PolicyName", policy);
	r = query_call(a, &q, &w, e);
	if (r == 0) {
		*ret = document(
			xml_text(w.json,
				 "GetRolePolicyResponse/GetRolePolicyResult/PolicyDocument"));
		if (!*ret)
			r = strange(e, "GetRolePolicy");
	}
	aws_answer_done(&w);
	return r;
}

struct listing {
	cJSON *all;
	const char *member; /* NULL: the text itself */
};

static int on_member(void *arg, const cJSON *c)
{
	const struct listing *l = arg;
	const char *s = l->member ? xml_text(c, l->member) : cJSON_GetStringValue(c);
	cJSON *copy = s ? cJSON_CreateString(s) : NULL;

	return copy && cJSON_AddItemToArray(l->all, copy) ? 0 : s ? -ENOMEM : -EBADMSG;
}

/* One page into L. 1: there is more, from MARKER on. */
static int list_page(struct aws *a, const char *action, const char *role, const char *list,
		     struct listing *l, char **marker, struct err *e)
{
	struct query q;
	struct aws_answer w;
	const cJSON *result;
	const char *next;
	int r;

	query_begin(&q, &aws_iam, action);
	query_add(&q, "RoleName", role);
	query_add(&q, "Marker", *marker);
	r = query_call(a, &q, &w, e);
	result = w.json && w.json->child ? w.json->child->child : NULL; /* XResponse/XResult */
	if (r == 0) {
		r = xml_each(xml_at(result, list), "member", on_member, l);
		if (r < 0)
			r = err_set(e, ERR_INTERNAL, -r, "%s", action);
	}
	next = xml_text(result, "Marker");
	if (r == 0 && next && *next) {
		free(*marker);
		*marker = strdup(next);
		r = *marker ? 1 : -ENOMEM;
	}
	aws_answer_done(&w);
	return r;
}

static int list_all(struct aws *a, const char *action, const char *role, const char *list,
		    const char *member, cJSON **ret, struct err *e)
{
	struct listing l = { cJSON_CreateArray(), member };
	char *marker = NULL;
	int r = 1;

	for (int n = 0; r == 1 && n < PAGES_MAX; n++)
		r = l.all ? list_page(a, action, role, list, &l, &marker, e) : -ENOMEM;
	free(marker);
	if (r == 0) {
		*ret = l.all;
		return 0;
	}
	cJSON_Delete(l.all);
	return r == 1 ? err_set(e, ERR_TOO_BIG, 0, "%s has no end", action) : r;
}

int iam_list_attached(struct aws *a, const char *role, cJSON **ret, struct err *e)
{
	return list_all(a, "ListAttachedRolePolicies", role, "AttachedPolicies", "PolicyArn", ret,
			e);
}

int iam_delete_role(struct aws *a, const char *name, struct err *e)
{
	AUTO_JSN *attached = NULL, *inlined = NULL;
	const cJSON *p;
	int r = iam_list_attached(a, name, &attached, e);

	if (r == -ENOENT)
		return 0;
	if (r == 0)
		r = list_all(a, "ListRolePolicies", name, "PolicyNames", NULL, &inlined, e);
	cJSON_ArrayForEach(p, attached) if (r == 0) r = iam_detach(a, name, p->valuestring, e);
	cJSON_ArrayForEach(p, inlined) if (r == 0)
	{
		r = act(a, "DeleteRolePolicy", name, "PolicyName", p->valuestring, NULL, NULL, e);
		r = r == -ENOENT ? 0 : r;
	}
	if (r == 0) {
		struct query q;

		query_begin(&q, &aws_iam, "DeleteRole");
		query_add(&q, "RoleName", name);
		r = query_do(a, &q, NULL, e);
	}
	return r == -ENOENT ? 0 : r;
}
