/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_LOCAL_VMFILE_H
#define ASB_LOCAL_VMFILE_H

#include "host/local/vmdir.h"
#include "lib/compiler.h"

/* Reading and writing of the files in a VM's folder; for what makes folders of VMs and of snapshots. */

int vmfile_write_config(int dirfd, const struct vm_config *c) MUST_CHECK; /* durable */

/* The object of vm.json, owned by the caller; NULL: no memory. vm_config_parse is its reader, also for what others
 * wrote: vm_config_done. */
cJSON *vm_config_json(const struct vm_config *c) MUST_CHECK;
int vm_config_parse(const cJSON *j, struct vm_config *ret, struct err *e) MUST_CHECK;

/* Copies the file FROM to NAME in DIRFD, mode 0600, sharing blocks where the file system can. 0 or
 * negative errno (-ENOSPC). */
int vmfile_copy(const char *from, int dirfd, const char *name) MUST_CHECK;

#endif
