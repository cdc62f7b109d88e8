/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "host/mcp/server.h"
#include "host/mcp/tools.h"
#include "lib/pretty.h"
#include "lib/str.h"

/* What is read under agent-sandbox://. All of it is made when it is asked for. */

#define TEXT_MAX (16U << 20)
#define SCHEME	 "agent-sandbox://"

/* The schema of the Python project's resource, as it has it. */
static const char create_schema[] =
	"{\"$schema\":\"https://json-schema.org/draft/2020-12/schema\",\"title\":\"SandboxCreate\",\"type\":\"object\","
	"\"properties\":{\"name\":{\"type\":\"string\",\"maxLength\":128},\"image\":{\"type\":[\"string\",\"null\"]},"
	"\"role\":{\"type\":[\"string\",\"null\"]},\"region\":{\"type\":[\"string\",\"null\"]},"
	"\"cpus\":{\"type\":\"integer\",\"default\":1},\"memory\":{\"type\":\"integer\",\"default\":512},"
	"\"egress_connector\":{\"type\":[\"string\",\"null\"]},\"egress\":{\"type\":\"boolean\",\"default\":false}},"
	"\"required\":[\"name\"],\"additionalProperties\":false}";

static int read_sandboxes(const struct mcp_config *c, cJSON *o, struct err *e)
{
	(void)c;
	return life_list(o, e);
}

static int read_policy(const struct mcp_config *c, cJSON *o, struct err *e)
{
	cJSON *list = cJSON_AddArrayToObject(o, "host_paths");

	(void)e;
	for (unsigned i = 0; list && i < c->roots_len; i++)
		if (!cJSON_AddItemToArray(list, cJSON_CreateString(c->roots[i])))
			return -ENOMEM;
	return list &&
			       jsn_add_str(o, "host_path_policy",
					   c->any_host_path ? "unrestricted" : "allowlist") &&
			       jsn_add_bool(o, "enable_dangerous", false) &&
			       jsn_add_u64(o, "max_output_bytes", c->max_output) &&
			       jsn_add_u64(o, "default_timeout_ms",
					   (uint64_t)c->default_ns / 1000000) &&
			       jsn_add_bool(o, "read_only", c->read_only) &&
			       jsn_add_bool(o, "no_network", c->no_network)
		       ? 0
		       : -ENOMEM;
}

static const struct {
	const char *uri, *name, *about;
	int (*read)(const struct mcp_config *c, cJSON *o, struct err *e); /* NULL: create_schema */
} all[] = {
	{ SCHEME "runtime", "runtime_resource", "What this machine can do for sandboxes",
	  platform_runtime },
	{ SCHEME "infra", "infra_resource", "What was provisioned in AWS", platform_infra },
	{ SCHEME "sandboxes", "sandboxes_resource", "The sandboxes and their states",
	  read_sandboxes },
	{ SCHEME "images", "images_resource", "The images that sandboxes start from",
	  platform_images },
	{ SCHEME "policy", "policy_resource", "What this server allows, and its limits",
	  read_policy },
	{ SCHEME "schemas/sandbox-create", "sandbox_create_schema",
	  "The arguments of sandbox_create, as a schema", NULL },
};

const char resource_templates[] =
	"[{\"uriTemplate\":\"" SCHEME
	"sandboxes/{name}\",\"name\":\"sandbox_resource\",\"title\":\"A sandbox\","
	"\"description\":\"The state of one sandbox\",\"mimeType\":\"text/plain\"}]";

/* --- the list --- */

static int add_item(cJSON *list, const char *uri, const char *name, const char *about)
{
	cJSON *o = cJSON_CreateObject();

	return o && cJSON_AddItemToArray(list, o) && jsn_add_str(o, "uri", uri) &&
			       jsn_add_str(o, "name", name) &&
			       jsn_add_str(o, "description", about) &&
			       jsn_add_str(o, "mimeType", "text/plain")
		       ? 0
		       : -ENOMEM;
}

static int add_sandbox(void *list, const struct state_record *r)
{
	char uri[sizeof(SCHEME) + 16 + SANDBOX_NAME_MAX];

	ignore_result(str_format(uri, sizeof(uri), SCHEME "sandboxes/%s",
				 r->name)); /* it fits: names are checked */
	return add_item(list, uri, r->name, "The state of this sandbox");
}

static int list_all(cJSON *result, struct err *e)
{
	cJSON *list = cJSON_AddArrayToObject(result, "resources");
	int r = list ? 0 : -ENOMEM;

	for (size_t i = 0; i < ARRAY_LEN(all) && r == 0; i++)
		r = add_item(list, all[i].uri, all[i].name, all[i].about);
	return r < 0 ? r : state_each(add_sandbox, list, e);
}

/* --- one --- */

/* J as indented text, into the result. */
static int add_contents(cJSON *result, const char *uri, const cJSON *j)
{
	cJSON *list = cJSON_AddArrayToObject(result, "contents"), *o = cJSON_CreateObject();
	AUTO_BUF b;

	buf_init(&b, TEXT_MAX);
	if (!list || !o || !cJSON_AddItemToArray(list, o) || pretty_json(j, &b) < 0)
		return -ENOMEM;
	b.p[b.len - 1] = '\0'; /* its newline */
	return jsn_add_str(o, "uri", uri) && jsn_add_str(o, "mimeType", "text/plain") &&
			       jsn_add_str(o, "text", b.p)
		       ? 0
		       : -ENOMEM;
}

static int read_one(const char *name, cJSON **ret, struct err *e)
{
	struct core_named n;
	int r = core_find(name, &n, e);

	if (r < 0)
		return r;
	*ret = life_summary(&n.record);
	core_named_done(&n);
	return *ret ? 0 : -ENOMEM;
}

int resource_read(struct mcp_job *j, const char *uri, cJSON *result, struct err *e)
{
	static const char one[] = SCHEME "sandboxes/";
	AUTO_JSN *o = cJSON_CreateObject();
	int r = -ENOENT;

	if (!o)
		return -ENOMEM;
	if (!uri)
		return list_all(result, e);
	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		if (strcmp(all[i].uri, uri) != 0)
			continue;
		if (!all[i].read) {
			AUTO_JSN *schema = jsn_parse(create_schema, sizeof(create_schema) - 1, e);

			return schema ? add_contents(result, uri, schema) : -ENOMEM;
		}
		r = all[i].read(j->cfg, o, e);
		return r < 0 ? r : add_contents(result, uri, o);
	}
	if (str_starts(uri, one)) {
		AUTO_JSN *box = NULL;

		r = read_one(uri + sizeof(one) - 1, &box, e);
		if (r == 0)
			return add_contents(result, uri, box);
	}
	if (r == -ENOENT)
		(void)err_set(e, ERR_NOT_FOUND, 0, "Unknown resource: %.200s", uri);
	return r;
}
