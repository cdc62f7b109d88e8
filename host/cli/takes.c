/* SPDX-License-Identifier: Apache-2.0 */
#include "host/cli/takes.h"

#include <stddef.h>

/* Which arguments and options the commands of table.c take. */

static const char *const shell_names[] = { "bash", "zsh", "fish", NULL };

const enum opt_id cli_global_opts[] = { OPT_JSON, OPT_QUIET,   OPT_VERBOSE,
					OPT_HELP, OPT_VERSION, OPT_COUNT };

const struct arg_spec takes_no_args[] = { { NULL } };
const struct arg_spec takes_one_sandbox[] = {
	{ .name = "NAME", .kind = ARG_SANDBOX, .help = "the sandbox" },
	{ NULL },
};
const struct arg_spec takes_some_sandboxes[] = {
	{ .name = "NAME", .kind = ARG_SANDBOX, .many = true, .help = "the sandboxes" },
	{ NULL },
};
const struct arg_spec takes_maybe_sandbox[] = {
	{ .name = "NAME", .kind = ARG_SANDBOX, .optional = true, .help = "the sandbox; else all" },
	{ NULL },
};
const struct arg_spec takes_run_args[] = {
	{ .name = "IMAGE",
	  .kind = ARG_IMAGE,
	  .optional = true,
	  .help = "what the sandbox starts from; base when the command follows -- directly" },
	{ .name = "COMMAND", .kind = ARG_COMMAND, .help = "the program and its arguments" },
	{ NULL },
};
const struct arg_spec takes_exec_args[] = {
	{ .name = "NAME", .kind = ARG_SANDBOX, .help = "the sandbox" },
	{ .name = "COMMAND", .kind = ARG_COMMAND, .help = "the program and its arguments" },
	{ NULL },
};
const struct arg_spec takes_kill_args[] = {
	{ .name = "NAME", .kind = ARG_SANDBOX, .help = "the sandbox" },
	{ .name = "ID", .kind = ARG_EXEC, .help = "the command, as asb execs lists it" },
	{ .name = "SIGNAL",
	  .kind = ARG_SIGNAL,
	  .optional = true,
	  .help = "the signal, by name or number; else that of --signal" },
	{ NULL },
};
const struct arg_spec takes_logs_args[] = {
	{ .name = "NAME", .kind = ARG_SANDBOX, .help = "the sandbox" },
	{ .name = "ID",
	  .kind = ARG_EXEC,
	  .optional = true,
	  .help = "a command in it, whose output is wanted instead (asb execs)" },
	{ NULL },
};
const struct arg_spec takes_wait_args[] = {
	{ .name = "NAME", .kind = ARG_SANDBOX, .help = "the sandbox" },
	{ .name = "ID",
	  .kind = ARG_EXEC,
	  .optional = true,
	  .help = "a command in it, as asb execs lists it; else the sandbox itself" },
	{ NULL },
};
const struct arg_spec takes_forward_args[] = {
	{ .name = "NAME", .kind = ARG_SANDBOX, .help = "the sandbox" },
	{ .name = "PORT",
	  .kind = ARG_PORT,
	  .optional = true,
	  .many = true,
	  .help = "[[ADDRESS:]LOCAL:]REMOTE; LOCAL 0 or empty: a free port is picked" },
	{ NULL },
};
const struct arg_spec takes_cp_args[] = {
	{ .name = "SRC",
	  .kind = ARG_COPY,
	  .help = "NAME:PATH in a sandbox, a path here, or - for a tar on standard input" },
	{ .name = "DST",
	  .kind = ARG_COPY,
	  .help = "the other: a path here, NAME:PATH, or - for a tar on standard output" },
	{ NULL },
};
const struct arg_spec takes_source_args[] = {
	{ .name = "SOURCE",
	  .kind = ARG_FILE,
	  .help = "a directory of files, one with a Dockerfile, a tar file, or - for a tar on standard input" },
	{ NULL },
};
const struct arg_spec takes_folder_args[] = {
	{ .name = "DIR", .kind = ARG_FILE, .help = "the folder; it is made when it is not there" },
	{ NULL },
};
const struct arg_spec takes_one_image[] = {
	{ .name = "IMAGE", .kind = ARG_IMAGE, .help = "NAME, or NAME:VERSION" },
	{ NULL },
};
const struct arg_spec takes_some_images[] = {
	{ .name = "IMAGE",
	  .kind = ARG_IMAGE,
	  .many = true,
	  .help = "NAME for all its versions, or NAME:VERSION" },
	{ NULL },
};
const struct arg_spec takes_topic_args[] = {
	{ .name = "COMMAND",
	  .kind = ARG_TOPIC,
	  .optional = true,
	  .many = true,
	  .help = "the command" },
	{ NULL },
};
const struct arg_spec takes_shell_args[] = {
	{ .name = "SHELL",
	  .kind = ARG_CHOICE,
	  .choices = shell_names,
	  .help = "bash, zsh or fish" },
	{ NULL },
};
const struct arg_spec takes_output_args[] = {
	{ .name = "OUTPUT", .kind = ARG_WORD, .optional = true, .help = "only this one, bare" },
	{ NULL },
};

