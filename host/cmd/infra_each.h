/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_CMD_INFRA_EACH_H
#define ASB_CMD_INFRA_EACH_H

#include <stdint.h>

#include "host/cli/opts.h"
#include "host/infra/stack.h"
#include "lib/compiler.h"

/* What one command does with one stack, which is open; DOC is its part of the JSON document. */
typedef int infra_work(const struct cli *c, struct stack *s, cJSON *doc, struct err *e);

/*
 * Calls FN for each stack that -f and --stack describe, PARALLEL (0 = INFRA_PARALLEL_MAX) of them at a time, tells the errors, and goes on.
 * What is printed on stdout comes in the order of the files. The exit status.
 */
#define INFRA_PARALLEL_MAX 16
int infra_each(const struct cli *c, uint64_t parallel, infra_work *fn) MUST_CHECK;

#endif
