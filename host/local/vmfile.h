/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_LOCAL_VMFILE_H
#define ASB_LOCAL_VMFILE_H

#include "host/local/vmdir.h"
#include "lib/compiler.h"

/* Reading and writing of the files in a VM's folder; vmdir.c and tests only. */

int vmfile_write_config(int dirfd, const struct vm_config *c) MUST_CHECK; /* durable */

/* Copies the file FROM to NAME in DIRFD, mode 0600, sharing blocks where the file system can. 0 or
 * negative errno (-ENOSPC). */
int vmfile_copy(const char *from, int dirfd, const char *name) MUST_CHECK;

#endif
