/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_MCP_POLICY_H
#define ASB_MCP_POLICY_H

#include "host/mcp/tool.h"

/*
 * PATH of this machine with every link resolved, when it is one of the folders that the configuration allows or below one; what is not
 * there yet counts by the part of it that is. The caller frees *RET. -EACCES with code policy_denied, or what looking at it failed of.
 */
int policy_path(struct mcp_job *j, const char *path, char **ret, struct err *e) MUST_CHECK;
/* --no-network: what HAS_ONE is refused; THING has it. --read-only: sandbox N is refused when it would have to be resumed, or
 * when that cannot be read. 0, or a negative errno with E and code policy_denied. */
int policy_network(struct mcp_job *j, bool has_one, const char *thing, struct err *e) MUST_CHECK;
int policy_resume(struct mcp_job *j, const struct core_named *n, struct err *e) MUST_CHECK;

#endif
