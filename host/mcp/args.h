/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_MCP_ARGS_H
#define ASB_MCP_ARGS_H

#include "host/mcp/tool.h"
#include "lib/buf.h"

/*
 * GIVEN (an object, or NULL) by the parameters of T, as the Python project's server takes arguments: unknown ones are ignored,
 * text that is JSON stands for a list, an object, a number or a truth value where one is wanted. 0 with *RET (every parameter
 * there, with defaults; the caller's), -EINVAL with the whole complaint in WHY, -ENOMEM.
 */
int args_read(const struct mcp_tool *t, const cJSON *given, cJSON **ret, struct buf *why)
	MUST_CHECK;

#endif