const struct arg_spec takes_snapshot_args[] = {
	{ .name = "SNAPSHOT", .kind = ARG_SNAPSHOT, .help = "the snapshot" },
	{ NULL },
};
const struct arg_spec takes_some_snapshots[] = {
	{ .name = "SNAPSHOT", .kind = ARG_SNAPSHOT, .many = true, .help = "the snapshots" },
	{ NULL },
};
const struct arg_spec takes_snapshot_create_args[] = {
	{ .name = "SANDBOX", .kind = ARG_SANDBOX, .help = "the sandbox" },
	{ .name = "NAME",
	  .kind = ARG_NAME,
	  .optional = true,
	  .help = "the name of the snapshot; else that of the sandbox and the time" },
	{ NULL },
};
const struct arg_spec takes_snapshot_restore_args[] = {
	{ .name = "SNAPSHOT", .kind = ARG_SNAPSHOT, .help = "the snapshot" },
	{ .name = "NAME", .kind = ARG_NAME, .help = "the name of the new sandbox" },
	{ NULL },
};
const struct arg_spec takes_snapshot_save_args[] = {
	{ .name = "SNAPSHOT", .kind = ARG_SNAPSHOT, .help = "the snapshot" },
	{ .name = "FILE", .kind = ARG_FILE, .help = "the file, or - for standard output" },
	{ NULL },
};
const struct arg_spec takes_snapshot_load_args[] = {
	{ .name = "FILE", .kind = ARG_FILE, .help = "the file, or - for standard input" },
	{ .name = "NAME",
	  .kind = ARG_NAME,
	  .optional = true,
	  .help = "the name of the snapshot; else the one that it had" },
	{ NULL },
};

/* Where on AWS the sandbox is, and as whom. */
#define PLACE OPT_REGION, OPT_PROFILE
const enum opt_id takes_place_opts[] = { PLACE,	      OPT_JSON, OPT_QUIET,
					 OPT_VERBOSE, OPT_HELP, OPT_COUNT };
const enum opt_id takes_gc_opts[] = { OPT_YES,	 OPT_DRY_RUN, PLACE,	OPT_JSON,
				      OPT_QUIET, OPT_HELP,    OPT_COUNT };
const enum opt_id takes_plain_opts[] = { OPT_JSON, OPT_QUIET, OPT_VERBOSE, OPT_HELP, OPT_COUNT };
const enum opt_id takes_infra_up_opts[] = { OPT_CONFIG,	     OPT_STACK,	  OPT_REBUILD, OPT_NO_CHECK,
					    OPT_PARALLELISM, OPT_PROFILE, OPT_JSON,    OPT_QUIET,
					    OPT_VERBOSE,     OPT_HELP,	  OPT_COUNT };
const enum opt_id takes_infra_preview_opts[] = { OPT_CONFIG,  OPT_STACK, OPT_REBUILD, OPT_NO_CHECK,
						 OPT_PROFILE, OPT_JSON,	 OPT_QUIET,   OPT_VERBOSE,
						 OPT_HELP,    OPT_COUNT };
const enum opt_id takes_infra_refresh_opts[] = { OPT_CONFIG, OPT_STACK,	  OPT_PROFILE, OPT_JSON,
						 OPT_QUIET,  OPT_VERBOSE, OPT_HELP,    OPT_COUNT };
const enum opt_id takes_infra_destroy_opts[] = { OPT_CONFIG,	  OPT_STACK,	   OPT_YES,
						 OPT_FORCE_STACK, OPT_PARALLELISM, OPT_PROFILE,
						 OPT_JSON,	  OPT_QUIET,	   OPT_VERBOSE,
						 OPT_HELP,	  OPT_COUNT };
