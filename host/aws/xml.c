/* SPDX-License-Identifier: Apache-2.0 */
#include "host/aws/xml.h"

#include <errno.h>
#include <expat.h>
#include <stdbool.h>
#include <string.h>

#include "lib/buf.h"
#include "lib/str.h"

/*
 * While an element is open, it is an object on the stack and its text gathers in one buffer; when it ends without children, a text
 * takes the object's place. Text between children is white space and is dropped.
 */

#define XML_TEXT_MAX (1U << 20)

struct reading {
	XML_Parser parser;
	cJSON *open[XML_DEPTH_MAX + 1]; /* [0] is the result; owned by it */
	unsigned depth;
	size_t nodes;
	struct buf text;
	const char *wrong; /* NULL = nothing yet */
};

static void stop(struct reading *r, const char *why)
{
	if (!r->wrong)
		r->wrong = why;
	(void)XML_StopParser(r->parser, XML_FALSE);
}

static void on_start(void *arg, const XML_Char *name, const XML_Char **attrs)
{
	struct reading *r = arg;
	cJSON *o;

	(void)attrs;
	buf_clear(&r->text);
	if (r->wrong)
		return;
	if (r->depth == XML_DEPTH_MAX || ++r->nodes > XML_NODES_MAX) {
		stop(r, "there is too much of it");
		return;
	}
	o = cJSON_AddObjectToObject(r->open[r->depth], name);
	if (!o)
		stop(r, "out of memory");
	else
		r->open[++r->depth] = o;
}

static void on_end(void *arg, const XML_Char *name)
{
	struct reading *r = arg;
	cJSON *o = r->open[r->depth];

	(void)name;
	if (r->wrong || r->depth == 0)
		return;
	r->depth--;
	if (!o->child) {
		o->valuestring = strdup(r->text.p ? r->text.p : "");
		if (o->valuestring)
			o->type = cJSON_String;
		else
			stop(r, "out of memory");
	}
	buf_clear(&r->text);
}

static void on_text(void *arg, const XML_Char *p, int n)
{
	struct reading *r = arg;

	if (buf_add(&r->text, p, (size_t)n) < 0)
		stop(r, "a text is too long");
}

static void on_doctype(void *arg, const XML_Char *name, const XML_Char *system,
		       const XML_Char *public, int has_internal)
{
	(void)name;
	(void)system;
	(void)public;
	(void)has_internal;
	stop(arg, "it has a document type");
}

cJSON *xml_parse(const char *p, size_t n, struct err *e)
{
	struct reading r = { .parser = XML_ParserCreate("UTF-8") };
	cJSON *result = cJSON_CreateObject();
	bool good = false;

	r.open[0] = result;
	buf_init(&r.text, XML_TEXT_MAX);
	if (!r.parser || !result || n > INT32_MAX) {
		(void)err_set(e, ERR_INTERNAL, ENOMEM, "reading XML");
	} else {
		XML_SetUserData(r.parser, &r);
		XML_SetElementHandler(r.parser, on_start, on_end);
		XML_SetCharacterDataHandler(r.parser, on_text);
		XML_SetStartDoctypeDeclHandler(r.parser, on_doctype);
		good = XML_Parse(r.parser, p, (int)n, XML_TRUE) == XML_STATUS_OK && !r.wrong;
		if (!good)
			(void)err_set(e, ERR_INVALID, 0, "no XML that can be used: %s",
				      r.wrong ? r.wrong
					      : XML_ErrorString(XML_GetErrorCode(r.parser)));
	}
	if (r.parser)
		XML_ParserFree(r.parser);
	buf_done(&r.text);
	if (good)
		return result;
	cJSON_Delete(result);
	return NULL;
}

const cJSON *xml_at(const cJSON *o, const char *path)
{
	char name[64];

	while (o && *path) {
		size_t n = strcspn(path, "/");

		if (str_format(name, sizeof(name), "%.*s", (int)n, path) < 0)
			return NULL;
		o = cJSON_GetObjectItemCaseSensitive(o, name);
		path += n + (path[n] == '/');
	}
	return o;
}

const char *xml_text(const cJSON *o, const char *path)
{
	return cJSON_GetStringValue(xml_at(o, path));
}

int xml_each(const cJSON *o, const char *name, int (*fn)(void *arg, const cJSON *child), void *arg)
{
	const cJSON *c;
	int r = 0;

	cJSON_ArrayForEach(c, o) if (r == 0 && c->string && strcmp(c->string, name) == 0) r =
		fn(arg, c);
	return r;
}

int xml_escape(struct buf *b, const char *s)
{
	int r = 0;

	for (; r == 0 && *s; s++)
		switch (*s) {
		case '&':
			r = buf_adds(b, "&amp;");
			break;
		case '<':
			r = buf_adds(b, "&lt;");
			break;
		case '>':
			r = buf_adds(b, "&gt;");
			break;
		case '\r':
			r = buf_adds(b, "&#13;");
			break;
		default:
			r = buf_add(b, s, 1);
		}
	return r;
}
