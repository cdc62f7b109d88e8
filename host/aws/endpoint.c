/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "host/aws/aws.h"
#include "host/aws/call.h"
#include "lib/str.h"

/* Which host a service has. The rule sets of the service models say the same for the services here. */

const struct aws_service aws_lambda_microvms = { "LAMBDA_MICROVMS", "lambda", "lambda" };
const struct aws_service aws_lambda_core = { "LAMBDA_CORE", "lambda", "lambda" };
const struct aws_service aws_s3 = { "S3", "s3", "s3" };
const struct aws_service aws_iam = { "IAM", "iam", "iam" };
const struct aws_service aws_ec2 = { "EC2", "ec2", "ec2" };
const struct aws_service aws_logs = { "CLOUDWATCH_LOGS", "logs", "logs" };
const struct aws_service aws_sts = { "STS", "sts", "sts" };
const struct aws_service aws_sts_unsigned = { "STS", "sts", NULL };
const struct aws_service aws_sso = { "SSO", "portal.sso", NULL };
const struct aws_service aws_sso_oidc = { "SSO_OIDC", "oidc", NULL };

static const char *dns_suffix(const char *region)
{
	if (str_starts(region, "cn-"))
		return "amazonaws.com.cn";
	if (str_starts(region, "eusc-"))
		return "amazonaws.eu";
	return "amazonaws.com";
}

static bool wanted(const struct aws *a, const char *variable, const char *key)
{
	const char *v = settings_env(variable);

	if (!v)
		v = settings_get(&a->set, a->set.profile, key);
	return v && strcasecmp(v, "true") == 0;
}

int aws_endpoint(const struct aws *a, const struct aws_service *service, const char *region,
		 struct buf *ret, bool *ret_own, struct err *e)
{
	bool fips = wanted(a, "AWS_USE_FIPS_ENDPOINT", "use_fips_endpoint");
	bool dual = wanted(a, "AWS_USE_DUALSTACK_ENDPOINT", "use_dualstack_endpoint");
	const char *own;
	size_t n;
	int r = settings_endpoint(&a->set, service->name, &own, e);

	if (r < 0)
		return r;
	if (ret_own)
		*ret_own = own == NULL;
	if (own && (fips || dual))
		return err_set(
			e, ERR_INVALID, 0,
			"a FIPS or dual-stack endpoint is wanted together with the endpoint %.100s",
			own);
	if (own) {
		n = strlen(own);
		while (n && own[n - 1] == '/')
			n--;
		r = buf_add(ret, own, n);
	} else if (service == &aws_iam) { /* one for all regions of a partition */
		r = buf_addf(ret, "https://iam%s%s.%s", fips ? "-fips" : "",
			     str_starts(region, "cn-")	     ? ".cn-north-1"
			     : str_starts(region, "us-gov-") ? ".us-gov"
							     : "",
			     dns_suffix(region));
	} else {
		r = buf_addf(ret, "https://%s%s.%s.%s", service->host, fips ? "-fips" : "", region,
			     dual ? "api.aws" : dns_suffix(region));
	}
	return r < 0 ? err_set(e, ERR_INTERNAL, -r, "the endpoint") : 0;
}
