/* SPDX-License-Identifier: Apache-2.0 */
#include "host/infra/policy.h"

#include "host/aws/artefact.h"

#define BEGIN "{\"Version\":\"2012-10-17\",\"Statement\":["
#define END   "]}"

int policy_trust(const struct policy_place *p, struct buf *out)
{
	return buf_addf(
		out,
		BEGIN
		"{\"Effect\":\"Allow\",\"Principal\":{\"Service\":\"lambda.amazonaws.com\"},"
		"\"Action\":[\"sts:AssumeRole\",\"sts:TagSession\"],\"Condition\":{"
		"\"StringEquals\":{\"aws:SourceAccount\":\"%s\"},"
		"\"ArnLike\":{\"aws:SourceArn\":\"arn:%s:lambda:%s:%s:microvm-image:*\"}}}" END,
		p->account, p->partition, p->region, p->account);
}

int policy_operator_trust(struct buf *out)
{
	return buf_adds(
		out, BEGIN
		"{\"Effect\":\"Allow\",\"Principal\":{\"Service\":[\"lambda.amazonaws.com\","
		"\"network-connectors.lambda.amazonaws.com\"]},\"Action\":\"sts:AssumeRole\"}" END);
}

int policy_logs(const struct policy_place *p, const char *image, struct buf *out)
{
	return buf_addf(
		out,
		BEGIN "{\"Sid\":\"Logs\",\"Effect\":\"Allow\",\"Action\":[\"logs:CreateLogGroup\","
		      "\"logs:CreateLogStream\",\"logs:PutLogEvents\"],\"Resource\":["
		      "\"arn:%s:logs:%s:%s:log-group:/aws/lambda-microvms/%s\","
		      "\"arn:%s:logs:%s:%s:log-group:/aws/lambda-microvms/%s:*\"]}" END,
		p->partition, p->region, p->account, image, p->partition, p->region, p->account,
		image);
}

int policy_read(const struct policy_place *p, const char *bucket, struct buf *out)
{
	return buf_addf(
		out,
		BEGIN
		"{\"Sid\":\"ReadArtefacts\",\"Effect\":\"Allow\",\"Action\":[\"s3:GetObject\","
		"\"s3:GetObjectVersion\"],\"Resource\":\"arn:%s:s3:::%s/" ARTEFACT_PREFIX "*\","
		"\"Condition\":{\"StringEquals\":{\"s3:ResourceAccount\":\"%s\"}}}" END,
		p->partition, bucket, p->account);
}

int policy_operator(const struct policy_place *p, const char *const *subnets, size_t n,
		    const char *group, struct buf *out)
{
	int r = buf_addf(out,
			 BEGIN "{\"Sid\":\"CreateInterfaces\",\"Effect\":\"Allow\","
			       "\"Action\":\"ec2:CreateNetworkInterface\",\"Resource\":["
			       "\"arn:%s:ec2:%s:%s:network-interface/*\","
			       "\"arn:%s:ec2:%s:%s:security-group/%s\"",
			 p->partition, p->region, p->account, p->partition, p->region, p->account,
			 group);

	for (size_t i = 0; r == 0 && i < n; i++)
		r = buf_addf(out, ",\"arn:%s:ec2:%s:%s:subnet/%s\"", p->partition, p->region,
			     p->account, subnets[i]);
	if (r == 0)
		r = buf_addf(
			out,
			"]},{\"Sid\":\"TagInterfaces\",\"Effect\":\"Allow\",\"Action\":\"ec2:CreateTags\","
			"\"Resource\":\"arn:%s:ec2:%s:%s:network-interface/*\",\"Condition\":{"
			"\"StringEquals\":{\"ec2:ManagedResourceOperator\":"
			"\"network-connectors.lambda.amazonaws.com\"}}}" END,
			p->partition, p->region, p->account);
	return r;
}

int policy_bucket(const struct policy_place *p, const char *bucket, struct buf *out)
{
	return buf_addf(out,
			BEGIN "{\"Sid\":\"TlsOnly\",\"Effect\":\"Deny\",\"Principal\":\"*\","
			      "\"Action\":\"s3:*\",\"Resource\":[\"arn:%s:s3:::%s\","
			      "\"arn:%s:s3:::%s/*\"],\"Condition\":{\"Bool\":{"
			      "\"aws:SecureTransport\":\"false\"}}}" END,
			p->partition, bucket, p->partition, bucket);
}
