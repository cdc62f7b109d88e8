/* SPDX-License-Identifier: Apache-2.0 */
#include "host/aws/doctor.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "host/aws/arn.h"
#include "host/aws/aws.h"
#include "host/aws/call.h"
#include "host/net/tls.h"
#include "lib/str.h"

#define TEXT_MAX ERR_MSG_MAX

static int credentials(struct aws *a, int wanted, aws_doctor_fn *fn, void *arg, bool *ret_none)
{
	struct aws_creds c = { .key_id = NULL };
	struct err e = ERR_INIT;
	char text[TEXT_MAX];
	int64_t left;
	int r = creds_find(a, !wanted, &c, &e);

	*ret_none = r == -ENOKEY && !wanted;
	if (*ret_none)
		return 0;
	if (r < 0)
		return fn(arg, "aws-creds", "fail", e.msg);
	left = c.expires_s - aws_now_s();
	/* An access key's id is no secret; its last four are enough to tell one from another. */
	r = str_format(text, sizeof(text), "from %s (key …%s)", c.source,
		       strlen(c.key_id) > 4 ? c.key_id + strlen(c.key_id) - 4 : "");
	if (r == 0 && c.expires_s)
		r = str_format(text + strlen(text), sizeof(text) - strlen(text),
			       ", %s %lld minutes", left > 0 ? "good for" : "expired since",
			       (long long)(left > 0 ? left : -left) / 60);
	aws_creds_done(&c);
	return fn(arg, "aws-creds", r < 0 || (left <= 0 && c.expires_s) ? "warn" : "ok", text);
}

static int region(struct aws *a, int wanted, aws_doctor_fn *fn, void *arg)
{
	struct err e = ERR_INIT;
	char text[TEXT_MAX];
	const char *name;

	if (!wanted && !a->set.region[0])
		return fn(arg, "aws-region", "warn",
			  "none is set: --region, AWS_REGION or the profile's region");
	if (aws_region(a, &name, &e) < 0)
		return fn(arg, "aws-region", "fail", e.msg);
	if (arn_check_region(name, &e) < 0)
		return fn(arg, "aws-region", "warn", e.msg);
	ignore_result(
		str_format(text, sizeof(text), "%s (%s)", name, a->set.region_from)); /* it fits */
	return fn(arg, "aws-region", "ok", text);
}

static int endpoint(struct aws *a, aws_doctor_fn *fn, void *arg)
{
	struct err e = ERR_INIT;
	char text[TEXT_MAX];
	struct tls *t;
	AUTO_BUF url;
	bool own;
	int r;

	buf_init(&url, TEXT_MAX);
	if (a->set.region[0]) {
		if (aws_endpoint(a, &aws_lambda_microvms, a->set.region, &url, &own, &e) < 0)
			return fn(arg, "aws-host", "fail", e.msg);
		ignore_result(str_format(text, sizeof(text), "%s%s", url.p,
					 own ? "" : " (configured)")); /* it fits */
		r = fn(arg, "aws-host", "ok", text);
		if (r)
			return r;
	}
	if (tls_trust(settings_ca_bundle(&a->set), &t, &e) < 0)
		return fn(arg, "aws-tls", "fail", e.msg);
	ignore_result(str_format(text, sizeof(text), "%zu certificates in %.300s", tls_anchors(t),
				 tls_file(t))); /* it fits */
	return fn(arg, "aws-tls", "ok", text);
}

int aws_doctor(aws_doctor_fn *fn, void *arg, int wanted)
{
	struct err e = ERR_INIT;
	struct aws *a;
	bool none = false;
	int r = aws_open(NULL, &a, &e);

	if (r < 0)
		return fn(arg, "aws", "fail", e.msg);
	r = credentials(a, wanted, fn, arg, &none);
	if (r == 0 && none)
		r = fn(arg, "aws", "ok", "no credentials are set up: only local sandboxes");
	if (r == 0 && !none)
		r = region(a, wanted, fn, arg);
	if (r == 0 && !none)
		r = endpoint(a, fn, arg);
	aws_close(a);
	return r;
}
