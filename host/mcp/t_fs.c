/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "host/agent/ask.h"
#include "host/mcp/tools.h"

/* Files in a sandbox, by the agent's own routes: nothing of the image is needed. */

#define FS_PATH_MAX 4096
#define FS_LIMIT_NS (120 * 1000000000LL)

char *fs_path(const struct mcp_job *j, const char *path)
{
	AUTO_BUF b;

	buf_init(&b, FS_PATH_MAX);
	if (buf_addf(&b, "%s%s%s", path[0] == '/' ? "" : j->cfg->workdir, path[0] == '/' ? "" : "/",
		     path) < 0)
		return NULL;
	return buf_take(&b);
}

int fs_post(const struct core_named *n, const char *path, cJSON *body, cJSON **ret, struct err *e)
{
	char *text = body ? cJSON_PrintUnformatted(body) : NULL;
	struct ask a = { .backend = n->backend,
			 .id = n->record.microvm_id,
			 .method = "POST",
			 .path = path,
			 .body = text,
			 .limit_ns = FS_LIMIT_NS };
	int r = text ? agent_ask(&a, ret, e) : -ENOMEM;

	free(text);
	cJSON_Delete(body);
	return r;
}

bool fs_make_workdir(const struct mcp_job *j, const struct core_named *n)
{
	cJSON *body = cJSON_CreateObject(), *doc = NULL;
	bool made = false;

	if (body && jsn_add_str(body, "path", j->cfg->workdir) &&
	    jsn_add_bool(body, "parents", true) &&
	    fs_post(n, "/v1/fs/mkdir", body, &doc, NULL) == 0)
		ignore_result(jsn_bool(doc, "created", &made, NULL)); /* else it was not made */
	cJSON_Delete(doc);
	return made;
}
