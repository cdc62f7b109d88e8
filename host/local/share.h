/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_LOCAL_SHARE_H
#define ASB_LOCAL_SHARE_H

#include "host/backend.h"
#include "host/local/local.h"
#include "lib/compiler.h"
#include "lib/err.h"

/* What every VM on this machine starts from: $ASB_SHARE, else ../share/asb beside the executable's
 * folder. */

struct share { /* paths; no pointers */
	char dir[LOCAL_PATH_MAX];
	char kernel[LOCAL_PATH_MAX], initrd[LOCAL_PATH_MAX], upper[LOCAL_PATH_MAX];
	char rootfs[LOCAL_PATH_MAX];	   /* of the image that was asked for */
	char image[SANDBOX_IMAGE_MAX + 1]; /* its name with the version */
};

/* Where the share is; -ENOENT + ERR_NOT_FOUND when there is no such folder. */
int share_dir(char ret[LOCAL_PATH_MAX], struct err *e) MUST_CHECK;

/*
 * Everything that a VM of IMAGE ("base", "base:1", of images.h) needs, checked to be readable. The message of a
 * failure names the file and says how to make it. IMAGE may be SHARE_BLOB and a SHA-256, too: what an image is built
 * from before it has a name.
 */
#define SHARE_BLOB "@"
int share_find(const char *image, struct share *ret, struct err *e) MUST_CHECK;

#endif