const enum opt_id takes_text_opts[] = { OPT_QUIET, OPT_VERBOSE, OPT_HELP, OPT_COUNT };
const enum opt_id takes_ls_opts[] = { OPT_NAMES, OPT_JSON, OPT_HELP, OPT_COUNT };
const enum opt_id takes_ls_all_opts[] = {
	OPT_NAMES, OPT_EVERY, PLACE, OPT_JSON, OPT_HELP, OPT_COUNT
};
const enum opt_id takes_run_opts[] = {
	OPT_CPUS,	 OPT_MEMORY,	    OPT_NET,	     OPT_ENV,
	OPT_ENV_FILE,	 OPT_WORKDIR,	    OPT_USER,	     OPT_SECCOMP,
	OPT_TIMEOUT,	 OPT_START_TIMEOUT, OPT_NAME,	     OPT_BACKEND,
	PLACE,		 OPT_ROLE,	    OPT_EGRESS,	     OPT_INGRESS,
	OPT_NO_TEMPLATE, OPT_MAX_DURATION,  OPT_INTERACTIVE, OPT_NO_STDIN,
	OPT_TTY,	 OPT_NO_TTY,	    OPT_JSON,	     OPT_QUIET,
	OPT_VERBOSE,	 OPT_HELP,	    OPT_COUNT
};
const enum opt_id takes_create_opts[] = { OPT_IMAGE,	     OPT_CPUS,	       OPT_MEMORY,
					  OPT_NET,	     OPT_ENV,	       OPT_ENV_FILE,
					  OPT_START_TIMEOUT, OPT_BACKEND,      PLACE,
					  OPT_ROLE,	     OPT_EGRESS,       OPT_INGRESS,
					  OPT_NO_TEMPLATE,   OPT_IDLE_TIMEOUT, OPT_MAX_DURATION,
					  OPT_JSON,	     OPT_QUIET,	       OPT_VERBOSE,
					  OPT_HELP,	     OPT_COUNT };
const enum opt_id takes_cp_opts[] = { OPT_ARCHIVE, OPT_FOLLOW_LINK, PLACE,    OPT_JSON,
				      OPT_QUIET,   OPT_HELP,	    OPT_COUNT };
const enum opt_id takes_exec_opts[] = {
	OPT_ENV,       OPT_ENV_FILE, OPT_WORKDIR,     OPT_USER,	   OPT_INTERACTIVE,
	OPT_NO_STDIN,  OPT_TTY,	     OPT_NO_TTY,      OPT_TIMEOUT, OPT_DETACH,
	OPT_ATTACH,    OPT_OFFSET,   OPT_DETACH_KEYS, OPT_SECCOMP, OPT_EXEC_MEMORY,
	OPT_EXEC_CPUS, OPT_PIDS,     PLACE,	      OPT_JSON,	   OPT_QUIET,
	OPT_VERBOSE,   OPT_HELP,     OPT_COUNT
};
const enum opt_id takes_shell_opts[] = { OPT_ENV,     OPT_ENV_FILE, OPT_WORKDIR, OPT_USER,
					 OPT_TTY,     OPT_NO_TTY,   OPT_TIMEOUT, OPT_DETACH_KEYS,
					 OPT_SECCOMP, PLACE,	    OPT_QUIET,	 OPT_VERBOSE,
					 OPT_HELP,    OPT_COUNT };
const enum opt_id takes_branch_opts[] = { OPT_NEW_NAME, OPT_START_TIMEOUT, OPT_JSON, OPT_QUIET,
					  OPT_VERBOSE,	OPT_HELP,	   OPT_COUNT };
const enum opt_id takes_start_opts[] = { OPT_START_TIMEOUT, PLACE,    OPT_JSON, OPT_QUIET,
					 OPT_VERBOSE,	    OPT_HELP, OPT_COUNT };
const enum opt_id takes_restart_opts[] = { OPT_GRACE,	OPT_START_TIMEOUT, OPT_JSON, OPT_QUIET,
					   OPT_VERBOSE, OPT_HELP,	   OPT_COUNT };
const enum opt_id takes_rm_opts[] = { OPT_FORCE,   PLACE,    OPT_JSON, OPT_QUIET,
				      OPT_VERBOSE, OPT_HELP, OPT_COUNT };
const enum opt_id takes_execs_opts[] = { OPT_IDS,     OPT_NO_TRUNC, PLACE,    OPT_JSON,
					 OPT_VERBOSE, OPT_HELP,	    OPT_COUNT };
