/* SPDX-License-Identifier: Apache-2.0 */
#include <stddef.h>
#include <string.h>

#include "host/backend.h"
#include "lib/str.h"

/* Which backend: the only file that names all of them. */

const struct backend *backend_of_id(const char *id)
{
	return str_starts(id, "local-") ? &backend_local : &backend_aws;
}

bool backend_is_id(const char *s)
{
	return str_starts(s, "local-") || str_starts(s, "microvm-");
}

const struct backend *backend_by_name(const char *name)
{
	if (strcmp(name, backend_local.name) == 0)
		return &backend_local;
	return strcmp(name, backend_aws.name) == 0 ? &backend_aws : NULL;
}
