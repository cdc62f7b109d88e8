/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_LOCAL_IMAGESOURCE_H
#define ASB_LOCAL_IMAGESOURCE_H

#include <stdbool.h>
#include <stdint.h>

#include "host/backend.h"
#include "host/local/imagestore.h"
#include "lib/compiler.h"
#include "lib/err.h"
#include "lib/unpack.h"

/* What an image is built from, as a tree of files in the build's folder. */

#define IMAGE_TREE	"tree"
#define IMAGE_BYTES_MAX (64ULL << 30) /* of the files of one image */

struct imagesource {
	const char *kind;    /* "directory", "tar", "dockerfile" */
	const char *builder; /* program that built it; "" */
	struct unpack_count count;
	/* Devices, what was in the folders that a machine fills itself, and names that mkfs.erofs does not keep; a folder
	 * of a directory that is left out counts as one. */
	uint64_t left_out;
};

/*
 * SOURCE: a directory, which is copied; a directory with a Dockerfile or a Containerfile, which is built with buildah,
 * podman or docker; a tar file, plain, gzip or zstd; or "-" for one on standard input. LOG: a file for what such a
 * program says. As root owners are kept, else all is the caller's. P->cancel: -EINTR.
 */
int imagesource_unpack(const char *source, const struct image_work *w, int log,
		       const struct progress *p, int64_t deadline_ns, struct imagesource *ret,
		       struct err *e) MUST_CHECK;

#endif
