/* SPDX-License-Identifier: Apache-2.0 */
#include "host/aws/ec2.h"

#include <errno.h>
#include <string.h>

#include "host/aws/query.h"
#include "host/aws/xml.h"
#include "lib/str.h"

#define PAGES_MAX 100

static void filter(struct query *q, unsigned n, const char *name, const char *value)
{
	if (!value || !*value)
		return;
	query_add_nth(q, "Filter", n, "Name", name);
	query_add_nth(q, "Filter", n, "Value.1", value);
}

bool ec2_is_id(const char *s)
{
	size_t n = strspn(s, "-0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ");

	return n && n < EC2_ID_MAX && !s[n];
}

/* The text at PATH below the root into RET; -ENOENT when it is missing. */
static int take_id(const struct aws_answer *w, const char *path, char ret[EC2_ID_MAX],
		   struct err *e)
{
	const char *s = xml_text(w->json, path);

	if (!s || !*s)
		return -ENOENT;
	if (!ec2_is_id(s))
		return err_set(e, ERR_INTERNAL, EBADMSG, "EC2: a strange id in the answer");
	return str_format(ret, EC2_ID_MAX, "%s", s);
}

int ec2_default_vpc(struct aws *a, char ret[EC2_ID_MAX], struct err *e)
{
	struct query q;
	struct aws_answer w;
	int r;

	query_begin(&q, &aws_ec2, "DescribeVpcs");
	filter(&q, 1, "is-default", "true");
	r = query_call(a, &q, &w, e);
	if (r == 0)
		r = take_id(&w, "DescribeVpcsResponse/vpcSet/item/vpcId", ret, e);
	aws_answer_done(&w);
	return r;
}

static int on_subnet(void *arg, const cJSON *item)
{
	const char *id = xml_text(item, "subnetId");
	cJSON *s = id && ec2_is_id(id) ? cJSON_CreateString(id) : NULL;

	return s && cJSON_AddItemToArray(arg, s) ? 0 : -ENOMEM;
}

static int subnets_page(struct aws *a, const char *vpc, const char *name, cJSON *all,
			char token[1024], struct err *e)
{
	struct query q;
	struct aws_answer w;
	const char *next;
	int r;

	query_begin(&q, &aws_ec2, "DescribeSubnets");
	filter(&q, 1, "vpc-id", vpc);
	filter(&q, 2, "tag:Name", name);
	query_add(&q, "NextToken", token);
	r = query_call(a, &q, &w, e);
	if (r == 0) {
		r = xml_each(xml_at(w.json, "DescribeSubnetsResponse/subnetSet"), "item", on_subnet,
			     all);
		if (r < 0)
			r = err_set(e, ERR_INTERNAL, -r, "DescribeSubnets");
	}
	next = xml_text(w.json, "DescribeSubnetsResponse/nextToken");
	if (r == 0 && next && *next) {
		r = str_format(token, 1024, "%s", next);
		r = r < 0 ? err_set(e, ERR_TOO_BIG, -r, "DescribeSubnets") : 1;
	}
	aws_answer_done(&w);
	return r;
}

int ec2_subnets(struct aws *a, const char *vpc, const char *name, cJSON **ret, struct err *e)
{
	char token[1024] = "";
	cJSON *all = cJSON_CreateArray();
	int r = 1;

	for (int n = 0; r == 1 && n < PAGES_MAX; n++)
		r = all ? subnets_page(a, vpc, name, all, token, e) : -ENOMEM;
	if (r == 0) {
		*ret = all;
		return 0;
	}
	cJSON_Delete(all);
	return r == 1 ? err_set(e, ERR_TOO_BIG, 0, "DescribeSubnets has no end") : r;
}

/* Malformed is a name of the file that looks like an id, which EC2 makes no group of. */
static bool is_missing(const char *code)
{
	return strcmp(code, "InvalidGroup.NotFound") == 0 ||
	       strcmp(code, "InvalidGroupId.NotFound") == 0 ||
	       strcmp(code, "InvalidGroupId.Malformed") == 0;
}

int ec2_find_group(struct aws *a, const char *vpc, const char *name, const char *id,
		   const char *tag, const char *tag_value, char ret[EC2_ID_MAX], struct err *e)
{
	struct query q;
	struct aws_answer w;
	int r;

	query_begin(&q, &aws_ec2, "DescribeSecurityGroups");
	query_add(&q, "GroupId.1", id);
	filter(&q, 1, "vpc-id", vpc);
	filter(&q, 2, "group-name", name);
	filter(&q, 3, tag, tag_value);
	r = query_call(a, &q, &w, e);
	if (r < 0 && is_missing(w.code))
		r = -ENOENT;
	if (r == 0)
		r = take_id(&w, "DescribeSecurityGroupsResponse/securityGroupInfo/item/groupId",
			    ret, e);
	aws_answer_done(&w);
	return r;
}

int ec2_create_group(struct aws *a, const char *vpc, const char *name, const char *about,
		     const char *tag, const char *tag_value, char ret[EC2_ID_MAX], struct err *e)
{
	struct query q;
	struct aws_answer w;
	int r;

	query_begin(&q, &aws_ec2, "CreateSecurityGroup");
	query_add(&q, "GroupName", name);
	query_add(&q, "GroupDescription", about);
	query_add(&q, "VpcId", vpc);
	query_add(&q, "TagSpecification.1.ResourceType", "security-group");
	query_add(&q, "TagSpecification.1.Tag.1.Key", "Name");
	query_add(&q, "TagSpecification.1.Tag.1.Value", name);
	query_add(&q, "TagSpecification.1.Tag.2.Key", tag);
	query_add(&q, "TagSpecification.1.Tag.2.Value", tag_value);
	r = query_call(a, &q, &w, e);
	if (r < 0 && strcmp(w.code, "InvalidGroup.Duplicate") == 0)
		r = -EEXIST;
	if (r == 0) {
		r = take_id(&w, "CreateSecurityGroupResponse/groupId", ret, e);
		if (r == -ENOENT)
			r = err_set(e, ERR_INTERNAL, EBADMSG,
				    "CreateSecurityGroup: no id in the answer");
	}
	aws_answer_done(&w);
	return r;
}

int ec2_delete_group(struct aws *a, const char *id, struct err *e)
{
	struct query q;
	char code[CALL_CODE_MAX];
	int r;

	query_begin(&q, &aws_ec2, "DeleteSecurityGroup");
	query_add(&q, "GroupId", id);
	r = query_do(a, &q, code, e);
	if (r < 0 && is_missing(code))
		return 0;
	return r < 0 && strcmp(code, "DependencyViolation") == 0 ? -EBUSY : r;
}
