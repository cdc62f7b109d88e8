/* SPDX-License-Identifier: Apache-2.0 */
#include "../../lib/jsn.h"

#include <errno.h>
#include <stdlib.h>

#include "../lib/tap.h"

#define S(s) s, sizeof(s) - 1

static void test_refused(void)
{
	static const struct {
		const char *in;
		size_t n;
		const char *why; /* part of the message */
	} t[] = {
		{ S(""), "offset 0" },
		{ S(" "), "offset" },
		{ S("{"), "offset" },
		{ S("{}x"), "offset 2" },
		{ S("{} {}"), "offset 3" },
		{ S("[1,]"), "offset" },
		{ S("{\"a\"}"), "offset" },
		{ S("{'a':1}"), "offset" },
		{ S("nul"), "offset" },
		{ S("NaN"), "offset" },
		{ S("\"a"), "offset" },
		{ S("\"\\ud800\""), "offset" },
		{ S("\"\\u0000\""), "NUL" },
		{ S("\"a\\\\\\u0000\""), "NUL" },
		{ S("{\"a\\u0000\":1}"), "NUL" },
		{ S("\"a\0b\""), "control" },
		{ S("{}\0"), "NUL" },
		{ S("\"a\nb\""), "control" },
		{ S("\"\xff\""), "UTF-8" },
		{ S("\"\xed\xa0\x80\""), "UTF-8" },
		{ S("\"\xc0\x80\""), "UTF-8" },
	};

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct err e = ERR_INIT;
		char *copy = malloc(t[i].n ? t[i].n
					   : 1); /* exactly as long, so that an over-read is seen */
		cJSON *j;

		if (!copy)
			abort();
		memcpy(copy, t[i].in, t[i].n);
		j = jsn_parse(copy, t[i].n, &e);
		ok(!j && e.code == ERR_INVALID && strstr(e.msg, t[i].why), "%zu: %s", i, e.msg);
		cJSON_Delete(j);
		free(copy);
	}
}

static void test_depth(void)
{
	char s[2 * (JSN_DEPTH_MAX + 1)];
	cJSON *j;

	memset(s, '[', JSN_DEPTH_MAX + 1);
	memset(s + JSN_DEPTH_MAX + 1, ']', JSN_DEPTH_MAX + 1);
	ok(!jsn_parse(s, sizeof(s), NULL), "one level too many");
	j = jsn_parse(s + 1, sizeof(s) - 2, NULL);
	ok(j != NULL, "as many as allowed");
	cJSON_Delete(j);
	j = jsn_parse(S("\"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[\""), NULL);
	ok(j != NULL, "brackets in a string do not nest");
	cJSON_Delete(j);
	j = jsn_parse(S("\"\\\\u0000 \\\"[\""), NULL);
	ok(j && !strcmp(j->valuestring, "\\u0000 \"["), "an escaped backslash before u0000");
	cJSON_Delete(j);
}

/* Every prefix and every single byte changed: no crash, no over-read (the sanitizers tell). */
static void test_mangled(void)
{
	static const char doc[] =
		"{\"a\":[1,2.5e3,\"\\u00e9\\n\",null,true],\"b\":{\"c\":\"\xc3\xa9\"}}";
	size_t n = sizeof(doc) - 1, parsed = 0;

	for (size_t len = 0; len <= n; len++) {
		char *copy = malloc(len ? len : 1);
		cJSON *j;

		if (!copy)
			abort();
		memcpy(copy, doc, len);
		j = jsn_parse(copy, len, NULL);
		parsed += j != NULL;
		cJSON_Delete(j);
		for (size_t k = 0; k < len; k++)
			for (int c = 0; c < 256; c += 5) {
				copy[k] = (char)c;
				cJSON_Delete(jsn_parse(copy, len, NULL));
				copy[k] = doc[k];
			}
		free(copy);
	}
	ok_int(parsed, 1, "of all prefixes only the whole document parses");
}

