/* SPDX-License-Identifier: Apache-2.0 */
#include "host/mcp/tools.h"

#include <string.h>

/*
 * Every tool, in the order of the Python project's server; what that has not comes behind. Texts are for models: short, and
 * what cannot be guessed from the name.
 */

/* Shapes (schema.h) that several results have. */
#define EXEC_RESULT \
	"exit_code:i,success:b,stdout:T,stderr:T,signal:i?,oom:b,lost_bytes:i,duration_ms:i"
#define RUNTIME \
	"backend:s,region:s?,boto3_available:b,lambda_microvms_client:b,aws_credentials:b,image_arn:s?,role_arn:s?,ready:b,checks:a{check:s,status:s,text:s}"
#define SUMMARY "{name:s,microvm_id:s,endpoint:s?,image_arn:s?,region:s?,status:s,backend:s}"
#define VALUE	"{value:s?,source:s}"
#define METRICS "{CPUUtilization:n?,MemoryUtilization:n?}"
#define FORWARD "name:s,address:s,local_port:i,port:i"
#define IMAGE \
	"{name:s,version:i,newest:b,installed:b,sha256:s?,created_at:s?,source:s?,path:s?,bytes:i,unique_bytes:i,templates:i,template_bytes:i,used_by:as,broken:s,arn:s~,state:s?}"
#define SESSION \
	"{id:s,state:s,pid:i,exit_code:i?,signal:i?,timed_out:b,oom:b,truncated:b,stdout_bytes:i,stderr_bytes:i,started_at:i,duration_ms:i,argv:as~,shell:s~,args_cut:b~,user:*~,seccomp:s~,stdin_offset:i~,pty:*~}"

