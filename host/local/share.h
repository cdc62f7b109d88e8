/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_LOCAL_SHARE_H
#define ASB_LOCAL_SHARE_H

#include "host/local/local.h"

#include "lib/compiler.h"
#include "lib/err.h"

/* What every VM on this machine starts from: $ASB_SHARE, else ../share/asb beside the executable's
 * folder. */

struct share { /* paths; no pointers */
	char dir[LOCAL_PATH_MAX];
	char kernel[LOCAL_PATH_MAX], initrd[LOCAL_PATH_MAX], upper[LOCAL_PATH_MAX];
	char rootfs[LOCAL_PATH_MAX]; /* of the image that was asked for */
};

/* Where the share is; -ENOENT + ERR_NOT_FOUND when there is no such folder. */
int share_dir(char ret[LOCAL_PATH_MAX], struct err *e) MUST_CHECK;

/*
 * Everything that a VM of IMAGE ("base", "base:1") needs, checked to be readable. The message of a
 * failure names the file and says how to make it.
 */
int share_find(const char *image, struct share *ret, struct err *e) MUST_CHECK;

#endif