const enum opt_id takes_metrics_opts[] = { OPT_WATCH,	OPT_INTERVAL, PLACE,	OPT_JSON,
					   OPT_VERBOSE, OPT_HELP,     OPT_COUNT };
const enum opt_id takes_wait_opts[] = { OPT_WAIT_TIMEOUT, PLACE,    OPT_JSON,
					OPT_VERBOSE,	  OPT_HELP, OPT_COUNT };
const enum opt_id takes_kill_opts[] = { OPT_SIGNAL, OPT_TO,	 PLACE,	   OPT_JSON,
					OPT_QUIET,  OPT_VERBOSE, OPT_HELP, OPT_COUNT };
const enum opt_id takes_logs_opts[] = { OPT_FOLLOW,    OPT_TAIL, OPT_SINCE, OPT_TIMESTAMPS,
					OPT_LOG_GROUP, PLACE,	 OPT_JSON,  OPT_QUIET,
					OPT_VERBOSE,   OPT_HELP, OPT_COUNT };
const enum opt_id takes_forward_opts[] = { OPT_ADDRESS,	      OPT_REMOTE_PORT, OPT_LOCAL_PORT,
					   OPT_POLL_INTERVAL, PLACE,	       OPT_JSON,
					   OPT_QUIET,	      OPT_VERBOSE,     OPT_HELP,
					   OPT_COUNT };
const enum opt_id takes_manifest_opts[] = { OPT_MAN, OPT_JSON, OPT_HELP, OPT_COUNT };
const enum opt_id takes_mcp_opts[] = { PLACE,	       OPT_BACKEND,	 OPT_READ_ONLY,
				       OPT_NO_NETWORK, OPT_PRINT_CONFIG, OPT_QUIET,
				       OPT_VERBOSE,    OPT_HELP,	 OPT_COUNT };
const enum opt_id takes_infra_init_opts[] = { OPT_NEW_FILE, OPT_OVERWRITE, OPT_JSON, OPT_QUIET,
					      OPT_VERBOSE,  OPT_HELP,	   OPT_COUNT };
const enum opt_id takes_infra_output_opts[] = {
	OPT_CONFIG, OPT_STACK, OPT_ALL_STACKS, OPT_JSON, OPT_QUIET, OPT_VERBOSE, OPT_HELP, OPT_COUNT
};
const enum opt_id takes_snapshot_opts[] = { OPT_DISK_ONLY, OPT_JSON, OPT_QUIET,
					    OPT_VERBOSE,   OPT_HELP, OPT_COUNT };
const enum opt_id takes_snapshot_restore_opts[] = { OPT_DISK_ONLY, OPT_START_TIMEOUT, OPT_JSON,
						    OPT_QUIET,	   OPT_VERBOSE,	      OPT_HELP,
						    OPT_COUNT };
const enum opt_id takes_init_opts[] = { OPT_FROM, OPT_JSON, OPT_QUIET, OPT_HELP, OPT_COUNT };
const enum opt_id takes_build_opts[] = {
	OPT_IMAGE_NAME,	 OPT_CPUS,    OPT_MEMORY,   OPT_START_TIMEOUT,
	OPT_NO_TEMPLATE, OPT_BACKEND, PLACE,	    OPT_BUCKET,
	OPT_BUILD_ROLE,	 OPT_REBUILD, OPT_NO_CHECK, OPT_JSON,
	OPT_QUIET,	 OPT_VERBOSE, OPT_HELP,	    OPT_COUNT
};
const enum opt_id takes_image_ls_opts[] = { OPT_NAMES, OPT_BACKEND, OPT_MANAGED, PLACE,
					    OPT_JSON,  OPT_HELP,    OPT_COUNT };
const enum opt_id takes_image_opts[] = { OPT_BACKEND, PLACE,	OPT_JSON, OPT_QUIET,
					 OPT_VERBOSE, OPT_HELP, OPT_COUNT };
const enum opt_id takes_image_rm_opts[] = { OPT_FORCE_IMAGE, OPT_BACKEND, PLACE,    OPT_JSON,
					    OPT_QUIET,	     OPT_HELP,	  OPT_COUNT };
const enum opt_id takes_image_prune_opts[] = { OPT_DRY_RUN, OPT_NOT_ASK, OPT_BACKEND, PLACE,
					       OPT_JSON,    OPT_QUIET,	 OPT_HELP,    OPT_COUNT };
const enum opt_id takes_prune_opts[] = { OPT_DRY_RUN, OPT_ALL,	OPT_JSON,
					 OPT_QUIET,   OPT_HELP, OPT_COUNT };
