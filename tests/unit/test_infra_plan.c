/* SPDX-License-Identifier: Apache-2.0 */
/* LINK: host/infra/plan.c host/infra/policy.c host/infra/record.c host/state/file.c */
#include <string.h>

#include "host/infra/plan.h"
#include "host/infra/policy.h"
#include "lib/jsn.h"
#include "tap.h"

static struct plan_want want[RES_COUNT];
static struct plan_have have[RES_COUNT];
static struct plan p;

/* Everything of a stack without egress is wanted, made by us and as it should be. */
static void settled(void)
{
	static const char *const names[] = { "exec", "build", "bucket", "key",
					     "img",  "group", "op",	"conn" };

	memset(want, 0, sizeof(want));
	memset(have, 0, sizeof(have));
	for (int i = 0; i < RES_GROUP; i++) {
		want[i] = (struct plan_want){ true, false, names[i] };
		have[i] = (struct plan_have){
			.recorded = true, .managed = true, .name = names[i], .state = PLAN_READY
		};
	}
	for (int i = RES_GROUP; i < RES_COUNT; i++)
		want[i].name = names[i];
}

static const struct plan_step *step(enum infra_res res)
{
	for (size_t i = 0; i < p.len; i++)
		if (p.steps[i].res == res)
			return &p.steps[i];
	return NULL;
}

static const char *verb(enum infra_res res)
{
	const struct plan_step *s = step(res);

	return s ? plan_verbs[s->verb] : "-";
}

static const char *up(enum infra_res res, bool rebuild)
{
	plan_up(want, have, rebuild, &p);
	return verb(res);
}

/* All that can be of one resource, and what comes of it. */
static void transitions(void)
{
	static const struct {
		bool given, recorded, managed, creating, renamed;
		enum plan_state state;
		const char *differs, *verb, *why;
	} table[] = {
		{ 0, 0, 0, 0, 0, PLAN_NONE, NULL, "create", "there is none" },
		{ 0, 0, 0, 0, 0, PLAN_READY, NULL, "adopt", "there already" },
		{ 0, 0, 0, 0, 0, PLAN_READY, "x", "adopt", "there already" },
		{ 0, 0, 0, 0, 0, PLAN_BUSY, NULL, "wait", "being made" },
		{ 0, 0, 0, 0, 0, PLAN_DELETING, NULL, "replace", "being deleted" },
		{ 0, 0, 0, 0, 0, PLAN_FAILED, NULL, "refuse", "not this stack's" },
		{ 0, 1, 1, 0, 0, PLAN_READY, NULL, "keep", "as it should be" },
		{ 0, 1, 1, 0, 0, PLAN_READY, "x", "update", "x" },
		{ 0, 1, 1, 1, 0, PLAN_READY, NULL, "update", "in the middle" },
		{ 0, 1, 1, 1, 0, PLAN_NONE, NULL, "create", "before it was made" },
		{ 0, 1, 1, 1, 0, PLAN_BUSY, NULL, "wait", "being made" },
		{ 0, 1, 1, 0, 0, PLAN_NONE, NULL, "create", "gone from AWS" },
		{ 0, 1, 1, 0, 0, PLAN_FAILED, NULL, "replace", "has failed" },
		{ 0, 1, 1, 0, 0, PLAN_DELETING, NULL, "replace", "being deleted" },
		{ 0, 1, 1, 0, 1, PLAN_NONE, NULL, "refuse", "another name" },
		{ 0, 1, 0, 0, 0, PLAN_READY, "x", "adopt", "before this stack" },
		{ 0, 1, 0, 0, 0, PLAN_NONE, NULL, "create", "gone from AWS" },
		{ 0, 1, 0, 0, 0, PLAN_FAILED, NULL, "refuse", "not this stack's" },
		{ 0, 1, 0, 0, 1, PLAN_NONE, NULL, "create", "there is none" },
		{ 1, 0, 0, 0, 0, PLAN_READY, NULL, "reuse", "gives it" },
		{ 1, 0, 0, 0, 0, PLAN_NONE, NULL, "refuse", "does not exist" },
		{ 1, 1, 0, 0, 0, PLAN_READY, NULL, "reuse", "gives it" },
		{ 1, 1, 1, 0, 0, PLAN_READY, NULL, "refuse", "another name" },
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		settled();
		want[RES_BUCKET].given = table[i].given;
		have[RES_BUCKET] = (struct plan_have){ .recorded = table[i].recorded,
						       .managed = table[i].managed,
						       .creating = table[i].creating,
						       .renamed = table[i].renamed,
						       .state = table[i].state,
						       .differs = table[i].differs };
		printf("# %zu\n", i);
		ok_str(up(RES_BUCKET, false), table[i].verb, table[i].why);
		ok(strstr(step(RES_BUCKET)->why, table[i].why), "  for the right reason: %s",
		   step(RES_BUCKET)->why);
		ok(!plan_refusal(&p) == (strcmp(table[i].verb, "refuse") != 0),
		   "  and up refuses only then");
	}
}

