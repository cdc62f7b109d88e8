/* SPDX-License-Identifier: Apache-2.0 */
#include "host/aws/settings.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "lib/str.h"

#define ATTEMPTS_DEFAULT 3
#define ATTEMPTS_MAX	 10
#define SERVICE_MAX	 64

const char *settings_env(const char *name)
{
	const char *v = getenv(name);

	return v && *v ? v : NULL;
}

int settings_home(const char *rest, char ret[static PATH_MAX], struct err *e)
{
	const char *home = settings_env("HOME");

	if (!home || home[0] != '/')
		return err_set(e, ERR_INVALID, EINVAL, "HOME is %s",
			       home ? "not an absolute path" : "not set");
	return str_format(ret, PATH_MAX, "%s/%s", home, rest) < 0
		       ? err_set(e, ERR_INVALID, ENAMETOOLONG, "the path of %s", rest)
		       : 0;
}

/* The path of one of the files: $VARIABLE, where a leading "~/" is HOME, else below HOME. */
static int file_path(const char *variable, const char *usual, char ret[static PATH_MAX],
		     struct err *e)
{
	const char *given = settings_env(variable);

	if (!given)
		return settings_home(usual, ret, e);
	if (str_starts(given, "~/"))
		return settings_home(given + 2, ret, e);
	return str_format(ret, PATH_MAX, "%s", given) < 0
		       ? err_set(e, ERR_INVALID, ENAMETOOLONG, "the path in %s", variable)
		       : 0;
}

const char *settings_get(const struct aws_settings *s, const char *profile, const char *key)
{
	const char *v = ini_get(&s->credentials, INI_PROFILE, profile, key, NULL);

	if (!v || !*v)
		v = ini_get(&s->config, INI_PROFILE, profile, key, NULL);
	return v && *v ? v : NULL;
}

bool settings_has_profile(const struct aws_settings *s, const char *profile)
{
	return ini_has(&s->credentials, INI_PROFILE, profile) ||
	       ini_has(&s->config, INI_PROFILE, profile);
}

/* --- region --- */

bool settings_is_region(const char *s)
{
	size_t n = strlen(s);

	if (n == 0 || n > AWS_REGION_MAX || s[0] == '-' || s[n - 1] == '-')
		return false;
	for (; *s; s++)
		if (!((*s >= 'a' && *s <= 'z') || (*s >= '0' && *s <= '9') || *s == '-'))
			return false;
	return true;
}

int settings_set_region(struct aws_settings *s, const char *region, const char *from, struct err *e)
{
	if (!settings_is_region(region) ||
	    str_format(s->region, sizeof(s->region), "%s", region) < 0)
		return err_set(e, ERR_INVALID, 0, "'%.60s' (%s) is not a region", region, from);
	s->region_from = from;
	return 0;
}

static int find_region(struct aws_settings *s, const char *given, struct err *e)
{
	static const char *const variables[] = { "AGENT_SANDBOX_REGION", "AWS_REGION",
						 "AWS_DEFAULT_REGION" };
	const char *v;

	if (given)
		return settings_set_region(s, given, "given", e);
	for (size_t i = 0; i < ARRAY_LEN(variables); i++) {
		v = settings_env(variables[i]);
		if (v)
			return settings_set_region(s, v, variables[i], e);
	}
	v = settings_get(s, s->profile, "region");
	return v ? settings_set_region(s, v, "profile", e) : 0;
}

/* --- all --- */

static struct {
	const char *region, *profile;
} chosen;

void settings_choose(const char *region, const char *profile)
{
	chosen.region = region;
	chosen.profile = profile;
}

