/* SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "version.h"
#include "host/mcp/schema.h"
#include "host/mcp/server.h"
#include "lib/str.h"

/*
 * The list of tools as clients get it, made from the table. Input schemas have the form that pydantic gave those of the
 * Python project: titles, "anyOf" with null for what may be left out.
 */

#define INFO                                                                                    \
	"{\"name\":\"agent-sandbox\",\"title\":\"agent-sandbox-os\",\"version\":\"" ASB_VERSION \
	"\"}"

const char *listing_server_info(void)
{
	return INFO;
}

const char *listing_modern(void)
{
	return "\"resultType\":\"complete\",\"_meta\":{\"io.modelcontextprotocol/serverInfo\":" INFO
	       "}";
}

/* "since_minutes" -> "Since Minutes" */
static void title_of(const char *name, char *out, size_t size)
{
	bool begin = true;
	size_t i = 0;

	for (; name[i] && i + 1 < size; i++) {
		out[i] = name[i] == '_' ? ' '
			 : begin	? (char)toupper((unsigned char)name[i])
					: name[i];
		begin = name[i] == '_';
	}
	out[i] = '\0';
}

static cJSON *type_of(enum mcp_kind kind)
{
	static const char *const names[] = {
		[MCP_STR] = "string",	[MCP_INT] = "integer", [MCP_NUM] = "number",
		[MCP_BOOL] = "boolean", [MCP_LIST] = "array",  [MCP_MAP] = "object",
	};
	cJSON *t = cJSON_CreateObject(), *of = NULL;
	bool good = t && jsn_add_str(t, "type", names[kind]);

	if (kind == MCP_LIST || kind == MCP_MAP) {
		of = t ? cJSON_AddObjectToObject(t, kind == MCP_LIST ? "items"
								     : "additionalProperties")
		       : NULL;
		good = good && of && jsn_add_str(of, "type", "string");
	}
	if (!good) {
		cJSON_Delete(t);
		return NULL;
	}
	return t;
}

static bool add_property(cJSON *all, const struct mcp_param *p)
{
	bool nullable = p->def && !strcmp(p->def, "null");
	cJSON *t = type_of(p->kind), *o = t, *list, *null;
	char title[80];

	if (nullable) {
		o = cJSON_CreateObject();
		list = o ? cJSON_AddArrayToObject(o, "anyOf") : NULL;
		if (!t || !list || !cJSON_AddItemToArray(list, t)) {
			cJSON_Delete(t);
			cJSON_Delete(o);
			return false;
		}
		null = cJSON_CreateObject();
		if (!null || !cJSON_AddItemToArray(list, null) ||
		    !jsn_add_str(null, "type", "null")) {
			cJSON_Delete(o);
			return false;
		}
	}
	title_of(p->name, title, sizeof(title));
	return o && cJSON_AddItemToObject(all, p->name, o) && jsn_add_str(o, "title", title) &&
	       (!p->def || cJSON_AddRawToObject(o, "default", p->def)) &&
	       (!p->help || jsn_add_str(o, "description", p->help));
}

cJSON *listing_input_schema(const struct mcp_tool *t)
{
	AUTO_JSN *j = cJSON_CreateObject();
	cJSON *all = j ? cJSON_AddObjectToObject(j, "properties") : NULL, *required = NULL,
	      *ret = j;
	char title[96];

	for (const struct mcp_param *p = t->params; all && p->name; p++) {
		if (!add_property(all, p))
			return NULL;
		if (p->def)
			continue;
		if (!required)
			required = cJSON_AddArrayToObject(j, "required");
		if (!required || !cJSON_AddItemToArray(required, cJSON_CreateString(p->name)))
			return NULL;
	}
	ignore_result(str_format(title, sizeof(title), "%sArguments", t->name)); /* it fits */
	if (!all || !jsn_add_str(j, "title", title) || !jsn_add_str(j, "type", "object"))
		return NULL;
	j = NULL;
	return ret;
}

/* --- a tool --- */

static cJSON *output_schema(const struct mcp_tool *t)
{
	AUTO_BUF b;

	buf_init(&b, 4096);
	if (buf_addf(&b, "ok:b,data:{%s}~,error:{code:s,message:s}~", t->result) < 0)
		return NULL;
	return schema_of(b.p);
}

static bool add_annotations(cJSON *o, const struct mcp_tool *t)
{
	cJSON *a = cJSON_AddObjectToObject(o, "annotations");
	char title[80];

	title_of(t->name, title, sizeof(title));
	return a && jsn_add_str(a, "title", title) &&
	       jsn_add_bool(a, "readOnlyHint", t->flags & MCP_READ) &&
	       jsn_add_bool(a, "destructiveHint", t->flags & MCP_DESTRUCTIVE) &&
	       jsn_add_bool(a, "idempotentHint", t->flags & (MCP_READ | MCP_IDEMPOTENT)) &&
	       jsn_add_bool(a, "openWorldHint", t->flags & MCP_OPEN);
}

static bool add_tool(cJSON *list, const struct mcp_tool *t)
{
	cJSON *o = cJSON_CreateObject(), *in, *out;

	if (!o || !cJSON_AddItemToArray(list, o) || !jsn_add_str(o, "name", t->name) ||
	    !jsn_add_str(o, "description", t->about))
		return false;
	in = listing_input_schema(t);
	if (!in || !cJSON_AddItemToObject(o, "inputSchema", in))
		return false;
	out = output_schema(t);
	return out && cJSON_AddItemToObject(o, "outputSchema", out) && add_annotations(o, t);
}

char *listing_tools(const struct mcp_config *c)
{
	AUTO_JSN *list = cJSON_CreateArray();

	for (const struct mcp_tool *t = mcp_tools; list && t->name; t++)
		if (mcp_tool_offered(t, c) && !add_tool(list, t))
			return NULL;
	return list ? cJSON_PrintUnformatted(list) : NULL;
}
