/* SPDX-License-Identifier: Apache-2.0 */
#ifndef INIT_ROOT_H
#define INIT_ROOT_H

#include "lib/compiler.h"
#include "lib/err.h"

/*
 * The root file system of a VM: the image (/dev/vda, EROFS) below the VM's own disk (/dev/vdb,
 * ext4; without one, memory) as an overlay, then the switch from the initramfs into it, with /proc
 * /sys /dev moved along.
 */

int root_mount(struct err *e) MUST_CHECK; /* waits for /dev/vda, bounded */
int root_switch(struct err *e) MUST_CHECK;

/* Shows the guest programs of the initramfs at PROTO_BIN_DIR, read-only. After mounts_late. */
int root_show_programs(struct err *e) MUST_CHECK;

/* Writes everything out and makes the root and the VM's disk read-only. For power-off; may block.
 */
void root_seal(void);

#endif
