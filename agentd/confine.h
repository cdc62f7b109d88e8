/* SPDX-License-Identifier: Apache-2.0 */
#ifndef AGENTD_CONFINE_H
#define AGENTD_CONFINE_H

#include "lib/compiler.h"

/* Which system calls a command may make. */
enum confine_profile {
	CONFINE_DEFAULT,
	CONFINE_RESTRICTED,
	CONFINE_NONE,
};

/* "default", "restricted" or "none". 0 or -EINVAL. */
int confine_parse(const char *name, enum confine_profile *ret) MUST_CHECK;

#endif
