/* SPDX-License-Identifier: Apache-2.0 */
#include "jsn.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "buf.h"
#include "str.h"

/*
 * cJSON parses. It is lenient where RFC 8259 is not and where a C string cannot follow, so the
 * bytes are looked at before: encoding, nesting (cJSON recurses), raw control bytes, and the escape
 * of NUL. The look needs to know only where strings begin and end.
 */

struct scan {
	size_t depth;
	bool in_string;
};

/* What is wrong with byte I of P, NULL when nothing is. */
static const char *scan_byte(struct scan *s, const char *p, size_t n, size_t *i)
{
	char c = p[*i];

	if (s->in_string) {
		if ((unsigned char)c < 0x20)
			return "control character in a string";
		if (c == '\\') {
			if (n - *i >= 6 && !memcmp(p + *i, "\\u0000", 6))
				return "NUL in a string";
			++*i;
		} else if (c == '"') {
			s->in_string = false;
		}
		return NULL;
	}
	if (c == '"')
		s->in_string = true;
	else if ((c == '[' || c == '{') && ++s->depth > JSN_DEPTH_MAX)
		return "nested too deeply";
	else if ((c == ']' || c == '}') && s->depth > 0)
		s->depth--;
	else if (c == '\0')
		return "NUL";
	return NULL;
}

cJSON *jsn_parse(const char *p, size_t n, struct err *e)
{
	struct scan s = { 0 };
	const char *end = NULL;
	cJSON *j;

	if (!str_is_utf8(p, n)) {
		(void)err_set(e, ERR_INVALID, EINVAL, "JSON is not UTF-8");
		return NULL;
	}
	for (size_t i = 0; i < n; i++) {
		size_t at = i;
		const char *why = scan_byte(&s, p, n, &i);

		if (why) {
			(void)err_set(e, ERR_INVALID, 0, "invalid JSON at offset %zu: %s", at, why);
			return NULL;
		}
	}
	j = cJSON_ParseWithLengthOpts(p, n, &end, 0);
	if (j)
		while (end < p + n && strchr(" \t\r\n", *end))
			end++;
	if (!j || end != p + n) {
		size_t at = end && end >= p ? (size_t)(end - p) : 0;

		cJSON_Delete(j);
		(void)err_set(e, ERR_INVALID, 0, "invalid JSON at offset %zu", at);
		return NULL;
	}
	return j;
}

cJSON *jsn_get(const cJSON *o, const char *name)
{
	cJSON *m, *found = NULL;

	cJSON_ArrayForEach(m, o) if (m->string && !strcmp(m->string, name)) found = m;
	return found;
}

static const cJSON *find(const cJSON *o, const char *name)
{
	const cJSON *m = jsn_get(o, name);

	return m && !cJSON_IsNull(m) ? m : NULL;
}

static int wrong(struct err *e, const char *name, const char *want)
{
	(void)err_set(e, ERR_INVALID, 0, "\"%s\" must be %s", name, want);
	return -EINVAL;
}

int jsn_str(const cJSON *o, const char *name, const char **ret, struct err *e)
{
	const cJSON *m = find(o, name);

	if (!m)
		return 0;
	if (!cJSON_IsString(m))
		return wrong(e, name, "a string");
	*ret = m->valuestring;
	return 1;
}

int jsn_u64(const cJSON *o, const char *name, uint64_t min, uint64_t max, uint64_t *ret,
	    struct err *e)
{
	const cJSON *m = find(o, name);
	uint64_t v;

	if (!m)
		return 0;
	/* a double holds integers exactly up to 2^53 */
	if (!cJSON_IsNumber(m) || !(m->valuedouble >= 0 && m->valuedouble <= 9007199254740992.0))
		return wrong(e, name, "a whole number, 0 or more");
	v = (uint64_t)m->valuedouble;
	if ((double)v < m->valuedouble)
		return wrong(e, name, "a whole number, 0 or more");
	if (v < min || v > max) {
		(void)err_set(e, ERR_INVALID, 0, "\"%s\" must be between %llu and %llu", name,
			      (unsigned long long)min, (unsigned long long)max);
		return -ERANGE;
	}
	*ret = v;
	return 1;
}

