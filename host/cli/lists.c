/* SPDX-License-Identifier: Apache-2.0 */
#include "host/cli/spec.h"

#include <stddef.h>

/* Exit statuses, variables and files, as help and manual list them. */

const struct cli_pair cli_exit_codes[] = {
	{ "0", "success" },
	{ "1", "a command other than run, exec and shell failed" },
	{ "2", "the command line is wrong" },
	{ "124", "run, exec, shell, wait: the time of --timeout is over" },
	{ "125", "run, exec, shell: asb or the sandbox failed" },
	{ "126", "run, exec, shell: the command is there but cannot be executed" },
	{ "127", "run, exec, shell: there is no such command in the sandbox" },
	{ "128+N", "run, exec, shell: the command was ended by signal N" },
	{ "other", "run, exec, shell: the status of the command itself" },
	{ NULL, NULL },
};

const struct cli_pair cli_environment[] = {
	{ "AGENT_SANDBOX_BACKEND",
	  "the backend when neither --backend nor the sandbox's record tells" },
	{ "AGENT_SANDBOX_IMAGE_ARN",
	  "the image when none is given; an ARN also means --backend aws" },
	{ "AGENT_SANDBOX_INFRA_STATE", "the file in which asb infra keeps what it has set up" },
	{ "AGENT_SANDBOX_SETUP", "the sandbox.yaml of asb infra when no -f is given" },
	{ "AGENT_SANDBOX_STATE",
	  "the state file; everything else of the local backend is in its folder" },
	{ "ASB_BUILDER",
	  "the program that builds a Dockerfile; else the first of buildah, podman and docker on PATH" },
	{ "ASB_QEMU", "the QEMU program; else the newest one on PATH and in the usual folders" },
	{ "ASB_SHARE", "the folder with the kernel, the guest programs and the images" },
	{ "HOME", "~/.agent_sandbox is below it" },
	{ "NO_COLOR, TERM", "no progress line when NO_COLOR is set or TERM is dumb" },
	{ NULL, NULL },
};

const struct cli_pair cli_files[] = {
	{ "~/.agent_sandbox/infra-state.json", "what asb infra has set up on AWS" },
	{ "~/.agent_sandbox/state.json", "names of sandboxes and the machines behind them" },
	{ "~/.agent_sandbox/local/vms/ID/", "one local sandbox: its disk, sockets and logs" },
	{ "~/.agent_sandbox/local/images/", "the images that were built here" },
	{ "../share/asb/", "beside the folder of the program: kernel, guest programs, images" },
	{ NULL, NULL },
};
