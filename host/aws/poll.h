/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_AWS_POLL_H
#define ASB_AWS_POLL_H

#include <stdint.h>

#include "host/aws/aws.h"
#include "lib/compiler.h"
#include "lib/err.h"

/*
 * Calls FN (1: done, 0: again, negative: failed) with growing pauses until LIMIT_NS. WHAT says what is waited for: "the image is built".
 * FN's E is never NULL, and may tell why it is to be called again. ERR_TIMEOUT; -EINTR when the session is cancelled.
 */
int aws_poll(struct aws *a, int (*fn)(void *arg, struct err *e), void *arg, int64_t limit_ns,
	     const char *what, struct err *e) MUST_CHECK;

#endif