int jsn_double(const cJSON *o, const char *name, double *ret, struct err *e)
{
	const cJSON *m = find(o, name);

	if (!m)
		return 0;
	if (!cJSON_IsNumber(m) || !isfinite(m->valuedouble))
		return wrong(e, name, "a number");
	*ret = m->valuedouble;
	return 1;
}

int jsn_bool(const cJSON *o, const char *name, bool *ret, struct err *e)
{
	const cJSON *m = find(o, name);

	if (!m)
		return 0;
	if (!cJSON_IsBool(m))
		return wrong(e, name, "true or false");
	*ret = cJSON_IsTrue(m);
	return 1;
}

int jsn_object(const cJSON *o, const char *name, const cJSON **ret, struct err *e)
{
	const cJSON *m = find(o, name);

	if (!m)
		return 0;
	if (!cJSON_IsObject(m))
		return wrong(e, name, "an object");
	*ret = m;
	return 1;
}

int jsn_array(const cJSON *o, const char *name, const cJSON **ret, struct err *e)
{
	const cJSON *m = find(o, name);

	if (!m)
		return 0;
	if (!cJSON_IsArray(m))
		return wrong(e, name, "an array");
	*ret = m;
	return 1;
}

int jsn_str_array(const cJSON *o, const char *name, const cJSON **ret, struct err *e)
{
	const cJSON *a = NULL, *m;
	int r = jsn_array(o, name, &a, e);

	if (r <= 0)
		return r;
	cJSON_ArrayForEach(m, a) if (!cJSON_IsString(m)) return wrong(e, name,
								      "an array of strings");
	*ret = a;
	return 1;
}

/* Adds M, or drops it when that fails. */
static bool add(cJSON *o, const char *name, cJSON *m)
{
	if (m && cJSON_AddItemToObject(o, name, m))
		return true;
	cJSON_Delete(m);
	return false;
}

bool jsn_add_str(cJSON *o, const char *name, const char *s)
{
	return add(o, name, s ? cJSON_CreateString(s) : cJSON_CreateNull());
}

/* As digits: cJSON would print a large double as 1e+15, which is no integer to many readers. */
bool jsn_add_u64(cJSON *o, const char *name, uint64_t v)
{
	char s[24];

	(void)snprintf(s, sizeof(s), "%llu", (unsigned long long)v);
	return add(o, name, cJSON_CreateRaw(s));
}

bool jsn_add_i64(cJSON *o, const char *name, int64_t v)
{
	char s[24];

	(void)snprintf(s, sizeof(s), "%lld", (long long)v);
	return add(o, name, cJSON_CreateRaw(s));
}

bool jsn_add_bool(cJSON *o, const char *name, bool v)
{
	return add(o, name, cJSON_CreateBool(v));
}

/* Length of the valid sequence at P, 0 when there is none. */
static size_t sequence(const char *p, size_t n)
{
	for (size_t len = 1; len <= 4 && len <= n; len++)
		if (str_is_utf8(p, len))
			return len;
	return 0;
}

bool jsn_add_text(cJSON *o, const char *name, const char *p, size_t n)
{
	AUTO_BUF b = { .cap = 3 * n + 1 };

	for (size_t i = 0; i < n;) {
		size_t len = p[i] ? sequence(p + i, n - i)
				  : 0; /* a NUL cannot be in a C string either */
		int r = len ? buf_add(&b, p + i, len) : buf_adds(&b, "\xef\xbf\xbd");

		if (r < 0)
			return false;
		i += len ? len : 1;
	}
	return add(o, name, cJSON_CreateString(b.p ? b.p : ""));
}
