/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_LOCAL_IMAGEBUILD_H
#define ASB_LOCAL_IMAGEBUILD_H

#include "host/backend.h"
#include "lib/compiler.h"

/* `build` of struct image_ops. */
int imagebuild(const struct image_spec *spec, const struct progress *p, struct image_built *ret,
	       struct err *e) MUST_CHECK;

#endif
