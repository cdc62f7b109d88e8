/* SPDX-License-Identifier: Apache-2.0 */
#include "host/aws/ingress.h"

#include <errno.h>
#include <string.h>

#include "host/aws/arn.h"
#include "lib/str.h"

/*
 * AWS's default is HTTP; it is sent all the same, so that what asb relies on does not change with a default. NO_INGRESS and ALL_INGRESS
 * say all there is to say, and stand alone.
 */

#define MANAGED "network-connector:aws-network-connector:"

static const struct kind {
	const char *word, *managed;
	bool http, alone;
} kinds[] = {
	{ "http", "HTTP_INGRESS", true, false },
	{ "shell", "SHELL_INGRESS", false, false },
	{ "all", "ALL_INGRESS", true, true },
	{ "none", "NO_INGRESS", false, true },
};

/* NULL: no word, and no ARN of AWS's own. */
static const struct kind *kind_of(const char *s)
{
	const char *managed = strstr(s, ":aws:" MANAGED);

	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		if (managed ? strcmp(managed + strlen(":aws:" MANAGED), kinds[i].managed) == 0
			    : strcmp(s, kinds[i].word) == 0)
			return &kinds[i];
	return NULL;
}

static int check_one(const char *s, const char *region, struct err *e)
{
	if (!str_starts(s, "arn:"))
		return kind_of(s)
			       ? 0
			       : err_set(e, ERR_USAGE, 0,
					 "--ingress: '%.100s' is neither http, shell, all or none, "
					 "nor a network connector's ARN",
					 s);
	if (strstr(s, ":aws:" MANAGED) && !kind_of(s))
		return err_set(e, ERR_INVALID, 0,
			       "--ingress: AWS has no connector '%.150s' for what comes in", s);
	return arn_check_connector(s, region, ARN_INGRESS, e);
}

int ingress_check(const struct sandbox_spec *s, const char *region, struct err *e)
{
	int r = 0;

	if (s->ingress_len > INGRESS_MAX)
		return err_set(e, ERR_USAGE, 0, "--ingress: AWS takes %d at most", INGRESS_MAX);
	for (unsigned i = 0; i < s->ingress_len && r == 0; i++) {
		const struct kind *k = kind_of(s->ingress[i]);

		r = check_one(s->ingress[i], region, e);
		if (r == 0 && k && k->alone && s->ingress_len > 1)
			r = err_set(e, ERR_USAGE, 0, "--ingress: '%s' goes with no other", k->word);
		for (unsigned j = 0; j < i && r == 0; j++)
			if (k ? kind_of(s->ingress[j]) == k
			      : strcmp(s->ingress[j], s->ingress[i]) == 0)
				r = err_set(e, ERR_USAGE, 0, "--ingress: '%.150s' is given twice",
					    s->ingress[i]);
	}
	if (r == 0 && s->ephemeral && !ingress_has_http(s))
		r = err_set(e, ERR_USAGE, 0,
			    "--ingress: asb run reaches its command by http (or all), which is not "
			    "among them");
	return r;
}

/* One's own may be anything: it is taken for one that lets requests in. */
bool ingress_has_http(const struct sandbox_spec *s)
{
	bool http = !s->ingress_len;

	for (unsigned i = 0; i < s->ingress_len; i++) {
		const struct kind *k = kind_of(s->ingress[i]);

		http = http || !k || k->http;
	}
	return http;
}

unsigned ingress_count(const struct sandbox_spec *s)
{
	return s->ingress_len ? s->ingress_len : 1;
}

int ingress_arn(const struct sandbox_spec *s, unsigned i, const char *region,
		char ret[static ARN_CONNECTOR_MAX])
{
	const char *one = s->ingress_len ? s->ingress[i] : kinds[0].word;
	const struct kind *k = kind_of(one);

	return str_starts(one, "arn:")
		       ? str_format(ret, ARN_CONNECTOR_MAX, "%s", one)
		       : str_format(ret, ARN_CONNECTOR_MAX, "arn:aws:lambda:%s:aws:" MANAGED "%s",
				    region, k ? k->managed : "");
}
