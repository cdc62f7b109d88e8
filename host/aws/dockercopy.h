/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_AWS_DOCKERCOPY_H
#define ASB_AWS_DOCKERCOPY_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/compiler.h"

/*
 * What COPY and ADD take from the build's context. Pure. Source: the Dockerfile reference of Docker, COPY and ADD.
 */
#define DOCKERCOPY_PATH_MAX 1024

/*
 * Calls FN for each source in ARGS (of one instruction, cut up here) that must be there: its path in the context, cleaned, without a
 * slash in front, never empty. Not for what cannot be told: variables, globs, quotes and escapes, the context itself, here-documents; for
 * ADD, what comes from elsewhere. FROM (may be NULL) is told the value of --from; then no source is of the context.
 */
struct dockercopy {
	bool add;				 /* ADD, not COPY */
	bool (*fn)(void *arg, const char *path); /* false stops */
	void (*from)(void *arg, const char *stage);
	void *arg;
};
void dockercopy_each(const struct dockercopy *c, char *args);

#endif
