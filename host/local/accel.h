/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_LOCAL_ACCEL_H
#define ASB_LOCAL_ACCEL_H

#include "lib/compiler.h"

/*
 * KVM or emulation. That /dev/kvm can be opened does not mean that a guest runs: QEMU may abort, or
 * the kernel may stand still. So the first boot under KVM is the test, with a deadline, and its
 * outcome is remembered in local/accel.json under the QEMU binary and the kernel, each with size
 * and time of change.
 */
enum accel { ACCEL_TCG, ACCEL_KVM, ACCEL_KVM_UNPROVEN };

/* What to start with. $ASB_ACCEL ("kvm" or "tcg") overrides everything. */
enum accel accel_choose(const char *qemu, const char *kernel);

/* Remembers whether KVM works. Failing to write it costs the next start a test, no more. */
void accel_remember(const char *qemu, const char *kernel, enum accel verdict);

#endif
