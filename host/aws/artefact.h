/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_AWS_ARTEFACT_H
#define ASB_AWS_ARTEFACT_H

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

/* RET is initialised here, and to be released in any case. NAMES (may be NULL, then nobody is told) gets the path of each file, with a NUL. */
int artefact_zip(const char *dir, struct buf *ret, struct buf *names, struct err *e) MUST_CHECK;
#define ARTEFACT_NAMES_MAX (32U << 20) /* of all paths: a cap for NAMES */
/* Whether PATH ("a/b") is one of NAMES, or a folder of one. */
bool artefact_has(const struct buf *names, const char *path);

#endif
