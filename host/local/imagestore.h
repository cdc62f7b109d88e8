/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_LOCAL_IMAGESTORE_H
#define ASB_LOCAL_IMAGESTORE_H

#include <signal.h>
#include <stdint.h>

#include "host/image.h"
#include "host/local/images.h"
#include "lib/compiler.h"
#include "lib/err.h"
#include "lib/jsn.h"

/*
 * What changes <state>/local/images:
 *     lock                        held for each of the short changes below
 *     blobs/<sha256>.erofs        each root file system once
 *     <name>/<version>/           rootfs.erofs, a hard link to its blob, and image.json
 *     .new-<16 hex digits>/       one that is being built; its builder holds .new-…/lock as long as it lives
 * A blob without a version or a build that links to it is one that can go.
 */

#define IMAGE_ROOTFS "rootfs.erofs"

struct image_work { /* a build under way */
	char dir[LOCAL_PATH_MAX];
	int dirfd, lock;
	char sha256[IMAGE_SHA_LEN + 1]; /* "" before imagestore_add */
};
#define IMAGE_WORK_INIT         \
	{                       \
		"", -1, -1, "", \
	}

/* Makes the folder of a build, and removes what dead ones have left. */
int imagestore_begin(struct image_work *w, struct err *e) MUST_CHECK;

/* The root file system is in the build's folder as IMAGE_ROOTFS: hashes it, brings it to the disk, and lets blobs/ have
 * it, or takes the one that is there. -EINTR when *CANCEL (may be NULL) is set. */
int imagestore_add(struct image_work *w, const volatile sig_atomic_t *cancel, struct err *e)
	MUST_CHECK;

/*
 * Gives the build a name and the next version, in one step. META: further members of image.json. When the newest
 * version of NAME has this content, nothing is made: *RET_UNCHANGED. W is over then; on failure it is as before.
 */
int imagestore_commit(struct image_work *w, const char *name, const cJSON *meta,
		      uint64_t *ret_version, bool *ret_unchanged, struct err *e) MUST_CHECK;

/* The version of NAME, its newest, whose content is that of W; 0: none. */
uint64_t imagestore_same(const struct image_work *w, const char *name);

void imagestore_abort(struct image_work *w); /* fine when nothing was begun, or all is over */

/* One version of the user's, with what only it needs. */
int imagestore_remove(const struct image *i, struct err *e) MUST_CHECK;

/* What builds and removals that died have left. FLAGS: of prune_flags; FN may be NULL. */
int imagestore_collect(unsigned flags, prune_fn *fn, void *arg, struct err *e) MUST_CHECK;

#endif
