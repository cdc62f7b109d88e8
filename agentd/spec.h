/* SPDX-License-Identifier: Apache-2.0 */
#ifndef AGENTD_SPEC_H
#define AGENTD_SPEC_H

#include <cJSON.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>

#include "confine.h"
#include "lib/compiler.h"
#include "lib/err.h"
#include "passwd.h"

struct spec_rlimit {
	int resource; /* RLIMIT_* */
	struct rlimit value;
};

#define SPEC_RLIMITS	16
#define SPEC_CPU_PERIOD 100000 /* microseconds */

/* "limits": 0 where nothing was asked. */
struct spec_limits {
	uint64_t memory; /* bytes */
	uint64_t cpu_us; /* of each SPEC_CPU_PERIOD */
	uint64_t pids;
	struct spec_rlimit rlimit[SPEC_RLIMITS];
	size_t n_rlimit;
};

/* What is to be run, from either kind of request body. */
struct spec {
	cJSON *root;	/* owned; the strings below point into it, or into the base environment */
	char **argv;	/* owned array */
	char **envp;	/* owned array */
	char *env_own;	/* owned: the "NAME=value" that the caller gave */
	char *env_user; /* owned: those of USER */
	char *cwd;	/* owned, absolute */
	bool cwd_given;
	bool want_stdin;
	bool timed;
	int64_t timeout_ns; /* when TIMED; <= 0: at once */
	char *input;	    /* all of stdin, inside root; NULL = none */
	size_t input_len;
	bool pty; /* a terminal instead of pipes; WANT_STDIN is true then */
	uint16_t rows, cols;
	struct passwd_user *user; /* owned; NULL: agentd's own */
	struct spec_limits limits;
	bool seccomp_given;
	enum confine_profile seccomp; /* when given */
};

#define SPEC_INIT            \
	{                    \
		.root = NULL \
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

/* spec_more.c: the members of the native form that few requests have. 0, or a negative errno with a message. */
/* {"rows","cols"}, each 1 to 65535 after clamping; absent ones leave *ROWS and *COLS alone. */
int spec_window(const cJSON *o, uint16_t *rows, uint16_t *cols, struct err *e) MUST_CHECK;
int spec_pty(struct spec *s, struct err *e) MUST_CHECK;
int spec_user(struct spec *s, struct err *e) MUST_CHECK;
int spec_resources(struct spec *s, struct err *e) MUST_CHECK;
int spec_seccomp(struct spec *s, struct err *e) MUST_CHECK;

void spec_done(struct spec *s);

#endif
