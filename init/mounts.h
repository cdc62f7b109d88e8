/* SPDX-License-Identifier: Apache-2.0 */
#ifndef INIT_MOUNTS_H
#define INIT_MOUNTS_H

#include "lib/compiler.h"
#include "lib/err.h"

/* The file systems that a VM has whatever its image is. "Mounted already" is no error. 0 or
 * negative errno with a message. */

int mounts_early(struct err *e) MUST_CHECK; /* /proc /sys /dev, in the initramfs */
int mounts_late(struct err *e) MUST_CHECK;  /* /run, /tmp, /dev/…, cgroup2, in the image */

/* mount(2) with its directory made first; EBUSY, "it is there", is 0. DATA may be NULL. */
int mounts_one(const char *source, const char *target, const char *type, unsigned long flags,
	       const char *data, struct err *e) MUST_CHECK;

#endif
