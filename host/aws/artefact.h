/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_AWS_ARTEFACT_H
#define ASB_AWS_ARTEFACT_H

#include <signal.h>
#include <stdbool.h>

#include "lib/buf.h"
#include "lib/compiler.h"
#include "lib/err.h"

/*
 * The zip of a guest folder for a build: the same bytes for the same content, whatever the file system's order, times and owners.
 * Left out are .git, .env and .env.*, and what .dockerignore names (without "!" for something in a folder that it leaves out).
 * The Dockerfile is in it even when that names it, as docker sends it to the builder all the same.
 * A link to a file in DIR is stored as the file, one to a folder is left out; one that leads out of DIR is refused (ERR_INVALID).
 */
#define ARTEFACT_MAX	   (64U << 20) /* of the zip */
#define ARTEFACT_FILES_MAX 20000
#define ARTEFACT_DEPTH_MAX 32

/*
 * RET is initialised here, and to be released in any case. NAMES (may be NULL, then nobody is told) gets the path of each file, with a NUL.
 * -EINTR when *CANCEL (may be NULL) is set. ERR_UNSUPPORTED for a link where the system has no openat2.
 */
int artefact_zip(const char *dir, const volatile sig_atomic_t *cancel, struct buf *ret,
		 struct buf *names, struct err *e) MUST_CHECK;
#define ARTEFACT_NAMES_MAX (32U << 20) /* of all paths: a cap for NAMES */
/* Whether PATH ("a/b") is one of NAMES, or a folder of one. */
bool artefact_has(const struct buf *names, const char *path);

/*
 * The object that a zip with the SHA-256 SHA (hexadecimal) is in the bucket, for IMAGE: "microvm-images/IMAGE-<16 digits of it>.zip".
 * Roles and the bucket's lifecycle know the prefix. -ENOSPC.
 */
#define ARTEFACT_PREFIX	 "microvm-images/"
#define ARTEFACT_KEY_MAX 160
int artefact_key(const char *image, const char *sha, char ret[static ARTEFACT_KEY_MAX]) MUST_CHECK;
bool artefact_is_key(const char *image, const char *key); /* KEY is of such a form */

#endif
