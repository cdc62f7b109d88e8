/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HOOKS_ONCE_H
#define HOOKS_ONCE_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/compiler.h"

/*
 * What /run was called with, once in the life of a guest. Kept in a file too, so that a restarted
 * asb-hooks still knows; the file counts only for the same run of asb-init, whose id is in
 * ASB_INIT_ID.
 */
struct once_digest {
	char hex[65]; /* SHA-256; "" = none */
};

struct once {
	char path[256];
	char init_id[64];
	struct once_digest done;
};

/* DIR: where the file is. INIT_ID may be "". */
void once_load(struct once *o, const char *dir, const char *init_id);
void once_digest(const void *body, size_t n, struct once_digest *ret);
bool once_same(const struct once_digest *a, const struct once_digest *b);
int once_commit(struct once *o, const struct once_digest *d)
	MUST_CHECK; /* in memory always; 0 or the file's negative errno */

#endif