static void image(void)
{
	settled();
	ok_str(up(RES_OBJECT, false), "-", "without a build nothing is uploaded");
	ok_int(plan_changes(&p), 0, "and nothing is to do");
	ok_str(up(RES_IMAGE, true), "update", "--rebuild");
	ok_str(verb(RES_OBJECT), "keep", "of the same bytes");
	ok_str(verb(RES_ROLE), "keep", "touches only the image");
	ok(step(RES_OBJECT) < step(RES_IMAGE), "the upload comes before the build");
	have[RES_OBJECT].state = PLAN_NONE;
	have[RES_IMAGE].differs = "the guest folder has changed";
	ok_str(up(RES_OBJECT, false), "upload", "of other bytes");
	ok_int(plan_changes(&p), 2, "two changes");
	have[RES_IMAGE] = (struct plan_have){ .state = PLAN_READY };
	ok_str(up(RES_IMAGE, false), "adopt", "an image of somebody else's is not built");
	ok_str(verb(RES_OBJECT), "-", "so nothing is uploaded");
	ok_str(up(RES_IMAGE, true), "update", "unless one says so");
}

static void egress(void)
{
	settled();
	for (int i = RES_GROUP; i < RES_COUNT; i++)
		want[i].wanted = true;
	ok_str(up(RES_CONNECTOR, false), "create", "egress is new");
	ok(step(RES_GROUP) < step(RES_OPERATOR) && step(RES_OPERATOR) < step(RES_CONNECTOR),
	   "what it hangs on comes first");
	for (int i = RES_GROUP; i < RES_COUNT; i++) {
		have[i] = (struct plan_have){ .recorded = true,
					      .managed = i != RES_GROUP,
					      .name = "n",
					      .state = PLAN_READY };
		want[i].wanted = false;
	}
	ok_str(up(RES_CONNECTOR, false), "delete", "egress is no longer wanted");
	ok_str(verb(RES_OPERATOR), "delete", "the operator role goes");
	ok_str(verb(RES_GROUP), "forget", "an adopted group stays");
	ok(step(RES_CONNECTOR) < step(RES_OPERATOR) && step(RES_ROLE) < step(RES_CONNECTOR),
	   "in the order of destroy, last");
}

static void destroy(void)
{
	static const enum infra_res order[] = { RES_CONNECTOR,	RES_GROUP,  RES_OPERATOR,
						RES_IMAGE,	RES_OBJECT, RES_BUCKET,
						RES_BUILD_ROLE, RES_ROLE };

	settled();
	for (int i = 0; i < RES_COUNT; i++)
		have[i] = (struct plan_have){ .recorded = true, .managed = true, .name = "n" };
	plan_destroy(have, false, &p);
	ok_int(p.len, RES_COUNT, "all of it");
	for (size_t i = 0; i < p.len; i++)
		ok(p.steps[i].res == order[i] && p.steps[i].verb == PLAN_DELETE, "%s",
		   infra_kinds[order[i]].say);
	have[RES_ROLE].managed = have[RES_IMAGE].managed = false;
	plan_destroy(have, true, &p);
	ok_str(verb(RES_ROLE), "leave", "what was adopted stays");
	ok(!plan_refusal(&p), "sandboxes of an image that stays do not matter");
	have[RES_IMAGE].managed = true;
	plan_destroy(have, true, &p);
	ok(plan_refusal(&p) && plan_refusal(&p)->res == RES_IMAGE, "those of one that goes do");
	memset(have, 0, sizeof(have));
	plan_destroy(have, false, &p);
	ok_int(p.len, 0, "nothing recorded, nothing to do");
}

