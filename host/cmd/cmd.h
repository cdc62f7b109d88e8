/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_CMD_H
#define ASB_CMD_H

/* One function a command, each in the file of its name; returns the exit status of asb. */
struct cli;

int cmd_run(const struct cli *c);
int cmd_create(const struct cli *c);
int cmd_branch(const struct cli *c);
int cmd_snapshot_create(const struct cli *c);
int cmd_snapshot_ls(const struct cli *c);
int cmd_snapshot_inspect(const struct cli *c);
int cmd_snapshot_restore(const struct cli *c);
int cmd_snapshot_rm(const struct cli *c);
int cmd_snapshot_save(const struct cli *c);
int cmd_snapshot_load(const struct cli *c);
int cmd_exec(const struct cli *c);
int cmd_shell(const struct cli *c);
int cmd_execs(const struct cli *c);
int cmd_forward(const struct cli *c);
int cmd_kill(const struct cli *c);
int cmd_cp(const struct cli *c);
int cmd_metrics(const struct cli *c);
int cmd_wait(const struct cli *c);
int cmd_ls(const struct cli *c);
int cmd_ps(const struct cli *c);
int cmd_inspect(const struct cli *c);
int cmd_logs(const struct cli *c);
int cmd_stop(const struct cli *c);
int cmd_start(const struct cli *c);
int cmd_restart(const struct cli *c);
int cmd_rm(const struct cli *c);
int cmd_infra_init(const struct cli *c);
int cmd_infra_output(const struct cli *c);
int cmd_infra_preview(const struct cli *c);
int cmd_infra_up(const struct cli *c);
int cmd_infra_refresh(const struct cli *c);
int cmd_infra_destroy(const struct cli *c);
int cmd_mcp(const struct cli *c);
int cmd_image_build(const struct cli *c);
int cmd_image_init(const struct cli *c);
int cmd_image_ls(const struct cli *c);
int cmd_image_inspect(const struct cli *c);
int cmd_image_rm(const struct cli *c);
int cmd_image_prune(const struct cli *c);
int cmd_gc(const struct cli *c);
int cmd_prune(const struct cli *c);
int cmd_doctor(const struct cli *c);
int cmd_version(const struct cli *c);
int cmd_help(const struct cli *c);
int cmd_completion(const struct cli *c);
int cmd_manifest(const struct cli *c);
int cmd_supervise(const struct cli *c);

#endif
