/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "app.h"
#include "lib/log.h"
#include "lib/proto.h"
#include "lib/str.h"
#include "notify.h"
#include "version.h"
#include "worker.h"

enum { EXIT_START = 1, EXIT_SETTINGS = 2 };

static const char usage[] =
	"usage: agentd [--version | --help]\n"
	"The agent of a sandbox: runs commands and moves files for HTTP clients on AGENTD_PORT.\n"
	"Settings are environment variables, see agentd(8).\n";

static const char *setting(const char *name, const char *fallback)
{
	const char *v = getenv(name);

	return v && *v ? v : fallback;
}

static int read_settings(struct app *a)
{
	const char *port = setting("AGENTD_PORT", NULL);
	uint64_t v = PROTO_AGENT_PORT;

	if (port && str_to_u64(port, 1, 65535, &v) < 0) {
		log_error("AGENTD_PORT is \"%.100s\", which is not a port number", port);
		return -1;
	}
	a->port = (uint16_t)v;
	a->bind_addr = setting("AGENTD_BIND", "0.0.0.0");
	a->socket_path = setting("AGENTD_SOCKET", PROTO_AGENT_SOCKET);
	a->token_file = setting("AGENTD_TOKEN_FILE", NULL);
	a->passwd_path = "/etc/passwd";
	a->cgroup_root = "/sys/fs/cgroup";
	return 0;
}

int main(int argc, char **argv)
{
	static struct app app;
	struct err e = ERR_INIT;
	int r;

	if (argc > 0 && !strcmp(argv[0], WORKER_NAME))
		return worker_main(argc, argv);
	log_open("agentd", STDERR_FILENO, LOG_LEVEL_INFO);
	if (argc > 1) {
		bool version = !strcmp(argv[1], "--version"), help = !strcmp(argv[1], "--help");

		if (argc > 2 || (!version && !help)) {
			(void)fputs(usage, stderr);
			return EXIT_SETTINGS;
		}
		(void)fputs(version ? "agentd " ASB_VERSION "\n" : usage, stdout);
		return fflush(stdout) == 0 ? 0 : EXIT_START;
	}
	if (read_settings(&app) < 0)
		return EXIT_SETTINGS;
	if (app_start(&app, &e) < 0) {
		log_error("%s", e.msg);
		return e.code == ERR_INVALID ? EXIT_SETTINGS : EXIT_START;
	}
	notify_ready();
	r = app_run(&app);
	if (r < 0)
		log_error("event loop: %s", strerror(-r));
	app_done(&app);
	return r < 0 ? EXIT_START : 0;
}
