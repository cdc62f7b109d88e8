/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_LOCAL_QCOW2_H
#define ASB_LOCAL_QCOW2_H

#include <stddef.h>

#include "lib/compiler.h"
#include "lib/err.h"

/*
 * Whether the N bytes that a disk image begins with are the head of one that stands alone: QEMU would open whatever file
 * its head names as a backing or data file. Also no encryption, no internal snapshots, no feature that we do not
 * know. Source: QEMU, docs/interop/qcow2.txt, "Header".
 */
#define QCOW2_HEAD 104
int qcow2_check(const unsigned char *p, size_t n, struct err *e) MUST_CHECK;

#endif
