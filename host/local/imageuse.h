/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_LOCAL_IMAGEUSE_H
#define ASB_LOCAL_IMAGEUSE_H

#include <stddef.h>
#include <stdint.h>

#include "host/local/images.h"
#include "lib/compiler.h"
#include "lib/err.h"

/* Which sandboxes and snapshots name which image. */

struct image_use {
	char *name;	      /* owned: of the sandbox, or "snapshot NAME" */
	struct image_ref ref; /* version 0: whichever is the newest */
};

struct image_uses {
	struct image_use *all; /* owned */
	size_t len;
};

/* All there are. One that cannot be read counts as none. image_uses_done. */
int image_uses_find(struct image_uses *ret, struct err *e) MUST_CHECK;
void image_uses_done(struct image_uses *u);

/* Whether U means version VERSION of NAME; NEWEST: that is its newest one. */
bool image_use_means(const struct image_use *u, const char *name, uint64_t version, bool newest);

#endif
