/* SPDX-License-Identifier: Apache-2.0 */
#ifndef AGENTD_DESCRIBE_H
#define AGENTD_DESCRIBE_H

#include <cJSON.h>

#include "exec.h"

/* The object of GET /v1/execs/{id}; the caller's. NULL when memory runs out. */
cJSON *describe_exec(const struct exec *e) MUST_CHECK;

/* Keeps in E what S asked for, cut to a bounded size; nothing when memory runs out. */
void describe_remember(struct exec *e, const struct spec *s);

#endif
