/* SPDX-License-Identifier: Apache-2.0 */
#include "host/cli/spec.h"

#include <stddef.h>
#include <string.h>

#include "host/cmd/cmd.h"

/*
 * Every option and every command of asb. Text rules: help and summary are one line without a full
 * stop; about is paragraphs separated by an empty line; an example is a whole command line.
 */

static const char *const backend_names[] = { "local", "aws", NULL };
static const char *const net_names[] = { "none", "user", NULL };
static const char *const shell_names[] = { "bash", "zsh", "fish", NULL };

#define WEEK_S (7 * 86400)

const struct opt_spec cli_opts[OPT_COUNT] = {
	[OPT_HELP] = { .name = "help", .short_name = 'h', .help = "show this help" },
	[OPT_VERSION] = { .name = "version", .help = "show the version" },
	[OPT_JSON] = { .name = "json", .help = "print one JSON document instead of text" },
	[OPT_QUIET] = { .name = "quiet",
			.short_name = 'q',
			.help = "no notes, only results and errors" },
	[OPT_VERBOSE] = { .name = "verbose",
			  .short_name = 'v',
			  .help = "tell each stage of the start with its time, on stderr" },
	[OPT_BACKEND] = { .name = "backend",
			  .type = TYPE_CHOICE,
			  .arg = "NAME",
			  .choices = backend_names,
			  .help = "where the sandbox lives: local or aws" },
	[OPT_IMAGE] = { .name = "image",
			.short_name = 'i',
			.type = TYPE_TEXT,
			.arg = "IMAGE",
			.def = "base",
			.help = "what the sandbox starts from" },
	[OPT_CPUS] = { .name = "cpus",
		       .short_name = 'c',
		       .type = TYPE_UINT,
		       .arg = "N",
		       .def = "1",
		       .min = 1,
		       .max = 32,
		       .help = "virtual CPUs" },
	[OPT_MEMORY] = { .name = "memory",
			 .short_name = 'm',
			 .type = TYPE_MIB,
			 .arg = "SIZE",
			 .def = "512",
			 .min = 64,
			 .max = 1 << 20,
			 .help = "memory in MiB, or with a suffix: 512m, 2g" },
	[OPT_NET] = { .name = "net",
		      .type = TYPE_CHOICE,
		      .arg = "MODE",
		      .def = "none",
		      .choices = net_names,
		      .help = "network: none, or user (the internet, and this machine's own networks)" },
	[OPT_NAME] = { .name = "name",
		       .type = TYPE_NAME,
		       .arg = "NAME",
		       .help = "the sandbox's name while it runs (else asb-run-<8 hex digits>)" },
	[OPT_ENV] = { .name = "env",
		      .short_name = 'e',
		      .type = TYPE_ENV,
		      .many = true,
		      .arg = "K[=V]",
		      .help = "set a variable; without =V the caller's value is passed on" },
	[OPT_ENV_FILE] = { .name = "env-file",
			   .type = TYPE_FILE,
			   .many = true,
			   .arg = "FILE",
			   .help = "read variables from FILE, a K=V or K on each line" },
	[OPT_WORKDIR] = { .name = "workdir",
			  .short_name = 'w',
			  .type = TYPE_PATH,
			  .arg = "DIR",
			  .help = "working directory in the sandbox (else the user's home)" },
	[OPT_TIMEOUT] = { .name = "timeout",
			  .type = TYPE_SECONDS,
			  .arg = "SECONDS",
			  .max = WEEK_S,
			  .help = "kill the command and all it started after SECONDS; 0 is never" },
	[OPT_START_TIMEOUT] = { .name = "start-timeout",
				.type = TYPE_SECONDS,
				.arg = "SECONDS",
				.def = "120",
				.min = 1,
				.max = 86400,
				.help = "give up when the sandbox is not up after SECONDS" },
	[OPT_INTERACTIVE] = { .name = "interactive",
			      .short_name = 'i',
			      .help = "pass on stdin even when it is a terminal" },
	[OPT_NO_STDIN] = { .name = "no-stdin", .help = "do not pass on stdin" },
	[OPT_FORCE] = { .name = "force",
			.short_name = 'f',
			.help = "forget the sandbox even when its machine cannot be removed, or is unknown" },
	[OPT_NAMES] = { .name = "quiet", .short_name = 'q', .help = "print names only" },
	[OPT_GRACE] = { .name = "grace",
			.type = TYPE_SECONDS,
			.arg = "SECONDS",
			.def = "10",
			.max = 3600,
			.help = "what the workload gets to end by itself" },
	[OPT_MAN] = { .name = "man", .help = "print the manual page of asb or of COMMAND (mdoc)" },
};

