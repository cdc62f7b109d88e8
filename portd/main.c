/* SPDX-License-Identifier: Apache-2.0 */
/*
 * asb-portd [--fd N | PATH]: the guest's end of the VM channel. Without an argument it is the
 * virtio port PROTO_PORT_CHANNEL. The port is opened once and stays open until the process ends,
 * because QEMU drops what the host sends to a closed one.
 */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../lib/fd.h"
#include "../lib/log.h"
#include "../lib/loop.h"
#include "../lib/proto.h"
#include "../lib/str.h"
#include "port.h"
#include "portd.h"
#include "version.h"

#define PORT_WAIT_MS 5000

static int open_channel(int argc, char **argv, int *ret_fd, struct err *e)
{
	uint64_t fd;
	int r;

	if (argc == 1)
		return port_open("/sys/class/virtio-ports", "/dev", PROTO_PORT_CHANNEL,
				 PORT_WAIT_MS, ret_fd, e);
	if (argc == 2 && argv[1][0] != '-')
		return port_open_path(argv[1], ret_fd, e);
	if (argc != 3 || strcmp(argv[1], "--fd") != 0 || str_to_u64(argv[2], 0, INT_MAX, &fd) < 0)
		return err_set(e, ERR_USAGE, EINVAL, "usage: asb-portd [--fd N | PATH]");
	*ret_fd = (int)fd;
	r = fd_set_nonblock(*ret_fd, true);
	return r < 0 ? err_set(e, ERR_USAGE, -r, "descriptor %s", argv[2]) : 0;
}

/* --version and --help; false when it is neither. */
static bool told(int argc, char **argv)
{
	if (argc == 2 && !strcmp(argv[1], "--version"))
		return printf("asb-portd %s\n", ASB_VERSION) > 0;
	if (argc == 2 && !strcmp(argv[1], "--help"))
		return printf("usage: asb-portd [--fd N | PATH]\n\n"
			      "The guest's end of the channel of a local microVM: asb-init starts it. See "
			      "asb-portd(8).\n") > 0;
	return false;
}

/* Tells who started us that the port is open: from now on nothing the host sends is lost. */
static void notify(void)
{
	const char *s = getenv("ASB_NOTIFY_FD");
	uint64_t fd;

	if (!s || str_to_u64(s, 3, INT_MAX, &fd) < 0)
		return;
	if (write((int)fd, "\n", 1) < 0)
		log_warn("cannot tell that the port is open: %s", strerror(errno));
	(void)close((int)fd);
}

int main(int argc, char **argv)
{
	struct err e = ERR_INIT;
	struct loop loop;
	struct portd *p;
	int fd, r;

	log_open("asb-portd", STDERR_FILENO, LOG_LEVEL_INFO);
	(void)signal(SIGPIPE, SIG_IGN);
	if (told(argc, argv))
		return 0;
	if (open_channel(argc, argv, &fd, &e) < 0) {
		log_error("%s", e.msg);
		return e.code == ERR_USAGE ? 2 : 1;
	}
	r = loop_init(&loop);
	if (r == 0)
		r = portd_start(&loop, fd, &p);
	if (r == 0) {
		notify();
		r = loop_run(&loop);
	}
	log_error("%s", strerror(-r));
	return 1;
}
