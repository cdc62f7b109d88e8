/* SPDX-License-Identifier: Apache-2.0 */
#include "host/mcp/args.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define INT_MAX_EXACT 9007199254740992.0 /* 2^53 */

static bool of_strings(const cJSON *v)
{
	const cJSON *x;

	cJSON_ArrayForEach(x, v)
	{
		if (!cJSON_IsString(x))
			return false;
	}
	return true;
}

static bool fits(enum mcp_kind kind, const cJSON *v)
{
	switch (kind) {
	case MCP_STR:
		return cJSON_IsString(v);
	case MCP_INT:
		return cJSON_IsNumber(v) && fabs(v->valuedouble) <= INT_MAX_EXACT &&
		       floor(v->valuedouble) == v->valuedouble;
	case MCP_NUM:
		return cJSON_IsNumber(v) && isfinite(v->valuedouble);
	case MCP_BOOL:
		return cJSON_IsBool(v);
	case MCP_LIST:
		return cJSON_IsArray(v) && of_strings(v);
	case MCP_MAP:
		return cJSON_IsObject(v) && of_strings(v);
	}
	return false;
}

static const char *wanted(enum mcp_kind kind)
{
	static const char *const texts[] = {
		[MCP_STR] = "a string",
		[MCP_INT] = "an integer",
		[MCP_NUM] = "a number",
		[MCP_BOOL] = "true or false",
		[MCP_LIST] = "an array of strings",
		[MCP_MAP] = "an object of strings",
	};

	return texts[kind];
}

/* V as the kind of P; the caller's. NULL: it cannot be. */
static cJSON *convert(const struct mcp_param *p, const cJSON *v)
{
	cJSON *parsed;

	if (fits(p->kind, v))
		return cJSON_Duplicate(v, true);
	if (p->kind == MCP_STR || !cJSON_IsString(v))
		return NULL;
	parsed = jsn_parse(v->valuestring, strlen(v->valuestring), NULL);
	if (parsed && fits(p->kind, parsed))
		return parsed;
	cJSON_Delete(parsed);
	return NULL;
}

/* 1: added; 0: complained of; negative: memory. */
static int read_one(const struct mcp_param *p, const cJSON *given, cJSON *all, struct buf *why)
{
	const cJSON *v = given ? jsn_get(given, p->name) : NULL;
	bool nullable = p->def && !strcmp(p->def, "null");
	cJSON *j;

	if (!v && !p->def)
		return buf_addf(why, "\n%s\n  Field required", p->name) < 0 ? -ENOMEM : 0;
	if (!v || (nullable && cJSON_IsNull(v)))
		j = jsn_parse(p->def, strlen(p->def), NULL);
	else
		j = convert(p, v);
	if (!j)
		return buf_addf(why, "\n%s\n  Input should be %s%s", p->name, wanted(p->kind),
				nullable ? " or null" : "") < 0
			       ? -ENOMEM
			       : 0;
	if (cJSON_AddItemToObject(all, p->name, j))
		return 1;
	cJSON_Delete(j);
	return -ENOMEM;
}

int args_read(const struct mcp_tool *t, const cJSON *given, cJSON **ret, struct buf *why)
{
	AUTO_JSN *all = cJSON_CreateObject();
	unsigned wrong = 0;
	AUTO_BUF what;
	int r = all ? 0 : -ENOMEM;

	buf_init(&what, 32U << 10);
	for (const struct mcp_param *p = t->params; p->name && r >= 0; p++) {
		r = read_one(p, given, all, &what);
		wrong += r == 0;
	}
	if (r < 0)
		return r;
	if (wrong) {
		r = buf_addf(why,
			     "Error executing tool %s: %u validation error%s for %sArguments%s",
			     t->name, wrong, wrong == 1 ? "" : "s", t->name, what.p ? what.p : "");
		return r < 0 ? -ENOMEM : -EINVAL;
	}
	*ret = all;
	all = NULL;
	return 0;
}
