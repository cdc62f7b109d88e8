/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_AWS_SETTINGS_H
#define ASB_AWS_SETTINGS_H

#include <limits.h>
#include <stdbool.h>

#include "host/aws/ini.h"
#include "lib/buf.h"
#include "lib/compiler.h"
#include "lib/err.h"

/*
 * What the environment and the two shared files say of how to reach AWS: profile, region, endpoints, certificates, retries.
 * No network, and nothing secret but the files' own text. Precedence is botocore's (AWS SDKs and Tools Reference).
 */
#define AWS_REGION_MAX	 32
#define AWS_ENDPOINT_MAX 512

struct aws_settings { /* settings_done */
	struct ini config, credentials;
	char config_path[PATH_MAX], credentials_path[PATH_MAX];
	const char *profile; /* its name; points into the environment or is static */
	bool profile_given; /* by settings_choose: keys in the environment do not count then, as in botocore */
	char region[AWS_REGION_MAX + 1]; /* "" = none found (yet) */
	const char *region_from;	 /* for people; static or the name of a variable */
};

/* What the command line chooses for all that is loaded from now on, before the environment; borrowed, NULL = nothing. */
void settings_choose(const char *region, const char *profile);

/*
 * REGION (NULL = not given) comes from the command line or from a record, and wins. ERR_NOT_FOUND for a profile that was chosen
 * and is in neither file, ERR_INVALID for a region that is no region's name.
 */
int settings_load(struct aws_settings *ret, const char *region, struct err *e) MUST_CHECK;
void settings_done(struct aws_settings *s);
int settings_set_region(struct aws_settings *s, const char *region, const char *from, struct err *e)
	MUST_CHECK;

/* A key of a profile: the credentials file's value, else the config file's. NULL when there is none or it is empty. */
const char *settings_get(const struct aws_settings *s, const char *profile, const char *key);
bool settings_has_profile(const struct aws_settings *s, const char *profile);

/*
 * The endpoint that the user wants for a service ("LAMBDA_MICROVMS", as in AWS_ENDPOINT_URL_<SERVICE>): NULL = AWS's own.
 * Borrowed. It begins with http:// or https:// and has neither query nor fragment, else ERR_INVALID.
 */
int settings_endpoint(const struct aws_settings *s, const char *service, const char **ret,
		      struct err *e) MUST_CHECK;

const char *settings_ca_bundle(const struct aws_settings *s); /* NULL = the system's */
unsigned settings_attempts(const struct aws_settings *s);     /* of one call: 1 to 10, usually 3 */

/* May become part of a host name: letters, digits and hyphens. */
bool settings_is_region(const char *s);

/* An environment variable; NULL when it is empty. */
const char *settings_env(const char *name);
/* "$HOME/REST"; ERR_INVALID without a HOME. */
int settings_home(const char *rest, char ret[static PATH_MAX], struct err *e) MUST_CHECK;

#endif
