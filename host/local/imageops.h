/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_LOCAL_IMAGEOPS_H
#define ASB_LOCAL_IMAGEOPS_H

#include "host/image.h"
#include "lib/compiler.h"

extern const struct image_ops imageops_local;

/* `prune` of struct backend. */
int imageops_prune(unsigned flags, prune_fn *fn, void *arg, struct err *e) MUST_CHECK;

#endif
