/* SPDX-License-Identifier: Apache-2.0 */
#include "pyval.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/buf.h"
#include "lib/jsn.h"
#include "lib/str.h"

/*
 * The shapes were read off FastAPI with pydantic 2: each error has type, loc, msg, input. A field's
 * errors are reported in the order of the model, all of them. Where the original depends on
 * Python's own JSON parser (position and wording of a syntax error) the shape is kept and the words
 * are ours.
 */

#define MISSING "Field required"

/* --- one error --- */
/* LOC: KEY and SUB may be NULL; INDEX < 0 is none. Without memory the error is dropped, and the
 * list may end up empty: the status is 422 all the same. */
static void report(cJSON *list, const char *type, const char *msg, const cJSON *input,
		   const char *key, const char *sub, int index)
{
	cJSON *e = cJSON_CreateObject();
	cJSON *loc = cJSON_CreateArray();
	cJSON *in = input ? cJSON_Duplicate(input, 1) : cJSON_CreateNull();

	(void)cJSON_AddItemToArray(loc, cJSON_CreateString("body"));
	if (key)
		(void)cJSON_AddItemToArray(loc, cJSON_CreateString(key));
	if (sub)
		(void)cJSON_AddItemToArray(loc, cJSON_CreateString(sub));
	if (index >= 0)
		(void)cJSON_AddItemToArray(loc, cJSON_CreateNumber(index));
	(void)jsn_add_str(e, "type", type);
	if (!cJSON_AddItemToObject(e, "loc", loc))
		cJSON_Delete(loc);
	(void)jsn_add_str(e, "msg", msg);
	if (!cJSON_AddItemToObject(e, "input", in))
		cJSON_Delete(in);
	if (!cJSON_AddItemToArray(list, e))
		cJSON_Delete(e);
}

static void answer(struct httpd_req *r, cJSON *list)
{
	cJSON *j = cJSON_CreateObject();

	if (!j || !cJSON_AddItemToObject(j, "detail", list)) {
		cJSON_Delete(list);
		cJSON_Delete(j);
		j = NULL;
	}
	httpd_reply_json(r, 422, j);
}

/* --- fields --- */
static void check_string(cJSON *list, const cJSON *v, const char *key, const char *sub, int index)
{
	if (!cJSON_IsString(v))
		report(list, "string_type", "Input should be a valid string", v, key, sub, index);
}

static void check_strings(cJSON *list, const cJSON *v, const char *key)
{
	const cJSON *m;
	int i = 0;

	if (!cJSON_IsArray(v)) {
		report(list, "list_type", "Input should be a valid list", v, key, NULL, -1);
		return;
	}
	cJSON_ArrayForEach(m, v) check_string(list, m, key, NULL, i++);
}

static void check_map(cJSON *list, const cJSON *v, const char *key)
{
	const cJSON *m;

	if (!cJSON_IsObject(v)) {
		report(list, "dict_type", "Input should be a valid dictionary", v, key, NULL, -1);
		return;
	}
	cJSON_ArrayForEach(m, v) check_string(list, m, key, m->string, -1);
}

/* Python's float(): spaces around are fine, a hexadecimal form is not. Infinity is a number there;
 * "nan" is useless as a time. */
static bool is_number(const char *s)
{
	char *end;
	double v;

	while (*s == ' ' || (*s >= '\t' && *s <= '\r'))
		s++;
	if (!*s || strpbrk(s, "xXpP"))
		return false;
	v = strtod(s, &end);
	while (*end == ' ' || (*end >= '\t' && *end <= '\r'))
		end++;
	return !*end && v >= v;
}

static void check_number(cJSON *list, const cJSON *v, const char *key)
{
	if (cJSON_IsNumber(v) || cJSON_IsBool(v) ||
	    (cJSON_IsString(v) && is_number(v->valuestring)))
		return;
	if (cJSON_IsString(v))
		report(list, "float_parsing",
		       "Input should be a valid number, unable to parse string as a number", v, key,
		       NULL, -1);
	else
		report(list, "float_type", "Input should be a valid number", v, key, NULL, -1);
}

static void check_field(cJSON *list, const cJSON *body, const struct py_field *f)
{
	const cJSON *v = jsn_get(body, f->name);

	if (!v) {
		if (f->required)
			report(list, "missing", MISSING, body, f->name, NULL, -1);
		return;
	}
	switch (f->type) {
	case PY_STRING:
		check_string(list, v, f->name, NULL, -1);
		break;
	case PY_STRING_OR_NULL:
		if (!cJSON_IsNull(v))
			check_string(list, v, f->name, NULL, -1);
		break;
	case PY_STRINGS:
		check_strings(list, v, f->name);
		break;
	case PY_STRING_MAP_OR_NULL:
		if (!cJSON_IsNull(v))
			check_map(list, v, f->name);
		break;
	case PY_NUMBER_OR_NULL:
		if (!cJSON_IsNull(v))
			check_number(list, v, f->name);
		break;
	}
}

