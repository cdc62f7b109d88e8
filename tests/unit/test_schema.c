/* SPDX-License-Identifier: Apache-2.0 */
/* LINK: host/mcp/schema.c */
#include <stdlib.h>

#include "host/mcp/schema.h"
#include "tests/lib/tap.h"

static void test_schemas(void)
{
	static const struct {
		const char *shape, *want; /* NULL: it is no shape */
	} t[] = {
		{ "", "{\"type\":\"object\",\"properties\":{},\"required\":[]}" },
		{ "a:s,b:i?,c:n~",
		  "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"string\"},\"b\":{\"type\":[\"integer\",\"null\"]},"
		  "\"c\":{\"type\":\"number\"}},\"required\":[\"a\"]}" },
		{ "l:a{x:b},m:as?",
		  "{\"type\":\"object\",\"properties\":{\"l\":{\"type\":\"array\",\"items\":{\"type\":\"object\",\"properties\":{"
		  "\"x\":{\"type\":\"boolean\"}},\"required\":[\"x\"]}},\"m\":{\"type\":[\"array\",\"null\"],\"items\":{"
		  "\"type\":\"string\"}}},\"required\":[\"l\"]}" },
		{ "o:{p:{q:*}},r:o",
		  "{\"type\":\"object\",\"properties\":{\"o\":{\"type\":\"object\",\"properties\":{\"p\":{\"type\":\"object\","
		  "\"properties\":{\"q\":{}},\"required\":[\"q\"]}},\"required\":[\"p\"]},\"r\":{\"type\":\"object\"}},"
		  "\"required\":[\"o\",\"r\"]}" },
		{ "a", NULL },
		{ "a:", NULL },
		{ "a:x", NULL },
		{ "a:a", NULL },
		{ "a:{b:z}", NULL },
	};

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		AUTO_JSN *j = schema_of(t[i].shape);
		char *text = j ? cJSON_PrintUnformatted(j) : NULL;

		if (t[i].want)
			ok_str(text ? text : "", t[i].want, t[i].shape);
		else
			ok(!j, "no shape: '%s'", t[i].shape);
		free(text);
	}
}

static void test_fits(void)
{
	static const struct {
		const char *shape, *value;
		bool fits;
	} t[] = {
		{ "a:s", "{\"a\":\"x\",\"more\":1}", true },
		{ "a:s", "{}", false },
		{ "a:s", "[]", false },
		{ "a:s", "{\"a\":null}", false },
		{ "a:s", "{\"a\":7}", false },
		{ "a:s?", "{}", true },
		{ "a:s?", "{\"a\":null}", true },
		{ "a:s?", "{\"a\":[]}", false },
		{ "a:s~", "{}", true },
		{ "a:s~", "{\"a\":null}", false },
		{ "a:i", "{\"a\":-3}", true },
		{ "a:i", "{\"a\":0.5}", false },
		{ "a:i", "{\"a\":1e999}", false },
		{ "a:n", "{\"a\":0.5}", true },
		{ "a:n", "{\"a\":-1e999}", false },
		{ "a:n", "{\"a\":null}", false },
		{ "a:b", "{\"a\":0}", false },
		{ "a:o", "{\"a\":{\"any\":[1]}}", true },
		{ "a:o", "{\"a\":[]}", false },
		{ "a:*", "{\"a\":[{}]}", true },
		{ "a:*", "{\"a\":null}", true },
		{ "a:as", "{\"a\":[]}", true },
		{ "a:as", "{\"a\":[\"x\",\"y\"]}", true },
		{ "a:as", "{\"a\":[\"x\",2]}", false },
		{ "a:as", "{\"a\":{}}", false },
		{ "a:a{b:{c:i}}", "{\"a\":[{\"b\":{\"c\":1}}]}", true },
		{ "a:a{b:{c:i}}", "{\"a\":[{\"b\":{\"c\":1}},{\"b\":{}}]}", false },
		{ "a:a{b:i}?", "{\"a\":null}", true },
		{ "a:a{b:i}?", "{\"a\":[null]}", false },
		{ "a:T", "{\"a\":{\"text\":\"\",\"truncated\":false}}", true },
		{ "a:T", "{\"a\":\"\"}", false },
		{ "a:C", "{\"a\":\"\"}", true },
		{ "a:C", "{\"a\":{\"text\":\"\",\"truncated\":true,\"total_bytes\":5}}", true },
		{ "a:C", "{\"a\":{\"text\":\"\"}}", false },
	};

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		AUTO_JSN *s = schema_of(t[i].shape);
		AUTO_JSN *v = jsn_parse(t[i].value, strlen(t[i].value), NULL);

		ok(s && v && schema_fits(s, v) == t[i].fits, "%s %s %s", t[i].value,
		   t[i].fits ? "fits" : "does not fit", t[i].shape);
	}
}

/* Numbers that we add ourselves are kept as text. */
static void test_exact(void)
{
	AUTO_JSN *number = schema_of("a:i"), *text = schema_of("a:s"), *v = cJSON_CreateObject();

	ok(v && jsn_add_u64(v, "a", 1ULL << 53) && number && schema_fits(number, v),
	   "an exact integer is one");
	ok(text && !schema_fits(text, v), "and no text");
}

int main(void)
{
	test_schemas();
	test_fits();
	test_exact();
	return tap_done();
}
