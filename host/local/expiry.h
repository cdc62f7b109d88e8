/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_LOCAL_EXPIRY_H
#define ASB_LOCAL_EXPIRY_H

#include <stdbool.h>
#include <stdint.h>

#include "host/local/vmdir.h"

/*
 * --max-duration, as Lambda MicroVMs counts it: from the moment the machine began, running and suspended time alike.
 * A machine begins when its sandbox is made, and again when it boots from its disk.
 */

#define EXPIRY_REASON "its maximum duration has passed"

int64_t expiry_now(void); /* Unix time in ms */

/* When it ends, in Unix time in ms; 0: never. */
int64_t expiry_of(const struct vm_config *c, const struct vm_status *s);

/*
 * Ends the sandbox in DIRFD if it is suspended, nobody holds it, and its time has passed: its memory is forgotten and it is TERMINATED. A
 * running one's supervisor sees to that itself.
 */
void expiry_enforce(int dirfd);

#endif