static const struct mcp_param none_params[] = {
	{ NULL },
};
static const struct mcp_param only_name_params[] = {
	{ "name", MCP_STR, NULL, NULL },
	{ NULL },
};
static const struct mcp_param forward_params[] = {
	{ "name", MCP_STR, NULL, NULL },
	{ "port", MCP_INT, NULL, "of the sandbox, TCP" },
	{ "local_port", MCP_INT, "0", "of this machine; 0 picks a free one" },
	{ NULL },
};
static const struct mcp_param forward_stop_params[] = {
	{ "local_port", MCP_INT, NULL, NULL },
	{ NULL },
};
static const struct mcp_param maybe_name_params[] = {
	{ "name", MCP_STR, "null", NULL },
	{ NULL },
};
static const struct mcp_param infra_outputs_params[] = {
	{ "setup_file", MCP_STR, "null", NULL },
	{ "project", MCP_STR, "null", NULL },
	{ "stack", MCP_STR, "null", NULL },
	{ NULL },
};
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
static const struct mcp_param fs_read_params[] = {
	{ "name", MCP_STR, NULL, NULL },
	{ "path", MCP_STR, NULL, NULL },
	{ "encoding", MCP_STR, "\"text\"", NULL },
	{ "offset", MCP_INT, "0",
	  "bytes of the file that are left out; next_offset of the answer before" },
	{ NULL },
};
static const struct mcp_param fs_write_params[] = {
	{ "name", MCP_STR, NULL, NULL },
	{ "path", MCP_STR, NULL, NULL },
	{ "content", MCP_STR, NULL, NULL },
	{ "encoding", MCP_STR, "\"text\"", NULL },
	{ NULL },
};
static const struct mcp_param fs_list_params[] = {
	{ "name", MCP_STR, NULL, NULL },
	{ "path", MCP_STR, "null", NULL },
	{ NULL },
};
static const struct mcp_param fs_path_params[] = {
	{ "name", MCP_STR, NULL, NULL },
	{ "path", MCP_STR, NULL, NULL },
	{ NULL },
};
static const struct mcp_param fs_remove_params[] = {
	{ "name", MCP_STR, NULL, NULL },
	{ "path", MCP_STR, NULL, NULL },
	{ "recursive", MCP_BOOL, "false", NULL },
	{ NULL },
};
static const struct mcp_param fs_two_params[] = {
	{ "name", MCP_STR, NULL, NULL },
	{ "src", MCP_STR, NULL, NULL },
	{ "dst", MCP_STR, NULL, NULL },
	{ NULL },
};
static const struct mcp_param from_host_params[] = {
	{ "name", MCP_STR, NULL, NULL },
	{ "host_path", MCP_STR, NULL, NULL },
	{ "dest", MCP_STR, NULL, NULL },
	{ NULL },
};
static const struct mcp_param to_host_params[] = {
	{ "name", MCP_STR, NULL, NULL },
	{ "src", MCP_STR, NULL, NULL },
	{ "host_path", MCP_STR, NULL, NULL },
	{ NULL },
};
static const struct mcp_param logs_read_params[] = {
	{ "name", MCP_STR, NULL, NULL },
	{ "tail", MCP_INT, "100", NULL },
	{ "since_minutes", MCP_INT, "null", NULL },
	{ "grep", MCP_STR, "null", NULL },
	{ "log_group", MCP_STR, "null", NULL },
	{ NULL },
};
static const struct mcp_param logs_stream_params[] = {
	{ "name", MCP_STR, NULL, NULL },
	{ "cursor", MCP_STR, "null", NULL },
	{ "follow_timeout_ms", MCP_INT, "5000", NULL },
	{ "log_group", MCP_STR, "null", NULL },
	{ NULL },
};
static const struct mcp_param metrics_stream_params[] = {
	{ "name", MCP_STR, NULL, NULL },
	{ "samples", MCP_INT, "5", NULL },
	{ "interval_ms", MCP_INT, "60000", NULL },
	{ NULL },
};
static const struct mcp_param image_list_params[] = {
	{ "managed", MCP_BOOL, "false", NULL },
	{ NULL },
};
static const struct mcp_param image_inspect_params[] = {
	{ "image_arn", MCP_STR, NULL, NULL },
	{ NULL },
};
static const struct mcp_param image_remove_params[] = {
	{ "image_arn", MCP_STR, NULL, NULL },
	{ "confirm", MCP_BOOL, "false", NULL },
	{ NULL },
};
static const struct mcp_param image_prune_params[] = {
	{ "confirm", MCP_BOOL, "false", NULL },
	{ NULL },
};
static const struct mcp_param exec_start_params[] = {
	{ "name", MCP_STR, NULL, NULL },
	{ "command", MCP_STR, NULL, NULL },
	{ "args", MCP_LIST, "null", NULL },
	{ "cwd", MCP_STR, "null", NULL },
	{ "env", MCP_MAP, "null", NULL },
	{ "timeout", MCP_NUM, "null", "seconds of running time; none by default" },
	{ "stdin", MCP_BOOL, "false", "keep its input open for sandbox_exec_write" },
	{ NULL },
};
static const struct mcp_param exec_poll_params[] = {
	{ "name", MCP_STR, NULL, NULL },
	{ "session", MCP_STR, NULL, NULL },
	{ "offset", MCP_INT, "0", "next_offset of the answer before" },
	{ "wait_ms", MCP_INT, "0", "wait so long for something new" },
	{ "encoding", MCP_STR, "\"text\"", "text or base64" },
	{ NULL },
};
static const struct mcp_param exec_write_params[] = {
	{ "name", MCP_STR, NULL, NULL },
	{ "session", MCP_STR, NULL, NULL },
	{ "data", MCP_STR, NULL, NULL },
	{ "encoding", MCP_STR, "\"text\"", "text or base64" },
	{ "eof", MCP_BOOL, "false", "close its input afterwards" },
	{ NULL },
};
static const struct mcp_param exec_signal_params[] = {
	{ "name", MCP_STR, NULL, NULL },
	{ "session", MCP_STR, NULL, NULL },
	{ "signal", MCP_STR, "\"TERM\"", "by name" },
	{ "to", MCP_STR, "\"tree\"", "tree, group or leader" },
	{ NULL },
};
static const struct mcp_param session_params[] = {
	{ "name", MCP_STR, NULL, NULL },
	{ "session", MCP_STR, NULL, NULL },
	{ NULL },
};
static const struct mcp_param branch_params[] = {
	{ "name", MCP_STR, NULL, "the sandbox that is copied" },
	{ "names", MCP_LIST, NULL, "names of the copies" },
	{ NULL },
};
static const struct mcp_param snapshot_params[] = {
	{ "name", MCP_STR, NULL, NULL },
	{ "snapshot", MCP_STR, NULL, "the snapshot's own name" },
	{ "disk_only", MCP_BOOL, "false", "without memory: it then boots" },
	{ NULL },
};
static const struct mcp_param snapshot_name_params[] = {
	{ "snapshot", MCP_STR, NULL, NULL },
	{ NULL },
};
static const struct mcp_param watch_params[] = {
	{ "name", MCP_STR, NULL, NULL },
	{ "path", MCP_STR, NULL, NULL },
	{ "recursive", MCP_BOOL, "true", NULL },
	{ "timeout_ms", MCP_INT, "30000", NULL },
	{ NULL },
};