/* --- the body --- */
/* No Content-Type at all is taken for JSON, as FastAPI does; application/json and
 * application/<anything>+json are. */
static bool says_json(const char *type)
{
	size_t n = type ? strcspn(type, "; \t") : 0;

	if (!type)
		return true;
	if (n < 12 || strncasecmp(type, "application/", 12) != 0)
		return false;
	return (n == 16 && !strncasecmp(type + 12, "json", 4)) ||
	       (n > 17 && !strncasecmp(type + n - 5, "+json", 5));
}

static void not_an_object(struct httpd_req *r, const cJSON *input)
{
	cJSON *list = cJSON_CreateArray();

	if (!input || cJSON_IsNull(input))
		report(list, "missing", MISSING, NULL, NULL, NULL, -1);
	else
		report(list, "model_attributes_type",
		       "Input should be a valid dictionary or object to extract fields from", input,
		       NULL, NULL, -1);
	answer(r, list);
}

/* {"type":"json_invalid","loc":["body",<offset>],"msg":"JSON decode
 * error","input":{},"ctx":{"error":…}} */
static void bad_json(struct httpd_req *r, const struct err *e)
{
	const char *at = strstr(e->msg, "offset ");
	cJSON *list = cJSON_CreateArray(), *empty = cJSON_CreateObject(),
	      *ctx = cJSON_CreateObject();
	int offset = at ? (int)strtol(at + 7, NULL, 10) : 0;

	report(list, "json_invalid", "JSON decode error", empty, NULL, NULL, offset);
	(void)jsn_add_str(ctx, "error", e->msg);
	if (!list || !list->child || !cJSON_AddItemToObject(list->child, "ctx", ctx))
		cJSON_Delete(ctx);
	cJSON_Delete(empty);
	answer(r, list);
}

static cJSON *parse(struct httpd_req *r)
{
	struct err e = ERR_INIT;
	size_t n;
	const char *p = httpd_body_data(r, &n);
	cJSON *j;

	if (n == 0) {
		not_an_object(r, NULL);
		return NULL;
	}
	if (!str_is_utf8(p, n)) {
		httpd_reply_error(r, 400, "There was an error parsing the body");
		return NULL;
	}
	if (!says_json(httpd_header(r, "Content-Type"))) {
		cJSON *text = cJSON_CreateString(p);

		not_an_object(r, text);
		cJSON_Delete(text);
		return NULL;
	}
	j = jsn_parse(p, n, &e);
	if (!j) {
		bad_json(r, &e);
	} else if (!cJSON_IsObject(j)) {
		not_an_object(r, j);
		jsn_free(&j);
	}
	return j;
}

cJSON *py_body(struct httpd_req *r, const struct py_field *fields)
{
	cJSON *list, *j = parse(r);

	if (!j)
		return NULL;
	list = cJSON_CreateArray();
	for (; fields->name; fields++)
		check_field(list, j, fields);
	if (list && !list->child) {
		cJSON_Delete(list);
		return j;
	}
	cJSON_Delete(j);
	answer(r, list);
	return NULL;
}

/* --- OSError --- */
/* glibc's words where musl has others. */
static const char *words(int errnum)
{
	switch (errnum) {
	case ELOOP:
		return "Too many levels of symbolic links";
	case ENAMETOOLONG:
		return "File name too long";
	case EIO:
		return "Input/output error";
	case EDQUOT:
		return "Disk quota exceeded";
	default:
		return strerror(errnum);
	}
}

/* repr() of a str, near enough: quotes, backslashes and control bytes are escaped. */
static int repr(struct buf *b, const char *s)
{
	char q = strchr(s, '\'') && !strchr(s, '"') ? '"' : '\'';
	int r = buf_addf(b, "%c", q);

	for (; *s && r == 0; s++) {
		unsigned char c = (unsigned char)*s;

		if (c == '\n' || c == '\t' || c == '\r')
			r = buf_addf(b, "\\%c", c == '\n' ? 'n' : c == '\t' ? 't' : 'r');
		else if (c < 0x20 || c == 0x7f)
			r = buf_addf(b, "\\x%02x", c);
		else if (c == '\\' || *s == q)
			r = buf_addf(b, "\\%c", c);
		else
			r = buf_addf(b, "%c", c);
	}
	return r == 0 ? buf_addf(b, "%c", q) : r;
}

void py_os_error(struct httpd_req *r, int status, int errnum, const char *path)
{
	AUTO_BUF b = { .cap = 64UL << 10 };

	if (repr(&b, path) < 0)
		httpd_reply_error(r, status, "[Errno %d] %s", errnum, words(errnum));
	else
		httpd_reply_error(r, status, "[Errno %d] %s: %.4800s", errnum, words(errnum), b.p);
}
