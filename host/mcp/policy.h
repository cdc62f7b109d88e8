/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_MCP_POLICY_H
#define ASB_MCP_POLICY_H

#include "host/mcp/tool.h"

/*
 * PATH of this machine with every link resolved, when it is one of the folders that the configuration allows or below one; what is not
 * there yet counts by the part of it that is. The caller frees *RET. -EACCES with code policy_denied, or what looking at it failed of.
 */
int policy_path(struct mcp_job *j, const char *path, char **ret, struct err *e) MUST_CHECK;

#endif
