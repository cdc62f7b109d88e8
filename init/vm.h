/* SPDX-License-Identifier: Apache-2.0 */
#ifndef INIT_VM_H
#define INIT_VM_H

#include <stdbool.h>

#include "lib/compiler.h"

/* Is this process the first of a VM, in an initramfs? (A container always has /proc, and a root
 * that is no ramfs.) */
bool vm_detect(void);

/* Boots, supervises, powers off. A boot that fails is told to the host and ends in power-off. */
NORETURN void vm_main(void);

#endif