const enum opt_id cli_global_opts[] = { OPT_JSON, OPT_QUIET,   OPT_VERBOSE,
					OPT_HELP, OPT_VERSION, OPT_COUNT };

static const struct arg_spec no_args[] = { { NULL } };
static const struct arg_spec one_sandbox[] = {
	{ .name = "NAME", .kind = ARG_SANDBOX, .help = "the sandbox" },
	{ NULL },
};
static const struct arg_spec some_sandboxes[] = {
	{ .name = "NAME", .kind = ARG_SANDBOX, .many = true, .help = "the sandboxes" },
	{ NULL },
};
static const struct arg_spec maybe_sandbox[] = {
	{ .name = "NAME", .kind = ARG_SANDBOX, .optional = true, .help = "the sandbox; else all" },
	{ NULL },
};
static const struct arg_spec run_args[] = {
	{ .name = "IMAGE",
	  .kind = ARG_IMAGE,
	  .optional = true,
	  .help = "what the sandbox starts from; base when the command follows -- directly" },
	{ .name = "COMMAND", .kind = ARG_COMMAND, .help = "the program and its arguments" },
	{ NULL },
};
static const struct arg_spec exec_args[] = {
	{ .name = "NAME", .kind = ARG_SANDBOX, .help = "the sandbox" },
	{ .name = "COMMAND", .kind = ARG_COMMAND, .help = "the program and its arguments" },
	{ NULL },
};
static const struct arg_spec topic_args[] = {
	{ .name = "COMMAND", .kind = ARG_TOPIC, .optional = true, .help = "the command" },
	{ NULL },
};
static const struct arg_spec shell_args[] = {
	{ .name = "SHELL",
	  .kind = ARG_CHOICE,
	  .choices = shell_names,
	  .help = "bash, zsh or fish" },
	{ NULL },
};

static const enum opt_id plain_opts[] = { OPT_JSON, OPT_QUIET, OPT_VERBOSE, OPT_HELP, OPT_COUNT };
static const enum opt_id text_opts[] = { OPT_QUIET, OPT_VERBOSE, OPT_HELP, OPT_COUNT };
static const enum opt_id ls_opts[] = { OPT_NAMES, OPT_JSON, OPT_HELP, OPT_COUNT };
static const enum opt_id run_opts[] = {
	OPT_CPUS,    OPT_MEMORY,	OPT_NET,     OPT_ENV,	  OPT_ENV_FILE,	   OPT_WORKDIR,
	OPT_TIMEOUT, OPT_START_TIMEOUT, OPT_NAME,    OPT_BACKEND, OPT_INTERACTIVE, OPT_NO_STDIN,
	OPT_JSON,    OPT_QUIET,		OPT_VERBOSE, OPT_HELP,	  OPT_COUNT
};
static const enum opt_id create_opts[] = { OPT_IMAGE, OPT_CPUS,	    OPT_MEMORY,	       OPT_NET,
					   OPT_ENV,   OPT_ENV_FILE, OPT_START_TIMEOUT, OPT_BACKEND,
					   OPT_JSON,  OPT_QUIET,    OPT_VERBOSE,       OPT_HELP,
					   OPT_COUNT };
static const enum opt_id exec_opts[] = { OPT_ENV,	  OPT_ENV_FILE, OPT_WORKDIR, OPT_TIMEOUT,
					 OPT_INTERACTIVE, OPT_NO_STDIN, OPT_JSON,    OPT_QUIET,
					 OPT_VERBOSE,	  OPT_HELP,	OPT_COUNT };
static const enum opt_id start_opts[] = { OPT_START_TIMEOUT, OPT_JSON, OPT_QUIET,
					  OPT_VERBOSE,	     OPT_HELP, OPT_COUNT };
static const enum opt_id restart_opts[] = { OPT_GRACE,	 OPT_START_TIMEOUT, OPT_JSON, OPT_QUIET,
					    OPT_VERBOSE, OPT_HELP,	    OPT_COUNT };
static const enum opt_id rm_opts[] = { OPT_FORCE,   OPT_JSON, OPT_QUIET,
				       OPT_VERBOSE, OPT_HELP, OPT_COUNT };
static const enum opt_id manifest_opts[] = { OPT_MAN, OPT_JSON, OPT_HELP, OPT_COUNT };

#define EXAMPLES(...) ((const char *const[]){ __VA_ARGS__, NULL })

