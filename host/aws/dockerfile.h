/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_AWS_DOCKERFILE_H
#define ASB_AWS_DOCKERFILE_H

#include <stddef.h>

#include "lib/compiler.h"
#include "lib/err.h"

/*
 * Looks through N bytes of a Dockerfile for what is known to fail after minutes of building on AWS: another architecture than arm64, nothing
 * that would answer the hooks, or answers on another port. Pure. 0, or ERR_INVALID with "Dockerfile:LINE: …" for the first; what it does not
 * understand is fine. Source: the Dockerfile reference of Docker.
 */
int dockerfile_check(const char *text, size_t n, struct err *e) MUST_CHECK;
#define DOCKERFILE_MAX (1U << 20)

#endif
