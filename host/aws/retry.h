/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_AWS_RETRY_H
#define ASB_AWS_RETRY_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/compiler.h"

/* What to do about a failed attempt, as pure functions (AWS SDKs and Tools Reference, "Retry behavior", standard mode). */
enum retry_what {
	RETRY_NOT,
	RETRY_AGAIN,	/* after a pause */
	RETRY_THROTTLE, /* after a pause; the service is asked too much */
	RETRY_CREDS,	/* with new credentials, at once */
	RETRY_CLOCK,	/* if our clock is off by more than RETRY_SKEW_S: corrected, at once */
};
#define RETRY_SKEW_S 240

/* STATUS 0: there was no answer, ERRNUM tells why. CODE: the error's short name, may be "". */
enum retry_what retry_decide(int status, const char *code, int errnum);

/*
 * How long to wait before attempt N + 1 (N from 1): RANDOM of 2^32 times min(2^(N-1), 20) s. RETRY_AFTER_S (-1 = none) is
 * honoured up to 5 s beyond that.
 */
int64_t retry_delay_ns(unsigned n, uint32_t random, int retry_after_s);

#endif