static int load(struct aws_settings *s, const char *region, struct err *e)
{
	int r = file_path("AWS_CONFIG_FILE", ".aws/config", s->config_path, e);

	if (r == 0)
		r = file_path("AWS_SHARED_CREDENTIALS_FILE", ".aws/credentials",
			      s->credentials_path, e);
	if (r == 0)
		r = ini_load(&s->config, INI_CONFIG, s->config_path, e);
	if (r == 0)
		r = ini_load(&s->credentials, INI_CREDENTIALS, s->credentials_path, e);
	if (r < 0)
		return r;
	s->profile = chosen.profile;
	s->profile_given = s->profile != NULL;
	if (!s->profile)
		s->profile = settings_env("AWS_DEFAULT_PROFILE");
	if (!s->profile)
		s->profile = settings_env("AWS_PROFILE");
	if (s->profile && !settings_has_profile(s, s->profile)) /* somebody means to use it */
		return err_set(e, ERR_NOT_FOUND, 0,
			       "the profile '%.80s' is neither in %.150s nor in %.150s", s->profile,
			       s->config_path, s->credentials_path);
	if (!s->profile)
		s->profile = "default";
	return find_region(s, region ? region : chosen.region, e);
}

int settings_load(struct aws_settings *ret, const char *region, struct err *e)
{
	int r;

	*ret = (struct aws_settings){ .profile = NULL };
	r = load(ret, region, e);
	if (r < 0)
		settings_done(ret);
	return r;
}

void settings_done(struct aws_settings *s)
{
	ini_done(&s->config);
	ini_done(&s->credentials);
}

/* --- endpoints --- */

static int check_endpoint(const char *url, const char *from, const char **ret, struct err *e)
{
	if ((!str_starts(url, "https://") && !str_starts(url, "http://")) || strpbrk(url, "?#@ ") ||
	    strlen(url) > AWS_ENDPOINT_MAX)
		return err_set(e, ERR_INVALID, 0, "'%.120s' (%s) is not an endpoint", url, from);
	*ret = url;
	return 0;
}

static bool ignored(const struct aws_settings *s)
{
	const char *v = settings_env("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS");

	if (!v)
		v = settings_get(s, s->profile, "ignore_configured_endpoint_urls");
	return v && strcasecmp(v, "true") == 0;
}

int settings_endpoint(const struct aws_settings *s, const char *service, const char **ret,
		      struct err *e)
{
	char variable[SERVICE_MAX + 32], key[SERVICE_MAX];
	const char *v, *section;

	*ret = NULL;
	if (ignored(s))
		return 0;
	if (str_format(variable, sizeof(variable), "AWS_ENDPOINT_URL_%s", service) < 0 ||
	    str_format(key, sizeof(key), "%s", service) < 0)
		return err_set(e, ERR_INTERNAL, ENAMETOOLONG, "the name of a service");
	for (char *p = key; *p; p++)
		*p = *p >= 'A' && *p <= 'Z' ? (char)(*p | 0x20) : *p;
	v = settings_env(variable);
	if (v)
		return check_endpoint(v, variable, ret, e);
	v = settings_env("AWS_ENDPOINT_URL");
	if (v)
		return check_endpoint(v, "AWS_ENDPOINT_URL", ret, e);
	section = settings_get(s, s->profile, "services");
	v = section ? ini_get(&s->config, INI_SERVICES, section, key, "endpoint_url") : NULL;
	if (!v || !*v)
		v = settings_get(s, s->profile, "endpoint_url");
	return v ? check_endpoint(v, "endpoint_url of the profile", ret, e) : 0;
}

/* --- the rest --- */

const char *settings_ca_bundle(const struct aws_settings *s)
{
	const char *v = settings_env("AWS_CA_BUNDLE");

	return v ? v : settings_get(s, s->profile, "ca_bundle");
}

unsigned settings_attempts(const struct aws_settings *s)
{
	const char *v = settings_env("AWS_MAX_ATTEMPTS");
	uint64_t n = ATTEMPTS_DEFAULT;

	if (!v)
		v = settings_get(s, s->profile, "max_attempts");
	if (v && str_to_u64(v, 1, ATTEMPTS_MAX, &n) < 0)
		n = ATTEMPTS_DEFAULT;
	return (unsigned)n;
}