const struct mcp_tool mcp_tools[] = {
	{ "runtime_check", "Whether sandboxes can be started here, and what is missing.",
	  none_params, RUNTIME, MCP_READ, tool_runtime_check, NULL },
	{ "runtime_install", "Tells what has to be installed before sandboxes can be started.",
	  none_params, "message:s,runtime:{" RUNTIME "}", MCP_READ, tool_runtime_install, NULL },
	{ "infra_outputs", "What was provisioned in AWS: image, roles, network. Empty without AWS.",
	  infra_outputs_params,
	  "ready:b,project:s?,stack:s?,region:s?,image_arn:" VALUE ",role_arn:" VALUE
	  ",egress_connector_arn:" VALUE ",build_bucket:s?,network:o,raw_infra_outputs:o",
	  MCP_READ, tool_infra_outputs, NULL },
	{ "infra_list", "The stacks that were provisioned in AWS.", none_params,
	  "stacks:a{project:s,stack:s},count:i", MCP_READ, tool_infra_list, NULL },
	{ "sandbox_run",
	  "Runs one shell command in a new sandbox that is thrown away afterwards. For one-off work; nothing is kept.",
	  run_params, EXEC_RESULT ",microvm_id:s", MCP_OPEN | MCP_CAREFUL, tool_run, NULL },
	{ "sandbox_create",
	  "Creates a named sandbox that lives until sandbox_remove. memory is in MiB. egress: true gives it a network.",
	  create_params, "name:s,microvm_id:s,endpoint:s?,state:s", MCP_OPEN | MCP_CAREFUL,
	  tool_create, NULL },
	{ "sandbox_start",
	  "Starts a sandbox that was stopped: it goes on where it was, processes too.",
	  only_name_params, "name:s,microvm_id:s,endpoint:s?,state:s", MCP_IDEMPOTENT | MCP_CAREFUL,
	  tool_start, NULL },
	{ "sandbox_list", "Lists the sandboxes with their states.", none_params,
	  "sandboxes:a" SUMMARY ",count:i", MCP_READ, tool_list, NULL },
	{ "sandbox_status", "The state of one sandbox, or of all when no name is given.",
	  maybe_name_params,
	  "sandboxes:a" SUMMARY
	  "?,name:s?,microvm_id:s?,endpoint:s?,image_arn:s?,region:s?,status:s?,backend:s?",
	  MCP_READ, tool_status, NULL },
	{ "sandbox_inspect", "All that the platform knows of a sandbox.", only_name_params,
	  "name:s,microvm:o", MCP_READ, tool_inspect, NULL },
	{ "sandbox_stop",
	  "Suspends a sandbox: memory and processes are kept, and sandbox_start goes on with them.",
	  only_name_params, "name:s,state:s", MCP_IDEMPOTENT | MCP_CAREFUL, tool_stop, NULL },
	{ "sandbox_remove", "Ends a sandbox and deletes its files.", only_name_params,
	  "name:s,removed:b", MCP_DESTRUCTIVE | MCP_CAREFUL, tool_remove, NULL },
	{ "sandbox_wait",
	  "Waits until a sandbox is in a state: pending, running, suspended, stopped, failed.",
	  wait_params, "name:s,state:s,reached_target:b", MCP_READ, tool_wait, NULL },
	{ "sandbox_exec",
	  "Runs a program with arguments in a sandbox, without a shell, and waits for its end. Output beyond the cap is lost: sandbox_exec_start keeps it.",
	  exec_params, EXEC_RESULT, MCP_DESTRUCTIVE | MCP_CAREFUL, tool_exec, NULL },
	{ "sandbox_shell",
	  "Runs a shell command in a sandbox (bash, else sh), and waits for its end.", shell_params,
	  EXEC_RESULT, MCP_DESTRUCTIVE | MCP_CAREFUL, tool_shell, NULL },
	{ "sandbox_fs_read",
	  "Reads a file. What is longer than the cap goes on at next_offset; what is no text comes as base64.",
	  fs_read_params, "path:s,encoding:s,content:T,size:i,next_offset:i?", MCP_READ,
	  tool_fs_read, NULL },
	{ "sandbox_fs_write",
	  "Writes a file, whole: missing directories are made, an old file is replaced.",
	  fs_write_params, "path:s,bytes_written:i", MCP_DESTRUCTIVE | MCP_IDEMPOTENT,
	  tool_fs_write, NULL },
	{ "sandbox_fs_list", "Lists a directory.", fs_list_params,
	  "path:s,entries:a{name:s,is_dir:b~,is_symlink:b~,size:n~,mode:s~,mtime:n~,error:s~}",
	  MCP_READ, tool_fs_list, NULL },
	{ "sandbox_fs_mkdir", "Makes a directory and its parents.", fs_path_params,
	  "path:s,created:b", MCP_IDEMPOTENT, tool_fs_mkdir, NULL },
	{ "sandbox_fs_remove",
	  "Removes a file, or with recursive a directory. What is missing is no error.",
	  fs_remove_params, "path:s,removed:b", MCP_DESTRUCTIVE | MCP_IDEMPOTENT, tool_fs_remove,
	  NULL },
	{ "sandbox_fs_copy", "Copies a file or directory within a sandbox, as cp -r.",
	  fs_two_params, "src:s,dst:s", MCP_DESTRUCTIVE, tool_fs_move, "copy" },
	{ "sandbox_fs_rename", "Renames or moves a file or directory, as mv.", fs_two_params,
	  "src:s,dst:s", MCP_DESTRUCTIVE, tool_fs_move, NULL },
	{ "sandbox_fs_stat", "What a file is: size, mode, owner, times.", fs_path_params,
	  "path:s,size:n,mode:s,is_dir:b,is_file:b,is_symlink:b,mtime:n,uid:n,gid:n", MCP_READ,
	  tool_fs_stat, NULL },
	{ "sandbox_fs_exists", "Whether there is something under a path.", fs_path_params,
	  "path:s,exists:b", MCP_READ, tool_fs_exists, NULL },
	{ "sandbox_fs_copy_from_host", "Copies a file of this machine into a sandbox.",
	  from_host_params, "host_path:s,dest:s,bytes_written:i", MCP_DESTRUCTIVE | MCP_OPEN,
	  tool_fs_from_host, NULL },
	{ "sandbox_fs_copy_to_host",
	  "Copies a file of a sandbox to this machine; an old one is replaced.", to_host_params,
	  "src:s,host_path:s,bytes_written:i", MCP_DESTRUCTIVE | MCP_OPEN | MCP_CAREFUL,
	  tool_fs_to_host, NULL },
	{ "sandbox_logs_read", "The last lines of what kernel and services of a sandbox wrote.",
	  logs_read_params, "log_group:s?,count:i,logs:T", MCP_READ, tool_logs_read, NULL },
	{ "sandbox_logs_stream",
	  "What came in the log since the cursor of the answer before; waits for it.",
	  logs_stream_params, "log_group:s?,count:i,cursor:s?,logs:T", MCP_READ, tool_logs_stream,
	  NULL },
	{ "sandbox_metrics",
	  "CPU and memory of a sandbox, in percent, and all that its agent measures.",
	  only_name_params, "name:s,microvm_id:s,metrics:" METRICS ",live:o", MCP_READ,
	  tool_metrics, NULL },
	{ "sandbox_metrics_all", "CPU and memory of every sandbox that runs.", none_params,
	  "sandboxes:a{name:s,microvm_id:s,metrics:" METRICS "~,error:s~}", MCP_READ,
	  tool_metrics_all, NULL },
	{ "sandbox_metrics_stream", "CPU and memory of a sandbox, several times.",
	  metrics_stream_params, "name:s,samples:a{sample:i,at:s,metrics:" METRICS "}", MCP_READ,
	  tool_metrics_stream, NULL },
	{ "image_list", "Lists the images that sandboxes can start from.", image_list_params,
	  "managed:b,count:i,images:a" IMAGE, MCP_READ, tool_image_list, NULL },
	{ "image_inspect", "One image, by NAME or NAME:VERSION.", image_inspect_params,
	  "managed:b,image:o", MCP_READ, tool_image_inspect, NULL },
	{ "image_remove",
	  "Deletes an image: NAME:VERSION, or all versions of NAME. Needs confirm: true.",
	  image_remove_params, "image_arn:s,removed:b,versions:as", MCP_DESTRUCTIVE | MCP_CAREFUL,
	  tool_image_remove, NULL },
	{ "image_prune", "Deletes old versions of images that nothing uses. Needs confirm: true.",
	  image_prune_params, "removed:as,kept:as,removed_count:i", MCP_DESTRUCTIVE | MCP_CAREFUL,
	  tool_image_prune, NULL },
	{ "sandbox_exec_start",
	  "Starts a program that runs on; its session is for sandbox_exec_poll, _write, _signal and _close.",
	  exec_start_params, "name:s,session:s", MCP_DESTRUCTIVE | MCP_CAREFUL, tool_exec_start,
	  NULL },
	{ "sandbox_exec_poll", "What a session has written since offset, and whether it has ended.",
	  exec_poll_params,
	  "session:s,state:s,stdout:C,stderr:C,exit_code:i?,signal:i?,timed_out:b?,oom:b?,duration_ms:i?,offset:i,next_offset:i,lost_bytes:i,more:b",
	  MCP_READ, tool_exec_poll, NULL },
	{ "sandbox_exec_write",
	  "Writes to the input of a session that was started with stdin: true.", exec_write_params,
	  "session:s,bytes_written:i,offset:i", MCP_DESTRUCTIVE, tool_exec_write, NULL },
	{ "sandbox_exec_signal", "Sends a signal to a session.", exec_signal_params,
	  "session:s,signal:s", MCP_DESTRUCTIVE, tool_exec_signal, NULL },
	{ "sandbox_exec_close",
	  "Kills a session if it runs, with all it has started, and forgets its output.",
	  session_params, "session:s,closed:b", MCP_DESTRUCTIVE, tool_exec_close, NULL },
	{ "sandbox_exec_list", "The sessions of a sandbox.", only_name_params, "sessions:a" SESSION,
	  MCP_READ, tool_exec_list, NULL },
	{ "sandbox_branch",
	  "Copies a sandbox, with its memory, processes and files, into new ones that run on from this instant.",
	  branch_params, "sandboxes:a{name:s,microvm_id:s~,error:{code:s,message:s}~}", MCP_CAREFUL,
	  tool_branch, NULL },
	{ "sandbox_fs_watch", "Waits for changes below a path, and tells them.", watch_params,
	  "path:s,events:a{event:s,path:s~,to:s~,type:s~,path_b64:s~,to_b64:s~},truncated:b",
	  MCP_READ, tool_fs_watch, NULL },
	{ "sandbox_fs_upload",
	  "Copies a file or directory of this machine into a sandbox, as docker cp.",
	  from_host_params, "host_path:s,dest:s,bytes_written:i,members:i",
	  MCP_DESTRUCTIVE | MCP_OPEN | MCP_CAREFUL, tool_fs_tree, "in" },
	{ "sandbox_fs_download",
	  "Copies a file or directory of a sandbox to this machine, as docker cp.", to_host_params,
	  "src:s,host_path:s,bytes_written:i,members:i", MCP_DESTRUCTIVE | MCP_OPEN | MCP_CAREFUL,
	  tool_fs_tree, NULL },
	{ "sandbox_forward_start",
	  "Makes a TCP port of a sandbox reachable at 127.0.0.1:local_port of this machine, until sandbox_forward_stop or the end of this server.",
	  forward_params, FORWARD, MCP_OPEN | MCP_CAREFUL, tool_forward_start, NULL },
	{ "sandbox_forward_list", "The ports that this server forwards.", none_params,
	  "forwards:a{" FORWARD "},count:i", MCP_READ, tool_forward_list, NULL },
	{ "sandbox_forward_stop", "Ends a forward, with its connections.", forward_stop_params,
	  "local_port:i,stopped:b", MCP_IDEMPOTENT, tool_forward_stop, NULL },
	{ "snapshot_create", "Keeps a copy of a sandbox, with its memory and disk, under a name.",
	  snapshot_params, "name:s,snapshot:s", MCP_CAREFUL, tool_snapshot_create, NULL },
	{ "snapshot_restore", "Makes a new sandbox that goes on where the snapshot was taken.",
	  snapshot_params, "name:s,microvm_id:s,snapshot:s", MCP_CAREFUL, tool_snapshot_restore,
	  NULL },
	{ "snapshot_list", "Lists the snapshots.", none_params,
	  "snapshots:a{name:s,source:s,image:s,memory:b,bytes:i,created:i,broken:s?},count:i",
	  MCP_READ, tool_snapshot_list, NULL },
	{ "snapshot_remove", "Deletes a snapshot.", snapshot_name_params, "snapshot:s,removed:b",
	  MCP_DESTRUCTIVE | MCP_CAREFUL, tool_snapshot_remove, NULL },
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
	return !c->read_only || (t->flags & MCP_READ);
}
