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

int tool_exec_start(struct mcp_job *j, struct err *e) MUST_CHECK;

/* t_session.c */
int tool_exec_list(struct mcp_job *j, struct err *e) MUST_CHECK;
int tool_exec_poll(struct mcp_job *j, struct err *e) MUST_CHECK;
int tool_exec_write(struct mcp_job *j, struct err *e) MUST_CHECK;
int tool_exec_signal(struct mcp_job *j, struct err *e) MUST_CHECK;
int tool_exec_close(struct mcp_job *j, struct err *e) MUST_CHECK;

/* t_fs.c, t_file.c */
int tool_fs_mkdir(struct mcp_job *j, struct err *e) MUST_CHECK;
int tool_fs_remove(struct mcp_job *j, struct err *e) MUST_CHECK;
int tool_fs_list(struct mcp_job *j, struct err *e) MUST_CHECK;
int tool_fs_stat(struct mcp_job *j, struct err *e) MUST_CHECK;
int tool_fs_exists(struct mcp_job *j, struct err *e) MUST_CHECK;
int tool_fs_move(struct mcp_job *j, struct err *e) MUST_CHECK; /* with an argument: copies */
int tool_fs_read(struct mcp_job *j, struct err *e) MUST_CHECK;
int tool_fs_write(struct mcp_job *j, struct err *e) MUST_CHECK;
int tool_fs_from_host(struct mcp_job *j, struct err *e) MUST_CHECK;
int tool_fs_to_host(struct mcp_job *j, struct err *e) MUST_CHECK;
int tool_fs_tree(struct mcp_job *j, struct err *e)
	MUST_CHECK; /* with an argument: into the sandbox */

/* t_watch.c */
int tool_logs_read(struct mcp_job *j, struct err *e) MUST_CHECK;
int tool_logs_stream(struct mcp_job *j, struct err *e) MUST_CHECK;
int tool_metrics(struct mcp_job *j, struct err *e) MUST_CHECK;
int tool_metrics_all(struct mcp_job *j, struct err *e) MUST_CHECK;
int tool_metrics_stream(struct mcp_job *j, struct err *e) MUST_CHECK;
int tool_fs_watch(struct mcp_job *j, struct err *e) MUST_CHECK;

/* t_forward.c */
int tool_forward_start(struct mcp_job *j, struct err *e) MUST_CHECK;
int tool_forward_list(struct mcp_job *j, struct err *e) MUST_CHECK;
int tool_forward_stop(struct mcp_job *j, struct err *e) MUST_CHECK;

/* t_snapshot.c */
int tool_snapshot_create(struct mcp_job *j, struct err *e) MUST_CHECK;
int tool_snapshot_restore(struct mcp_job *j, struct err *e) MUST_CHECK;
int tool_snapshot_list(struct mcp_job *j, struct err *e) MUST_CHECK;
int tool_snapshot_remove(struct mcp_job *j, struct err *e) MUST_CHECK;

/* t_platform.c */
int tool_runtime_check(struct mcp_job *j, struct err *e) MUST_CHECK;
int tool_runtime_install(struct mcp_job *j, struct err *e) MUST_CHECK;
int tool_infra_outputs(struct mcp_job *j, struct err *e) MUST_CHECK;
int tool_infra_list(struct mcp_job *j, struct err *e) MUST_CHECK;
/* The backend of new sandboxes where none is named. */
int platform_backend(const struct mcp_config *c, const struct backend **ret, struct err *e)
	MUST_CHECK;
/* The egress connector that is configured, or that infra has made; NULL: there is none. Static storage. */
const char *platform_egress(void);
/* The data of the first and the third into O. */
int platform_runtime(const struct mcp_config *c, cJSON *o, struct err *e) MUST_CHECK;
int platform_infra(const struct mcp_config *c, cJSON *o, struct err *e) MUST_CHECK;

/* t_image.c */
int tool_image_list(struct mcp_job *j, struct err *e) MUST_CHECK;
int tool_image_inspect(struct mcp_job *j, struct err *e) MUST_CHECK;
int tool_image_remove(struct mcp_job *j, struct err *e) MUST_CHECK;
int tool_image_prune(struct mcp_job *j, struct err *e) MUST_CHECK;
/* {"images":[…],"count":N} into O; none where the backend has no images. */
int platform_images(const struct mcp_config *c, cJSON *o, struct err *e) MUST_CHECK;

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
/* "<BEGIN><path, encoded><REST>" into B. */
int fs_request(struct buf *b, const char *begin, const char *path, const char *rest) MUST_CHECK;
/* PATH as tools take it: absolute, or below the working directory. The caller frees it; NULL: memory, or too long. */
char *fs_path(const struct mcp_job *j, const char *path);
/* Makes the working directory; true when it is there now, whoever made it. */
bool fs_make_workdir(const struct mcp_job *j, const struct core_named *n);

#endif
