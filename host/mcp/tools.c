/* SPDX-License-Identifier: Apache-2.0 */
#include "host/mcp/tools.h"

#include <string.h>

/*
 * Every tool, in the order of the Python project's server; what that has not comes behind. Texts are for models: short, and
 * what cannot be guessed from the name.
 */

#define EXEC_RESULT \
	"exit_code:i,success:b,stdout:T,stderr:T,signal:i?,oom:b,lost_bytes:i,duration_ms:i"

static const struct mcp_param none[] = { { NULL } };
static const struct mcp_param only_name[] = { { .name = "name", .kind = MCP_STR }, { NULL } };
static const struct mcp_param maybe_name[] = { { "name", MCP_STR, "null", NULL }, { NULL } };

static const struct mcp_param run_params[] = {
	{ "command", MCP_STR, NULL, NULL },
	{ "image", MCP_STR, "null", NULL },
	{ "role", MCP_STR, "null", NULL },
	{ "region", MCP_STR, "null", NULL },
	{ "cwd", MCP_STR, "null", NULL },
	{ "timeout", MCP_NUM, "null", NULL },
	{ "egress_connector", MCP_STR, "null", NULL },
	{ "egress", MCP_BOOL, "false", NULL },
	{ NULL },
};
static const struct mcp_param create_params[] = {
	{ "name", MCP_STR, NULL, NULL },
	{ "image", MCP_STR, "null", NULL },
	{ "role", MCP_STR, "null", NULL },
	{ "region", MCP_STR, "null", NULL },
	{ "cpus", MCP_INT, "1", NULL },
	{ "memory", MCP_INT, "512", NULL },
	{ "egress_connector", MCP_STR, "null", NULL },
	{ "egress", MCP_BOOL, "false", NULL },
	{ NULL },
};
static const struct mcp_param wait_params[] = {
	{ "name", MCP_STR, NULL, NULL },
	{ "target", MCP_STR, "\"running\"", NULL },
	{ "timeout", MCP_NUM, "120.0", NULL },
	{ NULL },
};
static const struct mcp_param exec_params[] = {
	{ "name", MCP_STR, NULL, NULL },
	{ "command", MCP_STR, NULL, NULL },
	{ "args", MCP_LIST, "null", NULL },
	{ "cwd", MCP_STR, "null", NULL },
	{ "env", MCP_MAP, "null", NULL },
	{ "timeout", MCP_NUM, "null", NULL },
	{ NULL },
};
static const struct mcp_param shell_params[] = {
	{ "name", MCP_STR, NULL, NULL },      { "command", MCP_STR, NULL, NULL },
	{ "cwd", MCP_STR, "null", NULL },     { "env", MCP_MAP, "null", NULL },
	{ "timeout", MCP_NUM, "null", NULL }, { NULL },
};
static const struct mcp_param branch_params[] = {
	{ "name", MCP_STR, NULL, "the sandbox that is copied" },
	{ "names", MCP_LIST, NULL, "names of the copies" },
	{ NULL },
};

const struct mcp_tool mcp_tools[] = {
	{ "sandbox_run",
	  "Runs one shell command in a new sandbox that is thrown away afterwards. For one-off work; nothing is kept.",
	  run_params, EXEC_RESULT ",microvm_id:s", MCP_OPEN | MCP_CAREFUL, tool_run, NULL },
	{ "sandbox_create",
	  "Creates a named sandbox that lives until sandbox_remove. memory is in MiB. egress: true gives it a network.",
	  create_params, "name:s,microvm_id:s,endpoint:s?,state:s", MCP_OPEN | MCP_CAREFUL,
	  tool_create, NULL },
	{ "sandbox_start",
	  "Starts a sandbox that was stopped: it goes on where it was, processes too.", only_name,
	  "name:s,microvm_id:s,endpoint:s?,state:s", MCP_IDEMPOTENT | MCP_CAREFUL, tool_start,
	  NULL },
	{ "sandbox_list", "Lists the sandboxes with their states.", none, "sandboxes:a,count:i",
	  MCP_READ, tool_list, NULL },
	{ "sandbox_status", "The state of one sandbox, or of all when no name is given.",
	  maybe_name,
	  "sandboxes:a?,name:s?,microvm_id:s?,endpoint:s?,image_arn:s?,region:s?,status:s?",
	  MCP_READ, tool_status, NULL },
	{ "sandbox_inspect", "All that the platform knows of a sandbox.", only_name,
	  "name:s,microvm:o", MCP_READ, tool_inspect, NULL },
	{ "sandbox_stop",
	  "Suspends a sandbox: memory and processes are kept, and sandbox_start goes on with them.",
	  only_name, "name:s,state:s", MCP_IDEMPOTENT | MCP_CAREFUL, tool_stop, NULL },
	{ "sandbox_remove", "Ends a sandbox and deletes its files.", only_name, "name:s,removed:b",
	  MCP_DESTRUCTIVE | MCP_CAREFUL, tool_remove, NULL },
	{ "sandbox_wait",
	  "Waits until a sandbox is in a state: pending, running, suspended, stopped, failed.",
	  wait_params, "name:s,state:s,reached_target:b", MCP_READ, tool_wait, NULL },
	{ "sandbox_exec",
	  "Runs a program with arguments in a sandbox, without a shell, and waits for its end.",
	  exec_params, EXEC_RESULT, MCP_CAREFUL, tool_exec, NULL },
	{ "sandbox_shell",
	  "Runs a shell command in a sandbox (bash, else sh), and waits for its end.", shell_params,
	  EXEC_RESULT, MCP_CAREFUL, tool_shell, NULL },
	{ "sandbox_branch",
	  "Copies a sandbox, with its memory, processes and files, into new ones that run on from this instant.",
	  branch_params, "sandboxes:a", MCP_CAREFUL, tool_branch, NULL },
	{ .name = NULL },
};

const struct mcp_tool *mcp_tool_find(const char *name)
{
	for (const struct mcp_tool *t = mcp_tools; t->name; t++)
		if (!strcmp(t->name, name))
			return t;
	return NULL;
}

bool mcp_tool_offered(const struct mcp_tool *t, const struct mcp_config *c)
{
	return (!c->read_only || (t->flags & MCP_READ)) &&
	       (!c->no_network || !(t->flags & MCP_NET));
}