static const char doc[] =
	"{\"s\":\"x\",\"n\":12,\"z\":null,\"t\":true,\"o\":{\"k\":1},\"a\":[1],\"sa\":[\"p\",\"q\"],"
	"\"neg\":-1,\"frac\":1.5,\"big\":9007199254740993,\"huge\":1e300,\"d\":1,\"d\":2,\"e\":[]}";

static void test_types(void)
{
	struct err e = ERR_INIT;
	cJSON *j = jsn_parse(doc, sizeof(doc) - 1, NULL);
	const char *s = "old";
	uint64_t u = 77;
	double d = 7;
	bool b = false;
	const cJSON *o = NULL;

	ok(jsn_str(j, "none", &s, &e) == 0 && jsn_str(j, "z", &s, &e) == 0 && !strcmp(s, "old"),
	   "absent and null leave it");
	ok(jsn_str(j, "s", &s, &e) == 1 && !strcmp(s, "x"), "a string");
	ok(jsn_str(j, "n", &s, &e) < 0 && strstr(e.msg, "\"n\" must be a string"), "no string: %s",
	   e.msg);
	ok(jsn_str(j, "S", &s, &e) == 0, "names are exact");
	ok(jsn_u64(j, "n", 0, 12, &u, &e) == 1 && u == 12, "a number");
	ok(jsn_u64(j, "n", 0, 11, &u, &e) == -ERANGE && jsn_u64(j, "n", 13, 20, &u, &e) == -ERANGE,
	   "out of range");
	ok(jsn_u64(j, "neg", 0, 9, &u, &e) == -EINVAL &&
		   jsn_u64(j, "frac", 0, 9, &u, &e) == -EINVAL &&
		   jsn_u64(j, "s", 0, 9, &u, &e) == -EINVAL &&
		   jsn_u64(j, "huge", 0, UINT64_MAX, &u, &e) == -EINVAL,
	   "no whole number");
	ok_int(u, 12, "and none was written");
	ok(jsn_double(j, "frac", &d, &e) == 1 && d > 1.4 && d < 1.6 &&
		   jsn_double(j, "s", &d, &e) < 0,
	   "a double");
	ok(jsn_bool(j, "t", &b, &e) == 1 && b && jsn_bool(j, "n", &b, &e) < 0, "a bool");
	ok(jsn_object(j, "o", &o, &e) == 1 && cJSON_IsObject(o) && jsn_object(j, "a", &o, &e) < 0,
	   "an object");
	ok(jsn_array(j, "a", &o, &e) == 1 && jsn_array(j, "o", &o, &e) < 0, "an array");
	ok(jsn_str_array(j, "sa", &o, &e) == 1 && jsn_str_array(j, "e", &o, &e) == 1 &&
		   jsn_str_array(j, "a", &o, &e) < 0,
	   "an array of strings");
	ok(jsn_u64(j, "d", 0, 9, &u, &e) == 1 && u == 2,
	   "of two members with one name the last counts");
	cJSON_Delete(j);
}

static void test_builders(void)
{
	cJSON *o = cJSON_CreateObject();
	char *s;

	ok(jsn_add_str(o, "s", "a\"b") && jsn_add_str(o, "z", NULL) &&
		   jsn_add_u64(o, "u", 9007199254740992) &&
		   jsn_add_u64(o, "e15", 1000000000000000) && jsn_add_i64(o, "i", -5) &&
		   jsn_add_bool(o, "b", true) &&
		   jsn_add_text(o, "t", "a\xff\xc3\xa9\xe2\x82\0z", 8),
	   "members are added");
	s = cJSON_PrintUnformatted(o);
	ok_str(s,
	       "{\"s\":\"a\\\"b\",\"z\":null,\"u\":9007199254740992,\"e15\":1000000000000000,\"i\":-5,\"b\":true,"
	       "\"t\":\"a\xef\xbf\xbd\xc3\xa9\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbdz\"}",
	       "and printed: exact integers, invalid bytes replaced");
	cJSON_free(s);
	cJSON_Delete(o);
}

int main(void)
{
	test_refused();
	test_depth();
	test_mangled();
	test_types();
	test_builders();
	return tap_done();
}
