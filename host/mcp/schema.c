/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <string.h>

#include "host/mcp/schema.h"
#include "lib/str.h"

#define NAME_MAX_LEN 63

static cJSON *members(const char **at);

/* Adds O (owned; NULL: it could not be made) to TO. */
static bool put(cJSON *to, const char *name, cJSON *o)
{
	if (to && o && (name ? cJSON_AddItemToObject(to, name, o) : cJSON_AddItemToArray(to, o)))
		return true;
	cJSON_Delete(o);
	return false;
}

static cJSON *typed(const char *type)
{
	AUTO_JSN *o = cJSON_CreateObject();
	cJSON *ret = o;

	if (!put(o, "type", cJSON_CreateString(type)))
		return NULL;
	o = NULL;
	return ret;
}

static cJSON *capped(void)
{
	const char *text = "text:s,truncated:b,total_bytes:i~,returned_bytes:i~";

	return members(&text);
}

static cJSON *capped_or_text(void)
{
	AUTO_JSN *o = cJSON_CreateObject();
	cJSON *any = o ? cJSON_AddArrayToObject(o, "anyOf") : NULL, *ret = o;

	if (!put(any, NULL, capped()) || !put(any, NULL, typed("string")))
		return NULL;
	o = NULL;
	return ret;
}

/* A type, without what may be behind it. */
static cJSON *read_type(const char **at)
{
	AUTO_JSN *list = NULL;
	cJSON *ret;

	switch (*(*at)++) {
	case 's':
		return typed("string");
	case 'i':
		return typed("integer");
	case 'n':
		return typed("number");
	case 'b':
		return typed("boolean");
	case 'o':
		return typed("object");
	case '*':
		return cJSON_CreateObject();
	case 'T':
		return capped();
	case 'C':
		return capped_or_text();
	case '{':
		return members(at);
	case 'a':
		ret = list = typed("array");
		if (!put(list, "items", read_type(at)))
			return NULL;
		list = NULL;
		return ret;
	default:
		return NULL; /* the table is wrong */
	}
}

/* Of what has one type; what has several, or any, does not need it. */
static bool allow_null(cJSON *schema)
{
	const cJSON *type = jsn_get(schema, "type");
	const char *two[] = { cJSON_IsString(type) ? type->valuestring : "", "null" };
	cJSON *list = *two[0] ? cJSON_CreateStringArray(two, 2) : NULL;

	if (!*two[0] || (list && cJSON_ReplaceItemInObjectCaseSensitive(schema, "type", list)))
		return true;
	cJSON_Delete(list);
	return false;
}

/* "NAME:TYPE", and what is behind it. */
static bool read_member(const char **at, cJSON *props, cJSON *required)
{
	size_t n = strcspn(*at, ":");
	char name[NAME_MAX_LEN + 1];
	cJSON *schema;

	if (str_format(name, sizeof(name), "%.*s", (int)n, *at) < 0 || !(*at)[n])
		return false;
	*at += n + 1;
	schema = read_type(at);
	if (!put(props, name, schema))
		return false;
	if (**at != '?' && **at != '~')
		return put(required, NULL, cJSON_CreateString(name));
	return *(*at)++ == '~' || allow_null(schema);
}

/* Members up to the end or the '}', which is taken. */
static cJSON *members(const char **at)
{
	AUTO_JSN *o = typed("object");
	cJSON *props = o ? cJSON_AddObjectToObject(o, "properties") : NULL, *ret = o;
	cJSON *required = o ? cJSON_AddArrayToObject(o, "required") : NULL;

	if (!props || !required)
		return NULL;
	while (**at && **at != '}') {
		if (!read_member(at, props, required))
			return NULL;
		*at += **at == ',';
	}
	*at += **at == '}';
	o = NULL;
	return ret;
}

cJSON *schema_of(const char *shape)
{
	return members(&shape);
}

/* --- does it fit? --- */

static bool is_type(const char *type, const cJSON *v)
{
	bool exact = cJSON_IsRaw(v); /* of jsn_add_u64 */
	bool finite = cJSON_IsNumber(v) &&
		      isfinite(v->valuedouble); /* else it would be printed as null */

	if (!strcmp(type, "string"))
		return cJSON_IsString(v);
	if (!strcmp(type, "integer"))
		return exact || (finite && v->valuedouble == floor(v->valuedouble));
	if (!strcmp(type, "number"))
		return exact || finite;
	if (!strcmp(type, "boolean"))
		return cJSON_IsBool(v);
	if (!strcmp(type, "array"))
		return cJSON_IsArray(v);
	return !strcmp(type, "object") ? cJSON_IsObject(v) : cJSON_IsNull(v);
}

static bool fits_type(const cJSON *type, const cJSON *v)
{
	const cJSON *t;

	if (!type)
		return true;
	if (cJSON_IsString(type))
		return is_type(type->valuestring, v);
	cJSON_ArrayForEach(t, type)
	{
		if (is_type(t->valuestring, v))
			return true;
	}
	return false;
}

static bool fits_any(const cJSON *list, const cJSON *v)
{
	const cJSON *s;

	cJSON_ArrayForEach(s, list)
	{
		if (schema_fits(s, v))
			return true;
	}
	return !list;
}

static bool fits_members(const cJSON *schema, const cJSON *v)
{
	const cJSON *s, *m;

	cJSON_ArrayForEach(s, jsn_get(schema, "required"))
	{
		if (!jsn_get(v, s->valuestring))
			return false;
	}
	cJSON_ArrayForEach(s, jsn_get(schema, "properties"))
	{
		m = jsn_get(v, s->string);
		if (m && !schema_fits(s, m))
			return false;
	}
	return true;
}

bool schema_fits(const cJSON *schema, const cJSON *v)
{
	const cJSON *items = jsn_get(schema, "items"), *x;

	if (!fits_type(jsn_get(schema, "type"), v) || !fits_any(jsn_get(schema, "anyOf"), v))
		return false;
	if (cJSON_IsObject(v))
		return fits_members(schema, v);
	if (items && cJSON_IsArray(v))
		cJSON_ArrayForEach(x, v)
		{
			if (!schema_fits(items, x))
				return false;
		}
	return true;
}
