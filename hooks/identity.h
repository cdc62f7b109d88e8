/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HOOKS_IDENTITY_H
#define HOOKS_IDENTITY_H

#include <stdbool.h>

#include "lib/compiler.h"
#include "payload.h"

/*
 * Makes the guest another one than its clones: kernel generator first, then a generation id (32
 * hexadecimal digits to RET_GENERATION, and alone, without a newline, to PATH). With MACHINE also
 * /etc/machine-id, the range of local ports and the clock; a host name that P brings is always tried. What the guest is not
 * allowed to do is logged and passed over. Always succeeds in giving an id; 0, or the first
 * negative errno of what could not be done.
 */
int identity_renew(const char *path, bool machine, const struct payload *p, char ret_generation[33])
	MUST_CHECK;

/*
 * Before a template is made of a guest that has no identity yet (an empty /etc/machine-id; else it does nothing): its files are made, with
 * values that stand for none, so that identity_renew has only to write into them in every clone.
 */
int identity_prepare(void) MUST_CHECK;

#endif
