/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_AWS_AWS_H
#define ASB_AWS_AWS_H

#include <stdint.h>

#include "host/aws/creds.h"
#include "host/aws/settings.h"
#include "lib/compiler.h"
#include "lib/err.h"

/* One way of talking to AWS: settings, credentials, connections. Nothing is asked of anybody before the first call. */
struct fetch;

struct aws {
	struct aws_settings set;
	struct fetch *fetch;	/* owned */
	struct aws_creds creds; /* key_id NULL until found */
	int64_t skew_s;		/* the service's clock less ours */
};

/* REGION (NULL = as configured) as in settings_load. aws_close frees. */
int aws_open(const char *region, struct aws **ret, struct err *e) MUST_CHECK;
void aws_close(struct aws *a); /* NULL is fine */

/* The same session for the same REGION, for the process's life. */
int aws_session(const char *region, struct aws **ret, struct err *e) MUST_CHECK;

/* The region of calls; asks the instance metadata service when nothing else tells it. ERR_INVALID when there is none. */
int aws_region(struct aws *a, const char **ret, struct err *e) MUST_CHECK;

int64_t aws_now_s(void); /* Unix time by our clock */

#endif
