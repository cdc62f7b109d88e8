/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "host/mcp/server.h"
#include "host/mcp/tools.h"
#include "lib/pretty.h"

/* What is read under agent-sandbox://. All of it is made when it is asked for. */

#define TEXT_MAX (16U << 20)

const char resource_templates[] = "[]";

int resource_read(struct mcp_job *j, const char *uri, cJSON *result, struct err *e)
{
	(void)j;
	if (!uri)
		return cJSON_AddArrayToObject(result, "resources") ? 0 : -ENOMEM;
	(void)err_set(e, ERR_NOT_FOUND, 0, "Unknown resource: %.200s", uri);
	return -ENOENT;
}
