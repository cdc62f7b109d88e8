/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_MCP_TOOLS_H
#define ASB_MCP_TOOLS_H

#include "host/agent/exec.h"
#include "host/mcp/tool.h"

/* The functions behind the tools, by file, and what these files have in common. */

/* t_life.c */
int tool_create(struct mcp_job *j, struct err *e) MUST_CHECK;
int tool_start(struct mcp_job *j, struct err *e) MUST_CHECK;
int tool_list(struct mcp_job *j, struct err *e) MUST_CHECK;
int tool_status(struct mcp_job *j, struct err *e) MUST_CHECK;
int tool_inspect(struct mcp_job *j, struct err *e) MUST_CHECK;
int tool_stop(struct mcp_job *j, struct err *e) MUST_CHECK;
int tool_remove(struct mcp_job *j, struct err *e) MUST_CHECK;
int tool_wait(struct mcp_job *j, struct err *e) MUST_CHECK;
int tool_branch(struct mcp_job *j, struct err *e) MUST_CHECK;

/* t_run.c */
int tool_run(struct mcp_job *j, struct err *e) MUST_CHECK;
int tool_exec(struct mcp_job *j, struct err *e) MUST_CHECK;
int tool_shell(struct mcp_job *j, struct err *e) MUST_CHECK;

/* t_life.c: SPEC from the arguments of create and run; *RET_BACKEND makes it. IMAGE is borrowed from the arguments or static. */
int life_spec(struct mcp_job *j, struct sandbox_spec *spec, const struct backend **ret_backend,
	      struct err *e) MUST_CHECK;
#define LIFE_START_NS (120 * 1000000000LL)
/* One sandbox as sandbox_list has it; NULL: memory. */
cJSON *life_summary(const struct state_record *r);
/* {"sandboxes":[…],"count":N} into O. */
int life_list(cJSON *o, struct err *e) MUST_CHECK;
/* The Python project's word for a state: "running", "suspended", "stopped", … */
const char *life_state(const struct core_named *n);

/* t_fs.c: one question to the agent of N: POST PATH with BODY (freed). */
int fs_post(const struct core_named *n, const char *path, cJSON *body, cJSON **ret, struct err *e)
	MUST_CHECK;
/* PATH as tools take it: absolute, or below the working directory. The caller frees it; NULL: memory, or too long. */
char *fs_path(const struct mcp_job *j, const char *path);
/* Makes the working directory; true when it was not there. */
bool fs_make_workdir(const struct mcp_job *j, const struct core_named *n);

#endif
