/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_AGENT_TAIL_H
#define ASB_AGENT_TAIL_H

#include <stdint.h>

#include "lib/compiler.h"
#include "lib/err.h"

struct backend;

#define TAIL_LINES_MAX (1U << 20)

/*
 * Where in the output of EXEC_ID, as far as the agent holds it, the last LINES lines of both
 * streams together begin: *RET_OFFSET is for exec_spec.offset. Blocks.
 */
int tail_offset(const struct backend *b, const char *sandbox_id, const char *exec_id,
		uint64_t lines, uint64_t *ret_offset, struct err *e) MUST_CHECK;

#endif