const struct command cli_commands[] = {
	{ .name = "run",
	  .args = run_args,
	  .opts = run_opts,
	  .run = cmd_run,
	  .failure = 125,
	  .summary = "run a command in a new sandbox that is removed afterwards",
	  .about =
		  "Starts a sandbox, runs COMMAND in it, prints its output as it comes, byte for byte, "
		  "removes the sandbox and exits with the command's status.\n\n"
		  "Everything behind -- is the command. Without --, the first word is the image and the "
		  "second begins the command; nothing from there on is an option of asb.\n\n"
		  "Standard input is passed on unless it is a terminal (see -i). The end of the command "
		  "ends asb, whatever stdin does. The first interrupt (Ctrl-C) is passed on to the "
		  "command, the second kills it.",
	  .examples = EXAMPLES("asb run -- python3 -c 'print(\"Hello from a microVM!\")'",
			       "asb run base uname -a",
			       "asb run --timeout 10 -m 1g -- sh -c 'make test'",
			       "asb run -- cat < file") },
	{ .name = "create",
	  .args = one_sandbox,
	  .opts = create_opts,
	  .run = cmd_create,
	  .failure = 1,
	  .summary = "create a named sandbox and leave it running",
	  .about =
		  "Returns when commands can run in it. It lives until asb rm removes it. A name that is "
		  "taken is refused. Variables of --env are set for every command that runs in it.",
	  .examples = EXAMPLES("asb create app", "asb create build -c 4 -m 4g --net user") },
	{ .name = "exec",
	  .args = exec_args,
	  .opts = exec_opts,
	  .run = cmd_exec,
	  .failure = 125,
	  .summary = "run a command in a sandbox",
	  .about =
		  "Runs COMMAND, prints its output as it comes, byte for byte, and exits with its status. "
		  "Options of asb end at -- or at the first word of the command.\n\n"
		  "A connection that is cut is resumed where it was. A status is never invented: when "
		  "the sandbox ends under the command, the exit status is 125.\n\n"
		  "Standard input is passed on unless it is a terminal (see -i); in a loop of a script "
		  "that reads its own input, use --no-stdin.",
	  .examples =
		  EXAMPLES("asb exec app ls -l /", "asb exec app -w /tmp -- sh -c 'echo hi > f'",
			   "tar c src | asb exec app tar x -C /tmp") },
	{ .name = "ls",
	  .args = no_args,
	  .opts = ls_opts,
	  .run = cmd_ls,
	  .failure = 1,
	  .summary = "list the sandboxes",
	  .about =
		  "STATE is RUNNING, SUSPENDED (asb stop), TERMINATED (asb start boots it from its "
		  "disk), a state between them, or MISSING when there is no machine behind the name "
		  "(asb rm forgets it).",
	  .examples = EXAMPLES("asb ls", "asb ls -q", "asb ls --json") },
	{ .name = "ps",
	  .args = maybe_sandbox,
	  .opts = ls_opts,
	  .run = cmd_ps,
	  .failure = 1,
	  .summary = "show the state of one sandbox",
	  .about = "Prints NAME: STATE (ID). Without NAME it is asb ls.",
	  .examples = EXAMPLES("asb ps app") },
	{ .name = "inspect",
	  .args = one_sandbox,
	  .opts = plain_opts,
	  .run = cmd_inspect,
	  .failure = 1,
	  .summary = "print all that is known of a sandbox, as JSON",
	  .about = "The platform's own description of the machine.",
	  .examples = EXAMPLES("asb inspect app") },
	{ .name = "logs",
	  .args = one_sandbox,
	  .opts = plain_opts,
	  .run = cmd_logs,
	  .failure = 1,
	  .summary = "print the console log of a sandbox",
	  .about =
		  "What the kernel and the services in the sandbox wrote to the console. The output of "
		  "commands is not part of it. With --json: a document with the text.",
	  .examples = EXAMPLES("asb logs app") },
	{ .name = "stop",
	  .args = some_sandboxes,
	  .opts = plain_opts,
	  .run = cmd_stop,
	  .failure = 1,
	  .summary = "suspend sandboxes",
	  .about =
		  "What runs in them stands still until asb start. One that is stopped already is fine.",
	  .examples = EXAMPLES("asb stop app") },
	{ .name = "start",
	  .args = some_sandboxes,
	  .opts = start_opts,
	  .run = cmd_start,
	  .failure = 1,
	  .summary = "start sandboxes that were stopped or have ended",
	  .about =
		  "A suspended one goes on where it was; one that has ended boots from its disk. One that "
		  "runs already is fine.",
	  .examples = EXAMPLES("asb start app") },
	{ .name = "restart",
	  .args = some_sandboxes,
	  .opts = restart_opts,
	  .run = cmd_restart,
	  .failure = 1,
	  .summary = "power sandboxes off and boot them again from their disks",
	  .about = "What was running in them ends; files stay.",
	  .examples = EXAMPLES("asb restart app") },
	{ .name = "rm",
	  .args = some_sandboxes,
	  .opts = rm_opts,
	  .run = cmd_rm,
	  .failure = 1,
	  .summary = "end sandboxes and remove all of them",
	  .about =
		  "A running one is ended first. Its disk is deleted. A name whose machine is gone already "
		  "is forgotten. All names are tried even when one fails.",
	  .examples = EXAMPLES("asb rm app", "asb rm $(asb ls -q)") },
	{ .name = "doctor",
	  .args = no_args,
	  .opts = plain_opts,
	  .run = cmd_doctor,
	  .failure = 1,
	  .summary = "check what this machine can do, and tell what is missing",
	  .about = "Each line is ok, warn or fail. Exit status 1 when something fails.",
	  .examples = EXAMPLES("asb doctor") },
	{ .name = "version",
	  .args = no_args,
	  .opts = plain_opts,
	  .run = cmd_version,
	  .failure = 1,
	  .summary = "show the version",
	  .about = "The version of asb and of what it was built with.",
	  .examples = EXAMPLES("asb version --json") },
	{ .name = "help",
	  .args = topic_args,
	  .opts = text_opts,
	  .run = cmd_help,
	  .failure = 1,
	  .summary = "show help for asb or for a command",
	  .about = "The same as asb COMMAND --help.",
	  .examples = EXAMPLES("asb help run") },
	{ .name = "completion",
	  .args = shell_args,
	  .opts = text_opts,
	  .run = cmd_completion,
	  .failure = 1,
	  .summary = "print a completion script for a shell",
	  .about = "It completes commands, options, their values, and names of sandboxes.",
	  .examples = EXAMPLES("source <(asb completion bash)",
			       "asb completion fish > ~/.config/fish/completions/asb.fish") },
	{ .name = "manifest",
	  .args = topic_args,
	  .opts = manifest_opts,
	  .run = cmd_manifest,
	  .failure = 1,
	  .summary = "describe every command, option and exit status, as JSON",
	  .about = "For programs that drive asb, and for making its manual pages.",
	  .examples = EXAMPLES("asb manifest", "asb manifest --man run | man -l -") },
	{ .name = "__supervise",
	  .args = no_args,
	  .opts = plain_opts,
	  .run = cmd_supervise,
	  .failure = 1,
	  .summary = "the process behind one local sandbox",
	  .about = "",
	  .hidden = true,
	  .raw = true,
	  .examples = EXAMPLES("asb __supervise FOLDER") },
	{ .name = NULL },
};

