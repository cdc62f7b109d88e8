/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_LOCAL_QEMU_H
#define ASB_LOCAL_QEMU_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/compiler.h"
#include "lib/err.h"

/* QEMU's command line. Pure: what runs it is machine.c. */

enum qemu_port {
	QEMU_PORT_QMP,
	QEMU_PORT_CONSOLE,
	QEMU_PORT_CHANNEL,
	QEMU_PORT_BOOT,
	QEMU_PORT_COUNT
};

struct qemu_config { /* all strings borrowed */
	const char *binary;
	const char *kernel, *initrd, *rootfs; /* paths */
	const char *disk;		      /* path of the qcow2 file that takes the writes */
	const char *hostname;		      /* one label of RFC 1123 */
	uint64_t memory_mib;
	uint32_t cpus;
	bool kvm;
	bool net_user;
	uint32_t tsc_khz; /* 0 = let the guest find out, which it cannot under emulation */
	bool balloon; /* gives memory that the guest frees back to the host; only where no template
			 is mapped, see qemu.c */
	int64_t time_s, time_ns;
	int fd[QEMU_PORT_COUNT]; /* inherited sockets, one for each port */
	/* A machine that does not boot but goes on where another one was. kernel, initrd, time and
	 * hostname are not used then. */
	bool incoming;
	int state_fd;	 /* its device state, inherited: loaded at once, and then the guest runs;
			    -1: nothing is loaded or run until QMP says so */
	const char *ram; /* path of its memory, mapped copy-on-write; NULL: memory begins empty */
};

/* Of a guest that becomes a template: a clone's own name comes with its run hook. */
#define QEMU_TEMPLATE_HOSTNAME "sandbox"

#define QEMU_ARGS_MAX 80

struct qemu_args {
	char *argv[QEMU_ARGS_MAX + 1]; /* owned strings, NULL-terminated */
	int argc;
};

/* 0, -EINVAL for a hostname or numbers that no command line can hold, -ENOMEM. qemu_args_done in
 * any case. */
int qemu_args(const struct qemu_config *c, struct qemu_args *ret) MUST_CHECK;
void qemu_args_done(struct qemu_args *a);

/* "QEMU emulator version 7.2.22 (Debian …)": major * 1000000 + minor * 1000 + micro, 0 when it is
 * none. */
uint32_t qemu_version(const char *text);
#define QEMU_VERSION_LEAST 7002000

/* Makes a hostname of a sandbox's name: other characters become '-', at most 63, none at the ends.
 */
void qemu_hostname(const char *name, char out[64]);

#endif
