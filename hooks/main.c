/* SPDX-License-Identifier: Apache-2.0 */
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "child.h"
#include "lib/log.h"
#include "lib/loop.h"
#include "lib/proto.h"
#include "lib/str.h"
#include "server.h"
#include "version.h"

#define DRAIN_MAX_S 3600

static const char *env_or(const char *name, const char *fallback)
{
	const char *v = getenv(name);

	return v && *v ? v : fallback;
}

static void on_signal(void *arg, const void *siginfo)
{
	const struct signalfd_siginfo *si = siginfo;

	if (si->ssi_signo == SIGCHLD)
		child_reap();
	else
		loop_stop(arg);
}

static int take_signals(struct loop *l)
{
	sigset_t set;

	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGCHLD);
	(void)sigaddset(&set, SIGTERM);
	(void)sigaddset(&set, SIGINT);
	(void)signal(SIGPIPE, SIG_IGN);
	return loop_signals(l, &set, on_signal, l);
}

/* Where the state is: the folder of the identity file. */
static void load_state(struct hooks *h)
{
	const char *slash = strrchr(h->identity_path, '/');
	char dir[PATH_MAX];

	if (!slash || str_format(dir, sizeof(dir), "%.*s", (int)(slash - h->identity_path),
				 h->identity_path) < 0)
		ignore_result(str_format(dir, sizeof(dir), "."));
	once_load(&h->once, dir, env_or("ASB_INIT_ID", ""));
}

static void notify(void)
{
	uint64_t fd;

	if (str_to_u64(env_or("ASB_NOTIFY_FD", ""), 3, INT_MAX, &fd) < 0)
		return;
	if (write((int)fd, "1", 1) < 0)
		log_warn("nobody takes the notification");
	(void)close((int)fd);
}

int main(int argc, char **argv)
{
	static struct loop loop;
	static struct hooks h;
	struct err e = ERR_INIT;
	uint64_t port = PROTO_HOOK_PORT;

	if (argc == 2 && !strcmp(argv[1], "--version"))
		return printf("asb-hooks %s\n", ASB_VERSION) < 0;
	if (argc > 1) {
		(void)fputs("usage: asb-hooks [--version]\nSettings: see asb-hooks(8).\n", stderr);
		return strcmp(argv[1], "--help") != 0;
	}
	log_open("asb-hooks", STDERR_FILENO, LOG_LEVEL_INFO);
	h = (struct hooks){ .loop = &loop,
			    .bind_addr = env_or("AGENTD_BIND", NULL),
			    .agent_socket = env_or("AGENTD_SOCKET", PROTO_AGENT_SOCKET),
			    .identity_path = env_or("AGENTD_IDENTITY_PATH", PROTO_IDENTITY),
			    .etc = env_or("ASB_ETC", "/etc/asb"),
			    .machine = access(PROTO_INIT_SOCKET, F_OK) == 0 ||
				       getenv("ASB_HOOKS_MACHINE") };
	if (str_to_ns(env_or("AGENTD_SUSPEND_DRAIN_SECONDS", "8"), DRAIN_MAX_S, &h.drain_ns) < 0 ||
	    str_to_u64(env_or("AGENTD_HOOK_PORT", "9000"), 1, 65535, &port) < 0) {
		log_error("AGENTD_SUSPEND_DRAIN_SECONDS or AGENTD_HOOK_PORT is wrong");
		return 1;
	}
	load_state(&h);
	if (loop_init(&loop) < 0 || take_signals(&loop) < 0 ||
	    server_start(&h, (uint16_t)port, &e) < 0) {
		log_error("%s", e.msg[0] ? e.msg : "cannot start");
		return 1;
	}
	notify();
	return loop_run(&loop) < 0;
}
