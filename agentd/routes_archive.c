/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "app.h"
#include "fsop.h"
#include "worker.h"

/* GET and PUT /v1/archive: the query is checked here, the work is the worker's (archive.c). */

/* False when R has been answered. */
static bool query_flag(struct httpd_req *r, const char *name, bool *ret)
{
	const char *v = httpd_query(r, name);

	if (v && strcmp(v, "0") != 0 && strcmp(v, "1") != 0) {
		httpd_reply_error(r, 400, "%s must be 0 or 1", name);
		return false;
	}
	*ret = v && v[0] == '1';
	return true;
}

void route_archive_get(struct httpd_req *r)
{
	struct err e = ERR_INIT;
	char *path = NULL;
	bool follow;

	if (fsop_path_query(r, "path", &path, &e) < 0)
		httpd_reply_error(r, 400, "%s", e.msg);
	else if (query_flag(r, "follow", &follow))
		worker_serve(r, "archive-out", (const char *[]){ path, follow ? "follow=1" : "" },
			     2, WORKER_NO_INPUT);
	free(path);
}

void route_archive_put(struct httpd_req *r)
{
	struct err e = ERR_INIT;
	char *path = NULL;
	bool keep_owner, parents;

	if (!app_admits(r))
		return;
	if (fsop_path_query(r, "path", &path, &e) < 0)
		httpd_reply_error(r, 400, "%s", e.msg);
	else if (query_flag(r, "keep_owner", &keep_owner) && query_flag(r, "parents", &parents))
		worker_serve(r, "archive-in",
			     (const char *[]){ path, keep_owner ? "keep_owner=1" : "",
					       parents ? "parents=1" : "" },
			     3, WORKER_STREAM);
	free(path);
}
