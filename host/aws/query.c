/* SPDX-License-Identifier: Apache-2.0 */
#include "host/aws/query.h"

#include <errno.h>
#include <string.h>

#include "host/aws/aws.h"
#include "host/aws/sigv4.h"
#include "host/aws/xml.h"
#include "lib/str.h"

#define FORM_MAX (256U << 10)

void query_begin(struct query *q, const struct aws_service *service, const char *action)
{
	const char *version = service == &aws_iam   ? "2010-05-08"
			      : service == &aws_ec2 ? "2016-11-15"
						    : "2011-06-15";

	*q = (struct query){ .service = service, .action = action };
	buf_init(&q->body, FORM_MAX);
	query_add(q, "Action", action);
	query_add(q, "Version", version);
}

void query_add(struct query *q, const char *name, const char *value)
{
	if (!value || !*value || q->failed)
		return;
	q->failed = buf_addf(&q->body, "%s%s=", q->body.len ? "&" : "", name);
	if (q->failed == 0)
		q->failed = sigv4_encode(&q->body, value, strlen(value), "");
}

void query_add_nth(struct query *q, const char *name, unsigned n, const char *rest,
		   const char *value)
{
	char full[128];

	if (str_format(full, sizeof(full), "%s.%u%s%s", name, n, rest ? "." : "",
		       rest ? rest : "") < 0)
		q->failed = -ENAMETOOLONG;
	else
		query_add(q, full, value);
}

/* IAM is one for all regions of a partition, and wants signatures for its home. */
static const char *iam_region(const char *region)
{
	if (str_starts(region, "cn-"))
		return "cn-north-1";
	return str_starts(region, "us-gov-") ? "us-gov-west-1" : "us-east-1";
}

int query_call(struct aws *a, struct query *q, struct aws_answer *ret, struct err *e)
{
	struct aws_call c = { .service = q->service,
			      .what = q->action,
			      .method = "POST",
			      .path = "/",
			      .content_type = "application/x-www-form-urlencoded; charset=utf-8",
			      .xml = true };
	const char *region;
	int r = q->failed;

	*ret = (struct aws_answer){ .attempts = 0 };
	c.body = q->body.p;
	c.body_len = q->body.len;
	if (r < 0)
		r = err_set(e, ERR_INTERNAL, -r, "%s", q->action);
	if (r == 0)
		r = aws_region(a, &region, e);
	if (r == 0) {
		c.region = q->service == &aws_iam ? iam_region(region) : region;
		r = aws_call(a, &c, ret, e);
	}
	buf_done(&q->body);
	return r;
}

int query_do(struct aws *a, struct query *q, char ret_code[CALL_CODE_MAX], struct err *e)
{
	struct aws_answer w;
	int r = query_call(a, q, &w, e);

	if (ret_code)
		ignore_result(str_format(ret_code, CALL_CODE_MAX, "%s", w.code)); /* fits */
	aws_answer_done(&w);
	return r;
}

int query_identity(struct aws *a, struct aws_identity *ret, struct err *e)
{
	struct query q;
	struct aws_answer w;
	const char *account, *arn;
	size_t n;
	int r;

	query_begin(&q, &aws_sts, "GetCallerIdentity");
	r = query_call(a, &q, &w, e);
	account = xml_text(w.json, "GetCallerIdentityResponse/GetCallerIdentityResult/Account");
	arn = xml_text(w.json, "GetCallerIdentityResponse/GetCallerIdentityResult/Arn");
	if (r == 0 && (!account || strspn(account, "0123456789") != 12 || account[12] || !arn ||
		       !str_starts(arn, "arn:")))
		r = err_set(e, ERR_INTERNAL, EBADMSG,
			    "GetCallerIdentity: no account in the answer");
	if (r == 0) {
		n = strspn(arn + 4, "-abcdefghijklmnopqrstuvwxyz");
		if (n == 0 || arn[4 + n] != ':' ||
		    str_format(ret->account, sizeof(ret->account), "%s", account) < 0 ||
		    str_format(ret->partition, sizeof(ret->partition), "%.*s", (int)n, arn + 4) < 0)
			r = err_set(e, ERR_INTERNAL, EBADMSG, "GetCallerIdentity: a strange ARN");
	}
	aws_answer_done(&w);
	return r;
}
