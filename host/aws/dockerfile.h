/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_AWS_DOCKERFILE_H
#define ASB_AWS_DOCKERFILE_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/compiler.h"
#include "lib/err.h"

struct dockerfile_context {
	/* Whether a file or a folder is at PATH ("a/b") among what the build is given. */
	bool (*has)(void *arg, const char *path);
	void *arg;
};

/*
 * Looks through N bytes of a Dockerfile for what is known to fail after minutes of building on AWS: another architecture than arm64, nothing
 * that would answer the hooks, answers on another port, a COPY or ADD of what is not in CONTEXT (NULL: not looked at). Pure. 0, or
 * ERR_INVALID with "Dockerfile:LINE: …" for the first; what it does not understand is fine. NOTE (may be NULL) is filled in the same form when
 * it may fail: what it begins with is an image from elsewhere, which alone can have what it runs. Source: the Dockerfile reference of Docker.
 */
int dockerfile_check(const char *text, size_t n, const struct dockerfile_context *context,
		     struct err *note, struct err *e) MUST_CHECK;
#define DOCKERFILE_MAX (1U << 20)

#endif
