/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_BENCH_BARE_H
#define ASB_BENCH_BARE_H

#include <stdint.h>
#include <sys/types.h>

/*
 * The floor of a start: bare QEMU with the same command line, the same template and the same agent, and nothing of asb: no supervisor,
 * no run hook, no state on the disk.
 */
struct bare {
	char raw[16384];
	char *argv[160]; /* points into raw */
	char dir[256];	 /* where it runs: base.ram, base.devices, disk.qcow2 */
};

/* Takes the command line of a clone's QEMU, and copies TEMPLATE into DIR. 0 or -1. */
int bare_prepare(struct bare *b, pid_t qemu, const char *template, const char *dir);

/* ns from its start until the output of `echo BARE` is here, or -1. *RET_HELLO: until the guest's first byte. */
int64_t bare_restore(struct bare *b, int64_t *ret_hello);

#endif
