/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_LOCAL_QEMUBIN_H
#define ASB_LOCAL_QEMUBIN_H

#include <stddef.h>
#include <stdint.h>

#include "host/local/local.h"
#include "lib/compiler.h"
#include "lib/err.h"

/*
 * The QEMU to use: $ASB_QEMU (a path), else the newest qemu-system-x86_64 of those in the folders
 * of PATH, /usr/local/bin, /opt/qemu/bin and /usr/bin. They are asked for their version only when
 * there is more than one. -ENOENT + ERR_NOT_FOUND with what to install.
 */
int qemubin_find(char ret[LOCAL_PATH_MAX], struct err *e) MUST_CHECK;

/* Runs `PATH --version`; *RET as qemu_version(). The wait has a deadline. */
int qemubin_version(const char *path, uint32_t *ret, struct err *e) MUST_CHECK;

/* The first line of what it says of its version: exact, as two builds of one version may differ. */
int qemubin_text(const char *path, char *ret, size_t size, struct err *e) MUST_CHECK;

#endif
