/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "container.h"
#include "version.h"
#include "vm.h"

static const char usage[] =
	"usage: asb-init [-- COMMAND [ARGUMENT...]]\n"
	"       asb-init --help | --version\n"
	"\n"
	"First process of a sandbox: keeps agentd and asb-hooks running, reaps orphans.\n"
	"In a container COMMAND is the image's own service, and its status ends the container.\n"
	"As the first process of a VM it takes no arguments. See asb-init(8).\n";

int main(int argc, char **argv)
{
	if (vm_detect())
		vm_main();
	if (argc == 2 && !strcmp(argv[1], "--version")) {
		(void)printf("asb-init %s\n", ASB_VERSION);
		return 0;
	}
	if (argc == 2 && !strcmp(argv[1], "--help")) {
		(void)fputs(usage, stdout);
		return 0;
	}
	if (argc > 1 && strcmp(argv[1], "--") != 0) {
		(void)fputs(usage, stderr);
		return CONTAINER_EXIT_USAGE;
	}
	return container_main(argc > 2 ? argv + 2 : NULL);
}
