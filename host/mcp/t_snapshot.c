/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "host/mcp/policy.h"
#include "host/mcp/tools.h"
#include "lib/loop.h"

/* Copies of a sandbox that are kept under names of their own. */

#define CREATE_NS 900000000000LL /* a large memory on a slow disk */

/* The backend that is meant where no sandbox says it. */
static int chosen(struct mcp_job *j, const struct backend **ret, struct err *e)
{
	int r = platform_backend(j->cfg, ret, e);

	return r < 0 ? r : (*ret)->snapshots ? 0 : job_unsupported(*ret, "snapshots", e);
}

static unsigned flags_of(const struct mcp_job *j)
{
	return job_bool(j, "disk_only") ? SNAPSHOT_DISK : 0;
}

int tool_snapshot_create(struct mcp_job *j, struct err *e)
{
	const char *name = job_str(j, "snapshot");
	struct core_named n;
	int r = state_check_name(name, e);

	if (r == 0)
		r = job_find(j, &n, "not_found", e);
	if (r != 0)
		return r;
	if (!n.backend->snapshots) {
		r = job_unsupported(n.backend, "snapshots", e);
	} else {
		job_progress(j, 0, 0, "copying");
		core_cancel_begin(&j->progress);
		r = n.backend->snapshots->create(n.record.microvm_id, name, flags_of(j),
						 &j->progress, loop_now() + CREATE_NS, e);
		core_cancel_end();
	}
	if (r == 0)
		job_log(j, MCP_LOG_INFO, "kept '%s' as the snapshot '%s'", n.record.name, name);
	if (r == 0 && (!jsn_add_str(j->data, "name", n.record.name) ||
		       !jsn_add_str(j->data, "snapshot", name)))
		r = -ENOMEM;
	core_named_done(&n);
	return r;
}

/* A snapshot keeps the network of the sandbox that it is of. */
static int may_restore(struct mcp_job *j, const struct backend *b, struct err *e)
{
	const char *name = job_str(j, "snapshot"), *net = NULL;
	AUTO_JSN *doc = NULL;
	char *text = NULL;
	int r;

	if (!j->cfg->no_network)
		return 0;
	r = b->snapshots->inspect(name, &text, e);
	if (r < 0)
		return r;
	doc = jsn_parse(text, strlen(text), NULL);
	free(text);
	if (!doc || jsn_str(jsn_get(doc, "sandbox"), "net", &net, NULL) != 1)
		net = "?"; /* what cannot be read is not trusted */
	return policy_network(j, strcmp(net, "none") != 0, name, e);
}

int tool_snapshot_restore(struct mcp_job *j, struct err *e)
{
	const struct backend *b;
	struct core_child child;
	int r = state_check_name(job_str(j, "name"), e);

	if (r == 0)
		r = chosen(j, &b, e);
	if (r == 0)
		r = may_restore(j, b, e);
	if (r == 0)
		job_progress(j, 0, 0, "restoring");
	if (r == 0)
		r = core_restore(b, job_str(j, "snapshot"), job_str(j, "name"), flags_of(j),
				 &j->progress, LIFE_START_NS, &child, e);
	if (r == 0)
		job_log(j, MCP_LOG_INFO, "created '%s' (%s) from the snapshot '%s'", child.name,
			child.id, job_str(j, "snapshot"));
	if (r == 0 && (!jsn_add_str(j->data, "name", child.name) ||
		       !jsn_add_str(j->data, "microvm_id", child.id) ||
		       !jsn_add_str(j->data, "snapshot", job_str(j, "snapshot"))))
		r = -ENOMEM;
	return r;
}

static int add_one(void *list, const struct snapshot_info *i)
{
	cJSON *o = cJSON_CreateObject();

	return o && cJSON_AddItemToArray(list, o) && jsn_add_str(o, "name", i->name) &&
			       jsn_add_str(o, "source", i->source) &&
			       jsn_add_str(o, "image", i->image) &&
			       jsn_add_bool(o, "memory", i->memory) &&
			       jsn_add_u64(o, "bytes", i->bytes) &&
			       jsn_add_i64(o, "created", i->created_s) &&
			       jsn_add_str(o, "broken", i->broken[0] ? i->broken : NULL)
		       ? 0
		       : -ENOMEM;
}

int tool_snapshot_list(struct mcp_job *j, struct err *e)
{
	cJSON *list = cJSON_AddArrayToObject(j->data, "snapshots");
	const struct backend *b;
	int r = chosen(j, &b, e);

	if (r == 0)
		r = list ? b->snapshots->list(add_one, list, e) : -ENOMEM;
	if (r == 0 && !jsn_add_u64(j->data, "count", (uint64_t)cJSON_GetArraySize(list)))
		r = -ENOMEM;
	return r;
}

int tool_snapshot_remove(struct mcp_job *j, struct err *e)
{
	const struct backend *b;
	int r = chosen(j, &b, e);

	if (r == 0)
		job_progress(j, 0, 0, "removing");
	if (r == 0)
		r = b->snapshots->remove(job_str(j, "snapshot"), e);
	if (r == -ENOENT)
		j->code = "not_found";
	if (r == 0)
		job_log(j, MCP_LOG_INFO, "removed the snapshot '%s'", job_str(j, "snapshot"));
	if (r == 0 && (!jsn_add_str(j->data, "snapshot", job_str(j, "snapshot")) ||
		       !jsn_add_bool(j->data, "removed", true)))
		r = -ENOMEM;
	return r;
}
