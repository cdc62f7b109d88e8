/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_LOCAL_SNAPSHOT_H
#define ASB_LOCAL_SNAPSHOT_H

#include "host/backend.h"
#include "host/local/share.h"
#include "host/local/snapmeta.h"
#include "lib/compiler.h"
#include "lib/err.h"

/* The local backend's snapshots: snapmake.c makes them, snapuse.c begins sandboxes with them, snapshot.c does the
 * rest. */
extern const struct snapshot_ops snapshots_local;

int snapmake_create(const char *id, const char *name, unsigned flags, const struct progress *p,
		    int64_t deadline_ns, struct err *e) MUST_CHECK;
int snapuse_restore(const char *name, struct sandbox_child *child, unsigned flags,
		    const struct progress *p, int64_t deadline_ns, struct err *e) MUST_CHECK;

/* What a snapshot needs on this machine. */
struct snap_place {
	struct share share;
	char qemu[LOCAL_PATH_MAX];
	char image[SANDBOX_IMAGE_MAX + 1]; /* with its version */
	char rootfs[65];		   /* SHA-256 of its file system */
};
/* Finds it for a sandbox of IMAGE. */
int snapuse_find(const char *image, struct snap_place *ret, struct err *e) MUST_CHECK;
/* The same for M: an image with the same root file system must be here, under whatever name, which M then has; and, with
 * MEMORY, everything that its memory needs: else -ESTALE + ERR_CONFLICT with the reason. */
int snapuse_fits(struct snap_meta *m, bool memory, struct snap_place *ret, struct err *e)
	MUST_CHECK;

#endif
