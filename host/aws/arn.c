/* SPDX-License-Identifier: Apache-2.0 */
#include "host/aws/arn.h"

#include <string.h>

#include "lib/str.h"

/* Field FIELD (from 0) of an ARN: *RET_LEN bytes; what is behind the fifth colon is one field. NULL when there are fewer. */
static const char *field(const char *s, int n, size_t *ret_len)
{
	for (int i = 0; i < n; i++) {
		s = strchr(s, ':');
		if (!s)
			return NULL;
		s++;
	}
	*ret_len = n < 5 ? strcspn(s, ":") : strlen(s);
	return s;
}

static bool field_is(const char *s, int n, const char *want)
{
	size_t len;
	const char *f = field(s, n, &len);

	return f && len == strlen(want) && memcmp(f, want, len) == 0;
}

static bool is_partition(const char *s)
{
	size_t len;
	const char *f = field(s, 1, &len);

	return str_starts(s, "arn:") && f && len >= 3 && memcmp(f, "aws", 3) == 0 &&
	       strspn(f, "abcdefghijklmnopqrstuvwxyz-") == len;
}

bool arn_is_image_name(const char *s, size_t n)
{
	static const char ok[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";

	return n > 0 && n <= IMAGE_NAME_MAX && strspn(s, ok) >= n;
}

/* Copies field N of S when it fits. */
static bool take(const char *s, int n, char *out, size_t size)
{
	size_t len;
	const char *f = field(s, n, &len);

	return f && str_format(out, size, "%.*s", (int)len, f) == 0;
}

static bool is_account(const char *s)
{
	return (strlen(s) == 12 && strspn(s, "0123456789") == 12) || strcmp(s, "aws") == 0;
}

int arn_image(const char *s, struct image_arn *ret, struct err *e)
{
	static const char kind[] = "microvm-image:";
	size_t len;
	const char *rest = field(s, 5, &len);

	if (!is_partition(s) || !field_is(s, 2, "lambda") || !rest ||
	    !take(s, 3, ret->region, sizeof(ret->region)) || !settings_is_region(ret->region) ||
	    !take(s, 4, ret->account, sizeof(ret->account)) || !is_account(ret->account))
		return err_set(e, ERR_INVALID, 0,
			       "'%.150s' is not an image's ARN "
			       "(arn:aws:lambda:REGION:ACCOUNT:microvm-image:NAME)",
			       s);
	if (str_starts(rest, "microvm-image/"))
		return err_set(e, ERR_INVALID, 0,
			       "'%.150s': a colon, not a slash, is before the name", s);
	if (!str_starts(rest, kind) ||
	    !arn_is_image_name(rest + strlen(kind), strlen(rest + strlen(kind))))
		return err_set(e, ERR_INVALID, 0, "'%.150s' does not name a MicroVM image", s);
	ignore_result(
		str_format(ret->name, sizeof(ret->name), "%s", rest + strlen(kind))); /* it fits */
	return 0;
}

int arn_check_role(const char *s, struct err *e)
{
	size_t len;
	const char *rest = field(s, 5, &len);
	char account[13];

	if (is_partition(s) && field_is(s, 2, "iam") && field_is(s, 3, "") &&
	    take(s, 4, account, sizeof(account)) && is_account(account) && account[0] != 'a' &&
	    rest && str_starts(rest, "role/") && len > 5 && len <= 1024 &&
	    !strpbrk(rest, " \t\r\n:"))
		return 0;
	return err_set(e, ERR_INVALID, 0,
		       "'%.150s' is not a role's ARN (arn:aws:iam::ACCOUNT:role/NAME)", s);
}

static bool ends_with(const char *s, size_t n, const char *end)
{
	return n > strlen(end) && strcmp(s + n - strlen(end), end) == 0;
}

int arn_check_connector(const char *s, const char *region, enum arn_direction d, struct err *e)
{
	size_t len;
	const char *rest = field(s, 5, &len);

	if (!is_partition(s) || !field_is(s, 2, "lambda") || !rest ||
	    !str_starts(rest, "network-connector:") || len < 20 || strlen(s) >= ARN_CONNECTOR_MAX)
		return err_set(e, ERR_INVALID, 0, "'%.150s' is not a network connector's ARN", s);
	if (ends_with(rest, len, d == ARN_EGRESS ? "_INGRESS" : "_EGRESS"))
		return err_set(e, ERR_INVALID, 0, "'%.150s' is a connector for what %s", s,
			       d == ARN_EGRESS ? "comes in, not for what goes out"
					       : "goes out, not for what comes in");
	if (!field_is(s, 3, region))
		return err_set(e, ERR_INVALID, 0,
			       "the network connector '%.150s' is not in the image's region %s", s,
			       region);
	return 0;
}

int arn_check_region(const char *region, struct err *e)
{
	/* AWS What's New, 2026-06-22 and 2026-08-19. SDKs' lists name every region of Lambda. */
	static const char *const regions[] = { "us-east-1",	 "us-east-2",	   "us-west-2",
					       "eu-west-1",	 "ap-northeast-1", "ap-south-1",
					       "ap-southeast-1", "ap-southeast-2", "eu-central-1",
					       "eu-north-1" };

	for (size_t i = 0; i < ARRAY_LEN(regions); i++)
		if (strcmp(regions[i], region) == 0)
			return 0;
	return err_set(
		e, ERR_UNSUPPORTED, 0,
		"AWS has no Lambda MicroVMs in %.40s as far as asb knows (it has in us-east-1, us-east-2, us-west-2, "
		"eu-west-1, eu-central-1, eu-north-1, ap-northeast-1, ap-south-1, ap-southeast-1 and -2)",
		region);
}