static void golden(int r, const struct buf *b, const char *text, const char *what)
{
	AUTO_JSN *j = b->len ? jsn_parse(b->p, b->len, NULL) : NULL;

	ok(r == 0 && cJSON_IsArray(jsn_get(j, "Statement")), "%s is JSON", what);
	ok_str(b->p, text, what);
}

#define GOLDEN(call, text)                       \
	do {                                     \
		AUTO_BUF b;                      \
		buf_init(&b, POLICY_MAX);        \
		const int result = call;         \
		golden(result, &b, text, #call); \
	} while (0)
#define V "{\"Version\":\"2012-10-17\",\"Statement\":["

static void policies(void)
{
	const struct policy_place us = { "aws", "123456789012", "us-east-1" },
				  cn = { "aws-cn", "1", "cn-north-1" };
	const char *const subnets[] = { "subnet-a", "subnet-b" };

	GOLDEN(policy_trust(&us, &b), V
	       "{\"Effect\":\"Allow\",\"Principal\":{\"Service\":\"lambda.amazonaws.com\"},\"Action\":[\"sts:AssumeRole\","
	       "\"sts:TagSession\"],\"Condition\":{\"StringEquals\":{\"aws:SourceAccount\":\"123456789012\"},\"ArnLike\":"
	       "{\"aws:SourceArn\":\"arn:aws:lambda:us-east-1:123456789012:microvm-image:*\"}}}]}");
	GOLDEN(policy_operator_trust(&b), V
	       "{\"Effect\":\"Allow\",\"Principal\":{\"Service\":[\"lambda.amazonaws.com\",\"network-connectors.lambda.amazonaws.com\"]},"
	       "\"Action\":\"sts:AssumeRole\"}]}");
	GOLDEN(policy_logs(&cn, "img", &b), V
	       "{\"Sid\":\"Logs\",\"Effect\":\"Allow\",\"Action\":[\"logs:CreateLogGroup\",\"logs:CreateLogStream\",\"logs:PutLogEvents\"],"
	       "\"Resource\":[\"arn:aws-cn:logs:cn-north-1:1:log-group:/aws/lambda-microvms/img\","
	       "\"arn:aws-cn:logs:cn-north-1:1:log-group:/aws/lambda-microvms/img:*\"]}]}");
	GOLDEN(policy_read(&us, "bkt", &b), V
	       "{\"Sid\":\"ReadArtefacts\",\"Effect\":\"Allow\",\"Action\":[\"s3:GetObject\",\"s3:GetObjectVersion\"],\"Resource\":"
	       "\"arn:aws:s3:::bkt/microvm-images/*\",\"Condition\":{\"StringEquals\":{\"s3:ResourceAccount\":\"123456789012\"}}}]}");
	GOLDEN(policy_operator(&us, subnets, 2, "sg-1", &b), V
	       "{\"Sid\":\"CreateInterfaces\",\"Effect\":\"Allow\",\"Action\":\"ec2:CreateNetworkInterface\",\"Resource\":["
	       "\"arn:aws:ec2:us-east-1:123456789012:network-interface/*\",\"arn:aws:ec2:us-east-1:123456789012:security-group/sg-1\","
	       "\"arn:aws:ec2:us-east-1:123456789012:subnet/subnet-a\",\"arn:aws:ec2:us-east-1:123456789012:subnet/subnet-b\"]},"
	       "{\"Sid\":\"TagInterfaces\",\"Effect\":\"Allow\",\"Action\":\"ec2:CreateTags\",\"Resource\":"
	       "\"arn:aws:ec2:us-east-1:123456789012:network-interface/*\",\"Condition\":{\"StringEquals\":"
	       "{\"ec2:ManagedResourceOperator\":\"network-connectors.lambda.amazonaws.com\"}}}]}");
	GOLDEN(policy_bucket(&us, "bkt", &b), V
	       "{\"Sid\":\"TlsOnly\",\"Effect\":\"Deny\",\"Principal\":\"*\",\"Action\":\"s3:*\",\"Resource\":[\"arn:aws:s3:::bkt\","
	       "\"arn:aws:s3:::bkt/*\"],\"Condition\":{\"Bool\":{\"aws:SecureTransport\":\"false\"}}}]}");
}

int main(void)
{
	transitions();
	image();
	egress();
	destroy();
	policies();
	return tap_done();
}
