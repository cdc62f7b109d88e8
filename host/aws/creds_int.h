/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_AWS_CREDS_INT_H
#define ASB_AWS_CREDS_INT_H

#include <stdint.h>

#include "host/aws/aws.h"
#include "host/aws/creds.h"
#include "lib/compiler.h"
#include "lib/err.h"
#include "lib/jsn.h"

/*
 * Shared by the sources of credentials. Each is asked in turn and returns 1 (RET is set), 0 (not configured: the next one is
 * asked) or a negative errno (configured, but failed: the end).
 */

/* Copies. TOKEN may be NULL or "". */
int creds_set(struct aws_creds *ret, const char *key_id, const char *secret, const char *token,
	      int64_t expires_s, const char *source_fmt, ...) PRINTF(6, 7) MUST_CHECK;
/* The members KEY, SECRET, TOKEN and EXPIRES (ISO 8601, or seconds, or NULL) of a JSON object, as SOURCE. ERR_INVALID when the first two are missing. */
struct creds_members {
	const char *key, *secret, *token, *expires;
};
int creds_from_json(struct aws_creds *ret, const cJSON *o, const struct creds_members *m,
		    const char *source, struct err *e) MUST_CHECK;
/* ISO 8601 in UTC, with "Z", "UTC" or an offset, to Unix time. 0 or -EINVAL. */
int creds_time(const char *s, int64_t *ret) MUST_CHECK;
/* A small file as text without blanks at its ends, into B. */
int creds_read_text(const char *path, struct buf *b, struct err *e) MUST_CHECK;
/* A file of the AWS tools: ~/.aws/REST, parsed; 0 = there is none, 1 = RET. */
int creds_read_json(const char *path, cJSON **ret, struct err *e) MUST_CHECK;

#define CREDS_FILE_MAX	(256U << 10)
#define CREDS_DEPTH_MAX 5 /* profiles that name one another as source */

/* creds.c: all that a profile may say. */
int creds_profile(struct aws *a, const char *profile, unsigned depth, struct aws_creds *ret,
		  struct err *e) MUST_CHECK;

/* creds_sts.c */
int creds_role(struct aws *a, const char *profile, unsigned depth, struct aws_creds *ret,
	       struct err *e) MUST_CHECK;
int creds_web_identity(struct aws *a, const char *profile, struct aws_creds *ret, struct err *e)
	MUST_CHECK;
/* creds_sso.c */
int creds_sso(struct aws *a, const char *profile, struct aws_creds *ret, struct err *e) MUST_CHECK;
int creds_login(struct aws *a, const char *profile, struct aws_creds *ret, struct err *e)
	MUST_CHECK;
/* creds_process.c */
int creds_process(struct aws *a, const char *profile, struct aws_creds *ret, struct err *e)
	MUST_CHECK;
/* creds_host.c */
int creds_container(struct aws *a, struct aws_creds *ret, struct err *e) MUST_CHECK;
int creds_imds(struct aws *a, struct aws_creds *ret, struct err *e) MUST_CHECK;
/* creds.c */
int creds_environment(struct aws_creds *ret, struct err *e) MUST_CHECK;

#endif