const struct cli_pair cli_exit_codes[] = {
	{ "0", "success" },
	{ "1", "a command other than run and exec failed" },
	{ "2", "the command line is wrong" },
	{ "124", "run, exec: the command ran out of its --timeout" },
	{ "125", "run, exec: asb or the sandbox failed" },
	{ "126", "run, exec: the command is there but cannot be executed" },
	{ "127", "run, exec: there is no such command in the sandbox" },
	{ "128+N", "run, exec: the command was ended by signal N" },
	{ "other", "run, exec: the status of the command itself" },
	{ NULL, NULL },
};

const struct cli_pair cli_environment[] = {
	{ "AGENT_SANDBOX_BACKEND",
	  "the backend when neither --backend nor the sandbox's record tells" },
	{ "AGENT_SANDBOX_IMAGE_ARN",
	  "the image when none is given; an ARN also means --backend aws" },
	{ "AGENT_SANDBOX_STATE",
	  "the state file; everything else of the local backend is in its folder" },
	{ "ASB_QEMU", "the QEMU program; else the newest one on PATH and in the usual folders" },
	{ "ASB_SHARE", "the folder with the kernel, the guest programs and the images" },
	{ "HOME", "~/.agent_sandbox is below it" },
	{ "NO_COLOR, TERM", "no progress line when NO_COLOR is set or TERM is dumb" },
	{ NULL, NULL },
};

const struct cli_pair cli_files[] = {
	{ "~/.agent_sandbox/state.json", "names of sandboxes and the machines behind them" },
	{ "~/.agent_sandbox/local/vms/ID/", "one local sandbox: its disk, sockets and logs" },
	{ "../share/asb/", "beside the folder of the program: kernel, guest programs, images" },
	{ NULL, NULL },
};

const struct command *cli_find(const char *name)
{
	for (const struct command *c = cli_commands; c->name; c++)
		if (strcmp(c->name, name) == 0)
			return c;
	return NULL;
}

bool cli_takes(const struct command *c, enum opt_id id)
{
	for (const enum opt_id *o = c->opts; *o != OPT_COUNT; o++)
		if (*o == id)
			return true;
	return false;
}
