/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_LOCAL_COPY_H
#define ASB_LOCAL_COPY_H

#include <stdbool.h>
#include <stdint.h>

#include "host/local/vmdir.h"
#include "lib/compiler.h"
#include "lib/err.h"

/*
 * Memory, devices and disk of a sandbox at one instant. Of a running one its supervisor writes them into a folder of
 * their own (op "branch"); one that is suspended is such a copy already, and its lock keeps it so. Of one that has
 * ended there is only the disk.
 */
enum copy_flags {
	COPY_SYNC = 1 << 0, /* a running guest writes its files to the disk first */
	COPY_DISK = 1 << 1, /* the disk alone */
};

struct copy {
	struct vm_config config;
	struct vm_source from; /* points into this */
	bool own_disk;	       /* the disk is nobody else's: it may be linked instead of copied */
	bool based;	       /* base.ram in from.dirfd is below the memory */
	char accel[8];	       /* that it runs or ran with */
	/* within */
	char name[80], disk[LOCAL_PATH_MAX];
	int dirfd, lock;
};

/* MARK: a sandbox's id that is nobody's, for the name of the folder. copy_drop in any case. */
int copy_take(struct copy *c, const char *id, const char *mark, unsigned flags, int64_t deadline_ns,
	      struct err *e) MUST_CHECK;
void copy_drop(struct copy *c);

#endif
