/* SPDX-License-Identifier: Apache-2.0 */
#include "host/cli/spec.h"

#include <stddef.h>

#include "host/cli/takes.h"
#include "host/cmd/cmd.h"

/*
 * Every command of asb; what they take is in takes.c, the options in options.c. Text rules: help and
 * summary are one line without a full stop; about is paragraphs separated by an empty line; an
 * example is a whole command line.
 */

#define EXAMPLES(...) ((const char *const[]){ __VA_ARGS__, NULL })

const struct command cli_commands[] = {
	{ .name = "run",
	  .args = takes_run_args,
	  .opts = takes_run_opts,
	  .run = cmd_run,
	  .failure = 125,
	  .summary = "run a command in a new sandbox that is removed afterwards",
	  .about =
		  "Starts a sandbox, runs COMMAND in it, prints its output as it comes, byte for byte, "
		  "removes the sandbox and exits with the command's status.\n\n"
		  "The first sandbox of a kind (image, CPUs, memory, network) boots and leaves a template "
		  "behind; later ones start from it, in a fraction of the time.\n\n"
		  "Everything behind -- is the command. Without --, the first word is the image and the "
		  "second begins the command; nothing from there on is an option of asb.\n\n"
		  "On a terminal the command has a terminal too, as with asb exec; in a pipeline standard "
		  "input is passed on, and its end too. The end of the command ends asb, whatever stdin "
		  "does. The first interrupt (Ctrl-C) is passed on to the command, the second kills it.",
	  .examples = EXAMPLES("asb run -- python3 -c 'print(\"Hello from a microVM!\")'",
			       "asb run base uname -a",
			       "asb run --timeout 10 -m 1g -- sh -c 'make test'",
			       "asb run -- cat < file") },
	{ .name = "create",
	  .args = takes_one_sandbox,
	  .opts = takes_create_opts,
	  .run = cmd_create,
	  .failure = 1,
	  .summary = "create a named sandbox and leave it running",
	  .about =
		  "Returns when commands can run in it. It lives until asb rm removes it. A name that is "
		  "taken is refused. Variables of --env are set for every command that runs in it.\n\n"
		  "With --idle-timeout it is suspended, as by asb stop, when no byte has passed between a client and "
		  "it and no command has run in it for so long. The next command that wants something of it (exec, "
		  "shell, cp, forward, ...) resumes it.\n\n"
		  "With --max-duration it is powered off that long after it was made, however much of the time it was "
		  "suspended. Its disk stays, and asb start boots it again, for as long once more.\n\n"
		  "With the ARN of an image, or --backend aws, it is a MicroVM on AWS (docs/aws.md): its size and its "
		  "network are the image's, and it lives 8 hours at most.",
	  .examples = EXAMPLES("asb create app", "asb create build -c 4 -m 4g --net user") },
	{ .name = "exec",
	  .args = takes_exec_args,
	  .opts = takes_exec_opts,
	  .run = cmd_exec,
	  .failure = 125,
	  .summary = "run a command in a sandbox",
	  .about =
		  "Runs COMMAND, prints its output as it comes, byte for byte, and exits with its status. Options of asb end "
		  "at -- or at the first word of the command.\n\n"
		  "When stdin and stdout are a terminal, the command has a terminal as well: keys go to it as they are typed "
		  "(Ctrl-C too), it follows the size of the window, and stderr comes with stdout. -T turns that off. "
		  "Otherwise stdin is passed on, unless it is a terminal (see -i); in a loop of a script that reads its own "
		  "input, use --no-stdin. -t gives a terminal in any case.\n\n"
		  "A connection that is cut is resumed where it was. A status is never invented: when the sandbox ends under "
		  "the command, the exit status is 125.\n\n"
		  "The detach keys leave a command with a terminal running and end asb with 0; -d does so from the start and "
		  "prints the command's id. --attach ID goes on with it: prints the output that is still held (about the last "
		  "MiB), then what comes, and exits with the command's status; of one that has ended too. It passes stdin on "
		  "with -i, or on a terminal to a command with a terminal.\n\n"
		  "Without a terminal the first interrupt is passed on to the command; the second, or 10 seconds, kill it. "
		  "With one, what ends asb (a closed window, SIGTERM) hangs up the command's terminal as ssh does: it gets "
		  "HUP, and what ignores that lives on. After kill -9 of asb the command runs on, and asb execs shows it. "
		  "Nothing of this ends a command that was attached to.",
	  .examples =
		  EXAMPLES("asb exec app ls -l /", "asb exec app -w /tmp -- sh -c 'echo hi > f'",
			   "tar c src | asb exec app tar x -C /tmp",
			   "asb exec app -d -- sh -c 'make > log'", "asb exec app --attach 3f2a") },
	{ .name = "shell",
	  .args = takes_one_sandbox,
	  .opts = takes_shell_opts,
	  .run = cmd_shell,
	  .failure = 125,
	  .summary = "open a shell in a sandbox",
	  .about =
		  "The user's shell as /etc/passwd of the sandbox has it, else bash, else sh; not as a login "
		  "shell. It is asb exec of that shell: a terminal when asb is on one, and the same keys, "
		  "exit status and rules. In a pipeline the shell reads its commands from stdin.",
	  .examples = EXAMPLES("asb shell app", "asb shell app -u nobody -w /tmp") },
	{ .name = "execs",
	  .args = takes_one_sandbox,
	  .opts = takes_execs_opts,
	  .run = cmd_execs,
	  .failure = 1,
	  .summary = "list the commands that run in a sandbox, or have ended there",
	  .about =
		  "A command stays in the list until it has ended and whoever started it has fetched "
		  "its result; one that was detached, or whose asb exec was killed, until its place is "
		  "needed. An id may be shortened to its begin everywhere.",
	  .examples = EXAMPLES("asb execs app", "asb execs app --json") },
	{ .name = "kill",
	  .args = takes_kill_args,
	  .opts = takes_kill_opts,
	  .run = cmd_kill,
	  .failure = 1,
	  .summary = "send a signal to a command that runs in a sandbox",
	  .about = "Without a signal it is KILL, which ends the command and everything that it has "
		   "started, double forks and new sessions too. Prints the whole id.",
	  .examples = EXAMPLES("asb kill app 3f2a", "asb kill app 3f2a TERM --to leader") },
	{ .name = "wait",
	  .args = takes_wait_args,
	  .opts = takes_wait_opts,
	  .run = cmd_wait,
	  .failure = 1,
	  .summary = "wait until a sandbox, or a command in one, has ended",
	  .about =
		  "Prints the state of the sandbox, or the exit status of the command: its own, 128+N after "
		  "signal N, 124 after its time limit. That it has ended is success, however it ended; a "
		  "sandbox that is stopped, and can go on, has not.",
	  .examples = EXAMPLES("asb wait app", "asb wait app 3f2a --timeout 60") },
	{ .name = "metrics",
	  .args = takes_one_sandbox,
	  .opts = takes_metrics_opts,
	  .run = cmd_metrics,
	  .failure = 1,
	  .summary = "show what a sandbox uses: CPU, memory, disk, network",
	  .about =
		  "The numbers are the guest's own. Those of the CPUs cover half a second, or the interval of "
		  "--watch. COMMANDS is the memory of all commands together, with its limit. With --json it is a "
		  "document, with --json --watch one a line.",
	  .examples = EXAMPLES("asb metrics app", "asb metrics app -w --interval 5",
			       "asb metrics app --json") },
	{ .name = "forward",
	  .args = takes_forward_args,
	  .opts = takes_forward_opts,
	  .run = cmd_forward,
	  .failure = 1,
	  .summary = "let TCP ports of this machine lead into a sandbox",
	  .about =
		  "Listens on loopback, prints a line for each port (with --json an object for each), and "
		  "passes connections on to what listens in the sandbox, until Ctrl-C. No network is "
		  "needed in the sandbox. The end of each direction is passed on by itself. A connection "
		  "that the sandbox refuses is reset here, and the first of them is told; so is one that is cut, because "
		  "the sandbox stops or asb forward does: an end of file is the end.\n\n"
		  "To a sandbox on AWS there is only HTTPS, so there asb forward is a reverse proxy for HTTP/1.1 and "
		  "WebSockets, and no other TCP goes through: http://localhost:LOCAL/ is the server behind REMOTE. "
		  "Bodies and events are streamed, an answer that is cut is reset. Requests under another name than localhost "
		  "or an address, and those of other sites' pages, are refused with 403 (DNS rebinding). A suspended sandbox is "
		  "resumed by a request and kept awake by one that is under way.\n\n"
		  "When the sandbox is no longer running it says so and exits with 0. The port of the "
		  "lifecycle hooks (9000, or $AGENT_SANDBOX_HOOK_PORT) is refused.",
	  .examples = EXAMPLES("asb forward app 8080", "asb forward app 8080:80 0:5432",
			       "asb forward app -r 80 -l 8080") },
	{ .name = "cp",
	  .args = takes_cp_args,
	  .opts = takes_cp_opts,
	  .run = cmd_cp,
	  .failure = 1,
	  .summary = "copy files into a sandbox or out of it",
	  .about =
		  "The rules are those of docker cp. A file becomes DST, or replaces the file DST, or goes into the directory "
		  "DST. A directory becomes DST when there is none, else it goes into the directory DST; SRC/. stands for "
		  "what is in it. The directory that DST is in must exist. A PATH in a sandbox is seen from its root.\n\n"
		  "With -, a tar is read and extracted into the directory DST, or SRC is written as one.\n\n"
		  "Names are bytes. Modes, whole seconds of modification, symbolic and hard links and holes are kept; the "
		  "owner becomes the agent's, or yours, unless -a is given. What a sandbox sends lands below DST and nowhere "
		  "else: no symbolic link is followed there, and set-id bits are dropped. A file is replaced when all of it "
		  "is here; one that was being copied when asb is interrupted is not.\n\n"
		  "When the connection is cut, cp fails: what has come stays.",
	  .examples = EXAMPLES("asb cp src app:/srv", "asb cp app:/srv/out/. results",
			       "asb cp app:/var/log - | tar t", "tar c src | asb cp - app:/srv") },
	{ .name = "ls",
	  .args = takes_no_args,
	  .opts = takes_ls_all_opts,
	  .run = cmd_ls,
	  .failure = 1,
	  .summary = "list the sandboxes",
	  .about =
		  "STATE is RUNNING, SUSPENDED (asb stop), TERMINATED (asb start boots it from its disk), a state between "
		  "them, or MISSING when there is no machine behind the name (asb rm forgets it). What is on AWS is asked for "
		  "by one call, if a sandbox is there; when AWS does not answer, it is UNKNOWN.\n\n"
		  "With --all also the MicroVMs of the region that live and are no sandbox of yours; the other commands take "
		  "their ids as names.",
	  .examples = EXAMPLES("asb ls", "asb ls -q", "asb ls --json", "asb ls --all") },
	{ .name = "ps",
	  .args = takes_maybe_sandbox,
	  .opts = takes_ls_all_opts,
	  .run = cmd_ps,
	  .failure = 1,
	  .summary = "show the state of one sandbox",
	  .about = "Prints NAME: STATE (ID). Without NAME it is asb ls.",
	  .examples = EXAMPLES("asb ps app") },
	{ .name = "inspect",
	  .args = takes_one_sandbox,
	  .opts = takes_place_opts,
	  .run = cmd_inspect,
	  .failure = 1,
	  .summary = "print all that is known of a sandbox, as JSON",
	  .about = "The platform's own description of the machine.",
	  .examples = EXAMPLES("asb inspect app") },
	{ .name = "logs",
	  .args = takes_logs_args,
	  .opts = takes_logs_opts,
	  .run = cmd_logs,
	  .failure = 1,
	  .summary = "print the log of a sandbox, or the output of a command in it",
	  .about =
		  "The log of a sandbox is what the kernel and the services in it wrote to the console, and its last MiB is "
		  "kept. The output of commands is not part of it. On AWS it is what CloudWatch has of the MicroVM, some "
		  "seconds late; there is none without a role (asb create --role) that may write it.\n\n"
		  "With ID it is what the agent holds of a command's output, about the last MiB: stdout on stdout, stderr on "
		  "stderr. Its lines have no times, so --since and --timestamps do not go with it. To look on with -f neither "
		  "signals the command nor ends it.\n\n"
		  "-f ends when the sandbox or the command does. With --json: a document with the text.",
	  .examples = EXAMPLES("asb logs app -f -n 20", "asb logs app --since 10m -t",
			       "asb logs app 3f2a -f") },
	{ .name = "stop",
	  .args = takes_some_sandboxes,
	  .opts = takes_place_opts,
	  .run = cmd_stop,
	  .failure = 1,
	  .summary = "suspend sandboxes",
	  .about =
		  "Everything in them is written to the disk, memory too, and they use neither memory nor CPU "
		  "until asb start lets them go on where they were. Commands that run in them go on then, their "
		  "output at the same byte; their timeouts count running time only. When it cannot be written "
		  "down, the sandbox runs on. One that is stopped already is fine.\n\n"
		  "Any command that wants something of the guest (exec, shell, cp, forward, execs, kill, metrics, logs and "
		  "wait with an ID) resumes it, too; ls, inspect, logs, rm and branch do not. An asb exec that was "
		  "connected waits for that, and goes on.\n\n"
		  "The sandbox of an asb run only stands still, and keeps its memory.",
	  .examples = EXAMPLES("asb stop app") },
	{ .name = "start",
	  .args = takes_some_sandboxes,
	  .opts = takes_start_opts,
	  .run = cmd_start,
	  .failure = 1,
	  .summary = "start sandboxes that were stopped or have ended",
	  .about =
		  "A suspended one goes on where it was, with the clock of now and fresh randomness; one that "
		  "has ended boots from its disk. One that runs already is fine.\n\n"
		  "The memory of a suspended one fits only the QEMU, CPU and image that it ran with; with others "
		  "it is refused, and asb restart boots it from its disk.",
	  .examples = EXAMPLES("asb start app") },
	{ .name = "branch",
	  .args = takes_one_sandbox,
	  .opts = takes_branch_opts,
	  .run = cmd_branch,
	  .failure = 1,
	  .summary = "copy a running sandbox, with its memory, processes and disk",
	  .about =
		  "Makes one or several new sandboxes as copies of NAME from one instant, and starts them. NAME "
		  "stands still while its changed memory and its disk are copied, and runs on. In the copies "
		  "the same processes go on, and their commands have the same ids; host name, machine-id, "
		  "randomness and clock are their own (docs/snapshots.md).\n\n"
		  "A suspended sandbox can be copied too, and stays suspended.",
	  .examples = EXAMPLES("asb branch app --name try1", "asb branch app --name a --name b") },
	{ .name = "snapshot create",
	  .args = takes_snapshot_create_args,
	  .opts = takes_snapshot_opts,
	  .run = cmd_snapshot_create,
	  .failure = 1,
	  .summary = "keep a copy of a sandbox under a name",
	  .about =
		  "A running sandbox writes its files to its disk, stands still while its changed memory and its "
		  "disk are copied, and runs on; commands that were attached to it go on. A suspended one "
		  "stays so. Of one that has ended only the disk can be kept, and so it is with "
		  "--disk-only: what is restored from that boots, with any QEMU and CPU.\n\n"
		  "A snapshot needs neither the sandbox nor the template it came from; it does need its image.",
	  .examples = EXAMPLES("asb snapshot create app", "asb snapshot create app before-upgrade",
			       "asb snapshot create app files --disk-only") },
	{ .name = "snapshot restore",
	  .args = takes_snapshot_restore_args,
	  .opts = takes_snapshot_restore_opts,
	  .run = cmd_snapshot_restore,
	  .failure = 1,
	  .summary = "make a new sandbox from a snapshot",
	  .about =
		  "NAME goes on where the sandbox of the snapshot was, with the same processes and commands and an identity, "
		  "host name, randomness and clock of its own. It can be done any number of times.\n\n"
		  "Memory fits only the QEMU, accelerator, CPU and image that it ran with, and is refused elsewhere. With "
		  "--disk-only it is left out, and NAME boots from the disk.",
	  .examples = EXAMPLES("asb snapshot restore before-upgrade app2",
			       "asb snapshot restore before-upgrade app3 --disk-only") },
	{ .name = "snapshot ls",
	  .args = takes_no_args,
	  .opts = takes_ls_opts,
	  .run = cmd_snapshot_ls,
	  .failure = 1,
	  .summary = "list the snapshots",
	  .about =
		  "SIZE is what its files say they hold, ON DISK what they take there: holes take nothing, and "
		  "what is shared with sandboxes, templates and other snapshots counts for each.",
	  .examples = EXAMPLES("asb snapshot ls", "asb snapshot ls --json") },
	{ .name = "snapshot inspect",
	  .args = takes_snapshot_args,
	  .opts = takes_plain_opts,
	  .run = cmd_snapshot_inspect,
	  .failure = 1,
	  .summary = "print all that is known of a snapshot, as JSON",
	  .about =
		  "Its sandbox's configuration, what its memory needs, and its files with their checksums.",
	  .examples = EXAMPLES("asb snapshot inspect before-upgrade") },
	{ .name = "snapshot rm",
	  .args = takes_some_snapshots,
	  .opts = takes_plain_opts,
	  .run = cmd_snapshot_rm,
	  .failure = 1,
	  .summary = "remove snapshots",
	  .about = "Sandboxes that were restored from one are not touched, running or not.",
	  .examples = EXAMPLES("asb snapshot rm before-upgrade") },
	{ .name = "snapshot save",
	  .args = takes_snapshot_save_args,
	  .opts = takes_plain_opts,
	  .run = cmd_snapshot_save,
	  .failure = 1,
	  .summary = "write a snapshot to one file",
	  .about =
		  "The file is compressed and needs nothing else but the image, of which it has the checksum. It "
		  "holds all that was in the sandbox's memory, secrets too, and is readable by you alone. A "
		  "damaged snapshot is refused. FILE is replaced when all is written.",
	  .examples =
		  EXAMPLES("asb snapshot save before-upgrade app.snap",
			   "asb snapshot save before-upgrade - | ssh other asb snapshot load -") },
	{ .name = "snapshot load",
	  .args = takes_snapshot_load_args,
	  .opts = takes_snapshot_opts,
	  .run = cmd_snapshot_load,
	  .failure = 1,
	  .summary = "take a snapshot in from a file",
	  .about =
		  "A file of another format, of another QEMU, accelerator, CPU or image, one that was cut or "
		  "changed: all are refused with the reason, and nothing of them remains. --disk-only takes the "
		  "disk alone, and so also what is of another QEMU or CPU.\n\n"
		  "Load only what comes from somebody you trust: checksums find damage, and say nothing about who wrote "
		  "the file.",
	  .examples =
		  EXAMPLES("asb snapshot load app.snap", "asb snapshot load app.snap app-copy") },
	{ .name = "restart",
	  .args = takes_some_sandboxes,
	  .opts = takes_restart_opts,
	  .run = cmd_restart,
	  .failure = 1,
	  .summary = "power sandboxes off and boot them again from their disks",
	  .about = "What was running in them ends; files stay.",
	  .examples = EXAMPLES("asb restart app") },
	{ .name = "rm",
	  .args = takes_some_sandboxes,
	  .opts = takes_rm_opts,
	  .run = cmd_rm,
	  .failure = 1,
	  .summary = "end sandboxes and remove all of them",
	  .about =
		  "A running one is ended first. Its disk is deleted. A name whose machine is gone already "
		  "is forgotten. All names are tried even when one fails.",
	  .examples = EXAMPLES("asb rm app", "asb rm $(asb ls -q)") },
	{ .name = "infra init",
	  .args = takes_no_args,
	  .opts = takes_infra_init_opts,
	  .run = cmd_infra_init,
	  .failure = 1,
	  .summary = "write a sandbox.yaml with comments, to begin with",
	  .about =
		  "The file says what AWS is to have for running sandboxes there: an image, two roles, a "
		  "bucket, and a network connector if one is wanted. It has every key with its default.",
	  .examples = EXAMPLES("asb infra init", "asb infra init -f stacks/eu.yaml") },
	{ .name = "infra preview",
	  .args = takes_no_args,
	  .opts = takes_infra_preview_opts,
	  .run = cmd_infra_preview,
	  .failure = 1,
	  .summary = "show what asb infra up would do, and why",
	  .about =
		  "Reads what is there and what is recorded, changes nothing, and prints a line for each resource. "
		  "Exit status 1 when up would refuse.",
	  .examples = EXAMPLES("asb infra preview", "asb infra preview --json") },
	{ .name = "infra up",
	  .args = takes_no_args,
	  .opts = takes_infra_up_opts,
	  .run = cmd_infra_up,
	  .failure = 1,
	  .summary = "set up on AWS what sandbox.yaml describes",
	  .about =
		  "Does what asb infra preview shows, tells each step on stderr, and prints the outputs. Each thing is "
		  "recorded before it is made; after an end in the middle, up goes on where it was.\n\n"
		  "What was there before is used, and never changed or deleted. The image is built anew when its folder, its base image or its "
		  "build role has changed; a Dockerfile that is known to fail is refused first (--no-check). Several stacks are set up at the "
		  "same time, --parallelism 1: one after the other; one that fails does not stop the others.",
	  .examples = EXAMPLES("asb infra up", "asb infra up -f stacks/ --stack prod") },
	{ .name = "infra refresh",
	  .args = takes_no_args,
	  .opts = takes_infra_refresh_opts,
	  .run = cmd_infra_refresh,
	  .failure = 1,
	  .summary = "forget what has gone from AWS by itself",
	  .about =
		  "Looks at each resource that is recorded. Only one that AWS says it does not have is forgotten; what "
		  "cannot be looked at stays, with a warning and exit status 1.",
	  .examples = EXAMPLES("asb infra refresh") },
	{ .name = "infra destroy",
	  .args = takes_no_args,
	  .opts = takes_infra_destroy_opts,
	  .run = cmd_infra_destroy,
	  .failure = 1,
	  .summary = "delete what asb infra up has made",
	  .about =
		  "Shows what goes and asks, unless --yes is given; with that, several stacks go at the same time. Refuses while sandboxes of the image live; "
		  "--force ends them. What was there before the stack stays. The log groups stay too.",
	  .examples = EXAMPLES("asb infra destroy", "asb infra destroy --yes --stack dev") },
	{ .name = "infra output",
	  .args = takes_output_args,
	  .opts = takes_infra_output_opts,
	  .run = cmd_infra_output,
	  .failure = 1,
	  .summary = "print what the infrastructure of a stack is called",
	  .about =
		  "Prints a JSON document with project, stack and the outputs of the last asb infra up: image_arn, "
		  "execution_role_arn, build_bucket and, with egress, egress_network_connector_arn, security_group_id, "
		  "subnet_ids, vpc_id. OUTPUT alone is printed on one line. Nothing is asked of AWS.",
	  .examples = EXAMPLES("asb infra output", "asb infra output image_arn",
			       "asb infra output --all") },
	{ .name = "mcp",
	  .args = takes_no_args,
	  .opts = takes_mcp_opts,
	  .run = cmd_mcp,
	  .failure = 1,
	  .summary = "serve the Model Context Protocol on standard input and output",
	  .about =
		  "For agents: a client starts it and calls its tools, which do what the commands of asb do, on the same "
		  "sandboxes. Nothing but messages of the protocol is written to standard output.\n\n"
		  "It ends when its input does, and then ends the commands that it runs and removes the sandboxes "
		  "that were meant to be thrown away. Named sandboxes stay.\n\n"
		  "Tools read and write files of this machine only below the folders of AGENT_SANDBOX_MCP_HOST_PATHS, by default "
		  "the current directory. Tools, limits and variables are described in docs/mcp.md.",
	  .examples = EXAMPLES("asb mcp", "asb mcp --print-config claude",
			       "asb mcp --read-only --no-network") },
	{ .name = "image init",
	  .args = takes_folder_args,
	  .opts = takes_init_opts,
	  .run = cmd_image_init,
	  .failure = 1,
	  .summary = "make the folder of an image for AWS, to begin with",
	  .about =
		  "Writes a Dockerfile, asb's programs for the guest (asb-init, agentd and asb-hooks, for aarch64), a "
		  ".dockerignore and a README.md into DIR. What is your own goes into the Dockerfile; asb image build "
		  "--backend aws builds it. When one of these files is there already, nothing is written.",
	  .examples = EXAMPLES("asb image init guest",
			       "asb image init guest --from docker.io/library/debian:12-slim") },
	{ .name = "image build",
	  .args = takes_source_args,
	  .opts = takes_build_opts,
	  .run = cmd_image_build,
	  .failure = 1,
	  .summary = "make an image, or its next version, from files",
	  .about =
		  "SOURCE becomes the read-only root file system of sandboxes. A directory is copied as it is; one "
		  "with a Dockerfile or a Containerfile is built with buildah, podman or docker ($ASB_BUILDER); a "
		  "tar may be plain, or compressed with gzip or zstd.\n\n"
		  "Then the image is booted, waits until /etc/asb/ready in it says so, and leaves a template from "
		  "which sandboxes start. A clone of that must run a command before the image gets its name. "
		  "Prints NAME:VERSION. A build that fails tells the step (unpack, mkfs, boot, ready, template, "
		  "validate) with the guest's log, and leaves nothing behind; the versions before it stay.\n\n"
		  "The same files give the same version again. Owners are kept when asb runs as root, else all "
		  "files belong to root. Times, extended attributes, devices, names that begin with lost+found, and "
		  "what is in /dev, /proc, /sys, /run and /tmp are not kept, nor are ENV, CMD and USER of a Dockerfile.\n\n"
		  "With --backend aws SOURCE is a directory with a Dockerfile, which AWS builds (docs/images.md): its "
		  "files go to a bucket as a zip, the image gets its next version, and a build that fails shows AWS's "
		  "reason and the end of its log. --memory is the size of the image's sandboxes, --start-timeout how "
		  "long the build is waited for.",
	  .examples = EXAMPLES("asb image build rootfs --name tools",
			       "docker export web | asb image build - --name web",
			       "asb image build . --name app -m 1g",
			       "asb image build . --name app --backend aws") },
	{ .name = "image ls",
	  .args = takes_no_args,
	  .opts = takes_image_ls_opts,
	  .run = cmd_image_ls,
	  .failure = 1,
	  .summary = "list the images that sandboxes can start from",
	  .about =
		  "NAME alone means the newest version, which comes first. SIZE is that of the root file system, UNIQUE what "
		  "it takes on the disk for this version alone: content is stored once. TEMPLATES are those of its content, "
		  "one for each number of CPUs, memory and network. An installed image belongs to asb, and can be neither "
		  "rebuilt nor removed; an image of yours with its name takes its place.\n\n"
		  "With --backend aws VERSION is the active one, and STATE tells what AWS is doing with the image.",
	  .examples = EXAMPLES("asb image ls", "asb image ls --json",
			       "asb image ls --backend aws --managed") },
	{ .name = "image inspect",
	  .args = takes_one_image,
	  .opts = takes_image_opts,
	  .run = cmd_image_inspect,
	  .failure = 1,
	  .summary = "print all that is known of an image, as JSON",
	  .about =
		  "Of NAME alone, its newest version; on AWS NAME's versions, and of NAME:VERSION its builds.",
	  .examples = EXAMPLES("asb image inspect base") },
	{ .name = "image rm",
	  .args = takes_some_images,
	  .opts = takes_image_rm_opts,
	  .run = cmd_image_rm,
	  .failure = 1,
	  .summary = "remove images and their templates",
	  .about =
		  "One that a sandbox or a snapshot was made from is refused: they need it to start again. On AWS that is one "
		  "from which a sandbox lives, and --force ends those.",
	  .examples = EXAMPLES("asb image rm tools:1", "asb image rm tools") },
	{ .name = "image prune",
	  .args = takes_no_args,
	  .opts = takes_image_prune_opts,
	  .run = cmd_image_prune,
	  .failure = 1,
	  .summary = "remove old versions of images that nothing uses",
	  .about =
		  "The newest version of each name stays.\n\n"
		  "With --backend aws it is the images of the region that asb image build has made, by their tag: the "
		  "versions before the active one from which no sandbox lives, and the zips of those in the bucket.",
	  .examples = EXAMPLES("asb image prune --dry-run", "asb image prune -f",
			       "asb image prune --backend aws --dry-run") },
	{ .name = "prune",
	  .args = takes_no_args,
	  .opts = takes_prune_opts,
	  .run = cmd_prune,
	  .failure = 1,
	  .summary = "remove what crashed processes left, and stale templates",
	  .about =
		  "Sandboxes that were never finished, builds and snapshots that were cut short, contents that no "
		  "image has any more, and templates that are 30 days old or whose image is gone. Nothing of "
		  "this is in anybody's way; it is only space. What is in use is never touched.\n\n"
		  "It is about this machine, whatever the backend; asb gc and asb image prune are there for AWS.",
	  .examples = EXAMPLES("asb prune --dry-run", "asb prune --all") },
	{ .name = "gc",
	  .args = takes_no_args,
	  .opts = takes_gc_opts,
	  .run = cmd_gc,
	  .failure = 1,
	  .summary = "end MicroVMs on AWS that no sandbox is recorded for",
	  .about =
		  "Compares the records with the MicroVMs that live in their regions and in the configured one. Those that "
		  "no record names are shown and, when you agree, ended; AWS does not tell who started one, so it may "
		  "be a colleague's. Names whose MicroVM has ended are forgotten.\n\n"
		  "What was started within the last three minutes is left alone, and so is a name whose asb create may still "
		  "run (asb rm forgets that one).",
	  .examples = EXAMPLES("asb gc --dry-run", "asb gc", "asb gc --yes --region eu-west-1") },
	{ .name = "doctor",
	  .args = takes_no_args,
	  .opts = takes_place_opts,
	  .run = cmd_doctor,
	  .failure = 1,
	  .summary = "check what this machine can do, and tell what is missing",
	  .about = "Each line is ok, warn or fail. Exit status 1 when something fails.",
	  .examples = EXAMPLES("asb doctor") },
	{ .name = "version",
	  .args = takes_no_args,
	  .opts = takes_plain_opts,
	  .run = cmd_version,
	  .failure = 1,
	  .summary = "show the version",
	  .about = "The version of asb and of what it was built with.",
	  .examples = EXAMPLES("asb version --json") },
	{ .name = "help",
	  .args = takes_topic_args,
	  .opts = takes_text_opts,
	  .run = cmd_help,
	  .failure = 1,
	  .summary = "show help for asb or for a command",
	  .about = "The same as asb COMMAND --help.",
	  .examples = EXAMPLES("asb help run") },
	{ .name = "completion",
	  .args = takes_shell_args,
	  .opts = takes_text_opts,
	  .run = cmd_completion,
	  .failure = 1,
	  .summary = "print a completion script for a shell",
	  .about =
		  "It completes commands, options, their values, and names of sandboxes, snapshots and images.",
	  .examples = EXAMPLES("source <(asb completion bash)",
			       "asb completion fish > ~/.config/fish/completions/asb.fish") },
	{ .name = "manifest",
	  .args = takes_topic_args,
	  .opts = takes_manifest_opts,
	  .run = cmd_manifest,
	  .failure = 1,
	  .summary = "describe every command, option and exit status, as JSON",
	  .about = "For programs that drive asb, and for making its manual pages.",
	  .examples = EXAMPLES("asb manifest", "asb manifest --man run | man -l -") },
	{ .name = "__supervise",
	  .args = takes_no_args,
	  .opts = takes_plain_opts,
	  .run = cmd_supervise,
	  .failure = 1,
	  .summary = "the process behind one local sandbox",
	  .about = "",
	  .hidden = true,
	  .raw = true,
	  .examples = EXAMPLES("asb __supervise FOLDER") },
	{ .name = NULL },
};
