/* SPDX-License-Identifier: Apache-2.0 */
#ifndef INIT_MODULES_H
#define INIT_MODULES_H

#include "lib/compiler.h"
#include "lib/err.h"

#define MODULES_LIST \
	"/modules.list" /* one path a line, in the order in which they load; only for a kernel \
			   with modules */

/* Loads what LIST names (a missing LIST: nothing), then forgets the files. A module that is there
 * already is fine. */
int modules_load(const char *list, struct err *e) MUST_CHECK;

#endif
