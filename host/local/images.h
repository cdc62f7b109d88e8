/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_LOCAL_IMAGES_H
#define ASB_LOCAL_IMAGES_H

#include <stdbool.h>
#include <stdint.h>

#include "host/backend.h"
#include "host/local/local.h"
#include "lib/compiler.h"
#include "lib/err.h"

/*
 * The images there are: the user's, <state>/local/images/<name>/<version>/, and the installed ones,
 * <share>/images/<name>/, which have one version each and are only read. Names are looked up in this order. What changes
 * the user's is in imagestore.h.
 */

#define IMAGE_SHA_LEN 64 /* hexadecimal digits of SHA-256 */

struct image_ref { /* "base", "base:2" */
	char name[IMAGE_NAME_LEN + 1];
	uint64_t version; /* 0: the newest */
};

/* -EINVAL + ERR_INVALID: it is no name of an image. */
int image_ref_parse(const char *s, struct image_ref *ret, struct err *e) MUST_CHECK;

struct image { /* one version; no pointers */
	char name[IMAGE_NAME_LEN + 1];
	uint64_t version;
	bool installed;
	char dir[LOCAL_PATH_MAX];
	char rootfs[LOCAL_PATH_MAX]; /* what QEMU opens; of the user's images the file in blobs/ */
	char sha256[IMAGE_SHA_LEN + 1]; /* "": image.json does not say */
	char created[32];
	char source[16]; /* "directory", "tar", "dockerfile"; "" unknown */
	uint64_t bytes;	 /* of the root file system */
	char broken
		[200]; /* why it cannot be used; "" when it can. Only images_each gives such ones. */
};

/* <state>/local/images and the file of a content in it; nothing is made. */
int images_root(char ret[LOCAL_PATH_MAX], struct err *e) MUST_CHECK;
int images_blob(const char *sha256, char ret[LOCAL_PATH_MAX], struct err *e) MUST_CHECK;

/* -ENOENT + ERR_NOT_FOUND with what there is instead. */
int images_find(const struct image_ref *ref, struct image *ret, struct err *e) MUST_CHECK;

/* The highest version of NAME that there is, of the user's and the installed; 0: none. */
uint64_t images_newest(const char *name);

/* FN for each, by name, the newest version first. Non-zero from FN stops and is returned. */
int images_each(int (*fn)(void *arg, const struct image *i), void *arg, struct err *e) MUST_CHECK;

#endif
