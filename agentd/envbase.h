/* SPDX-License-Identifier: Apache-2.0 */
#ifndef AGENTD_ENVBASE_H
#define AGENTD_ENVBASE_H

#include <stddef.h>

#include "lib/compiler.h"

/*
 * The environment that every command starts from: agentd's own (what the image declares), without
 * agentd's settings; below it the entries of the image's /etc/passwd for this user, PATH, LANG and
 * TERM; above it what the identity brought. Strings are "NAME=value".
 */
struct cJSON;

struct envbase {
	char **vars; /* owned, NULL-terminated; each owned */
	size_t n;
};

/* Builds it anew into E (which is empty or an older one). IDENTITY_ENV: object of strings, or NULL.
 * 0, -ENOMEM, -E2BIG; on failure E is as it was. */
int envbase_build(struct envbase *e, char *const *environment, const char *passwd_path,
		  const struct cJSON *identity_env) MUST_CHECK;
void envbase_done(struct envbase *e);

const char *envbase_get(char *const *vars, const char *name);

/* Where a command starts, and what relative paths are relative to: HOME of VARS if it can be
 * entered, else "/". */
const char *envbase_home(char *const *vars);

#endif
