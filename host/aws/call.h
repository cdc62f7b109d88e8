/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_AWS_CALL_H
#define ASB_AWS_CALL_H

#include <stddef.h>
#include <stdint.h>

#include "host/aws/fetch.h"
#include "lib/compiler.h"
#include "lib/err.h"
#include "lib/jsn.h"

/*
 * One call of an AWS API: endpoint, signature, retries as SDKs' "standard" mode does them, correction of our clock, and errors in
 * the service's words with their request id.
 */
struct aws;
struct aws_creds;
struct sigv4_header;

struct aws_service {
	const char *name;    /* as in AWS_ENDPOINT_URL_<NAME>: "LAMBDA_MICROVMS" */
	const char *host;    /* endpoint prefix: "lambda" */
	const char *signing; /* name in the signature; NULL = not signed */
};
extern const struct aws_service aws_lambda_microvms, aws_lambda_core;
extern const struct aws_service aws_s3, aws_iam, aws_ec2, aws_logs;
extern const struct aws_service aws_sts, aws_sts_unsigned, aws_sso, aws_sso_oidc;

struct aws_call { /* all borrowed */
	const struct aws_service *service;
	const char *what;   /* for messages: "RunMicrovm" */
	const char *region; /* NULL = the session's */
	const char *method;
	const char *path;	  /* encoded, begins with '/' */
	const char *query;	  /* encoded; NULL = none */
	const char *content_type; /* NULL = none */
	const char *accept;	  /* NULL = none */
	const char *extra[2];	  /* one more header, not signed: name and value; NULL = none */
	const struct sigv4_header *heads; /* more headers, signed */
	size_t heads_len;		  /* at most CALL_HEADS_MAX */
	const char *bucket; /* S3, and its ways of signing; PATH is in the bucket; NULL = none */
	bool xml;	    /* answers are XML (xml.h) */
	const void *body;   /* NULL = none */
	size_t body_len;
	const struct aws_creds *creds; /* NULL = the session's, renewed as needed */
	int64_t limit_ns;	       /* for all attempts; 0 = CALL_LIMIT_NS */
	int64_t attempt_ns;	       /* for one; 0 = FETCH_LIMIT_NS */
};
#define CALL_HEADS_MAX 3
#define CALL_LIMIT_NS  (120LL * 1000000000)

#define CALL_CODE_MAX 96

struct aws_answer { /* aws_answer_done */
	struct fetch_reply reply;
	char code[CALL_CODE_MAX]; /* of an error: "ResourceNotFoundException"; "" = none */
	unsigned attempts;
	cJSON *json; /* owned; of a good answer; NULL when its body is empty */
};

/*
 * 0 for a 2xx. Otherwise: -ENOENT for 404, -EACCES for 401 and 403, -EBUSY for 409, -EDQUOT for 402, -EAGAIN for throttling, -EINVAL for other 4xx,
 * -EIO for 5xx, or what fetch_do says. RET is to be released in any case.
 */
int aws_call(struct aws *a, const struct aws_call *c, struct aws_answer *ret, struct err *e)
	MUST_CHECK;
void aws_answer_done(struct aws_answer *r);

/*
 * The base URL of SERVICE in REGION, without a '/' at its end, into RET: what the user has configured, or AWS's own by partition,
 * FIPS and dual-stack settings. *RET_OWN (may be NULL): it is AWS's.
 */
int aws_endpoint(const struct aws *a, const struct aws_service *service, const char *region,
		 struct buf *ret, bool *ret_own, struct err *e) MUST_CHECK;

#endif
