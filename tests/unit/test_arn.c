/* SPDX-License-Identifier: Apache-2.0 */
/* LINK: host/aws/arn.c host/aws/settings.c host/aws/ini.c */
#include <string.h>

#include "host/aws/arn.h"
#include "lib/compiler.h"
#include "tap.h"

#define A   "arn:aws:lambda:us-east-1:123456789012:microvm-image:"
#define N32 "abcdefghijklmnopqrstuvwxyz012345"

static void test_image(void)
{
	static const struct {
		const char *arn;
		int good;
	} table[] = {
		{ A "guest", 1 },
		{ A "a_B-9", 1 },
		{ A N32 N32, 1 },
		{ A N32 N32 "x", 0 },
		{ A, 0 },
		{ A "a/b", 0 },
		{ A "a:1", 0 },
		{ A "a b", 0 },
		{ "arn:aws:lambda:us-east-1:aws:microvm-image:al2023-1", 1 },
		{ "arn:aws-us-gov:lambda:us-gov-west-1:123456789012:microvm-image:g", 1 },
		{ "arn:aws:lambda:us-east-1:123456789012:microvm-image/guest", 0 },
		{ "arn:aws:lambda:us-east-1:123456789012:function:guest", 0 },
		{ "arn:aws:lambda:us_east_1:123456789012:microvm-image:g", 0 },
		{ "arn:aws:lambda::123456789012:microvm-image:g", 0 },
		{ "arn:aws:lambda:us-east-1:12345678901:microvm-image:g", 0 },
		{ "arn:aws:lambda:us-east-1:1234567890123:microvm-image:g", 0 },
		{ "arn:AWS:lambda:us-east-1:123456789012:microvm-image:g", 0 },
		{ "arn:aws:ec2:us-east-1:123456789012:microvm-image:g", 0 },
		{ "arn:aws:lambda", 0 },
		{ "arn:", 0 },
		{ "", 0 },
		{ "guest", 0 },
	};
	struct image_arn a;

	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		struct err e = ERR_INIT;

		ok((arn_image(table[i].arn, &a, &e) == 0) == (table[i].good == 1) &&
			   (e.code == ERR_INVALID) == (table[i].good == 0),
		   "'%s' %s", table[i].arn, e.msg);
	}
	ok_int(arn_image(A "guest", &a, NULL), 0, "its parts");
	ok_str(a.region, "us-east-1", "region");
	ok_str(a.account, "123456789012", "account");
	ok_str(a.name, "guest", "name");
}

static void test_others(void)
{
	static const char *const roles[] = { "arn:aws:iam::123456789012:role/x",
					     "arn:aws-cn:iam::123456789012:role/path/to/x+=,.@-_" };
	static const char *const no_roles[] = { "x",
						"arn:aws:iam::123456789012:role/",
						"arn:aws:iam::aws:role/x",
						"arn:aws:iam:us-east-1:123456789012:role/x",
						"arn:aws:iam::123456789012:user/x",
						"arn:aws:iam::123456789012:role/a b" };

	for (size_t i = 0; i < ARRAY_LEN(roles); i++)
		ok(arn_check_role(roles[i], NULL) == 0, "%s", roles[i]);
	for (size_t i = 0; i < ARRAY_LEN(no_roles); i++)
		ok(arn_check_role(no_roles[i], NULL) < 0, "not: %s", no_roles[i]);
	ok(arn_check_connector("arn:aws:lambda:us-east-1:123456789012:network-connector:nc-1",
			       "us-east-1", ARN_EGRESS, NULL) == 0,
	   "a connector");
	ok(arn_check_connector(
		   "arn:aws:lambda:us-east-1:aws:network-connector:aws-network-connector:INTERNET_EGRESS",
		   "us-east-1", ARN_EGRESS, NULL) == 0,
	   "one of AWS's");
	ok(arn_check_connector("arn:aws:lambda:us-east-1:123456789012:network-connector:nc-1",
			       "us-west-2", ARN_EGRESS, NULL) < 0,
	   "in another region");
	ok(arn_check_connector(
		   "arn:aws:lambda:us-east-1:aws:network-connector:aws-network-connector:HTTP_INGRESS",
		   "us-east-1", ARN_EGRESS, NULL) < 0,
	   "one for the other direction");
	ok(arn_check_connector(
		   "arn:aws:lambda:us-east-1:aws:network-connector:aws-network-connector:INTERNET_EGRESS",
		   "us-east-1", ARN_INGRESS, NULL) < 0,
	   "and the other way round");
	ok(arn_check_region("eu-north-1", NULL) == 0 && arn_check_region("eu-north-2", NULL) < 0,
	   "regions");
}

int main(void)
{
	test_image();
	test_others();
	return tap_done();
}
