/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_CLI_TAKES_H
#define ASB_CLI_TAKES_H

#include "host/cli/spec.h"

/* For table.c: the arguments and options of the commands, each list with its end mark. */

extern const struct arg_spec takes_no_args[], takes_one_sandbox[], takes_some_sandboxes[],
	takes_maybe_sandbox[], takes_run_args[], takes_exec_args[], takes_kill_args[],
	takes_logs_args[], takes_wait_args[], takes_forward_args[], takes_cp_args[],
	takes_output_args[], takes_topic_args[], takes_shell_args[];
extern const enum opt_id takes_gc_opts[], takes_plain_opts[], takes_place_opts[], takes_text_opts[],
	takes_ls_opts[], takes_ls_all_opts[], takes_run_opts[], takes_create_opts[],
	takes_cp_opts[], takes_exec_opts[], takes_shell_opts[], takes_branch_opts[],
	takes_start_opts[], takes_restart_opts[], takes_rm_opts[], takes_execs_opts[],
	takes_metrics_opts[], takes_wait_opts[], takes_kill_opts[], takes_logs_opts[],
	takes_forward_opts[], takes_manifest_opts[], takes_infra_init_opts[],
	takes_infra_output_opts[], takes_mcp_opts[];

extern const struct arg_spec takes_snapshot_args[], takes_some_snapshots[],
	takes_snapshot_create_args[], takes_snapshot_restore_args[], takes_snapshot_save_args[],
	takes_snapshot_load_args[];
extern const enum opt_id takes_infra_up_opts[], takes_infra_preview_opts[],
	takes_infra_refresh_opts[], takes_infra_destroy_opts[];
extern const enum opt_id takes_snapshot_opts[], takes_snapshot_restore_opts[];

extern const struct arg_spec takes_source_args[], takes_folder_args[], takes_one_image[],
	takes_some_images[];
extern const enum opt_id takes_image_ls_opts[], takes_image_opts[];
extern const enum opt_id takes_init_opts[], takes_build_opts[], takes_image_rm_opts[],
	takes_image_prune_opts[], takes_prune_opts[];

#endif
