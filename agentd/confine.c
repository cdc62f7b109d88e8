/* SPDX-License-Identifier: Apache-2.0 */
#include "confine.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

int confine_parse(const char *name, enum confine_profile *ret)
{
	static const char *const names[] = { [CONFINE_DEFAULT] = "default",
					     [CONFINE_RESTRICTED] = "restricted",
					     [CONFINE_NONE] = "none" };

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (!strcmp(name, names[i])) {
			*ret = (enum confine_profile)i;
			return 0;
		}
	return -EINVAL;
}
