/* SPDX-License-Identifier: Apache-2.0 */
#ifndef AGENTD_SPEC_H
#define AGENTD_SPEC_H

#include <cJSON.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/compiler.h"
#include "lib/err.h"

/* What is to be run, from either kind of request body. */
struct spec {
	cJSON *root;   /* owned; the strings below point into it, or into the base environment */
	char **argv;   /* owned array */
	char **envp;   /* owned array */
	char *env_own; /* owned: the "NAME=value" that the caller gave */
	char *cwd;     /* owned, absolute */
	bool cwd_given;
	bool want_stdin;
	bool timed;
	int64_t timeout_ns; /* when TIMED; <= 0: at once */
	char *input;	    /* compatible: bytes for stdin, inside root; NULL = none */
	size_t input_len;
};

#define SPEC_INIT                                                             \
	{                                                                     \
		NULL, NULL, NULL, NULL, NULL, false, false, false, 0, NULL, 0 \
	}

/*
 * PUT /v1/execs/{id}: parses N bytes. BASE: environment to build upon. 0, or a negative errno with
 * a message for status 400. Call spec_done in both cases.
 */
int spec_native(struct spec *s, const char *p, size_t n, char *const *base, struct err *e)
	MUST_CHECK;

/*
 * POST /v1/exec: ROOT (taken in every case) has passed validate_exec. 0, or a negative errno with a
 * message for status 400.
 */
int spec_compat(struct spec *s, cJSON *root, char *const *base, struct err *e) MUST_CHECK;

void spec_done(struct spec *s);

#endif
