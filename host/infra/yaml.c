/* SPDX-License-Identifier: Apache-2.0 */
#include "host/infra/yaml.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <yaml.h>

#include "lib/str.h"

/*
 * libyaml's events become a tree. A stack holds the lists and maps that are open; nodes live in one array and are freed with it.
 * An alias shares the node of its anchor, so that nothing grows by it: what reads the tree follows a fixed schema, and no chain of
 * aliases makes it read more than that. An anchor counts from the end of its node, so there are no cycles.
 */

struct reader {
	const char *name;
	struct yaml_file *f;
	struct err *e;
	struct yaml_node *open[YAML_DEPTH_MAX];
	struct yaml_node *key[YAML_DEPTH_MAX]; /* of a map, when its value is awaited */
	unsigned depth;
	struct yaml_node *anchors[YAML_ANCHORS_MAX]; /* of this document, those that are closed */
	unsigned anchors_len, aliases;
};

void yaml_done(struct yaml_file *f)
{
	for (size_t i = 0; i < f->nodes_len; i++) {
		free(f->nodes[i]->text);
		free(f->nodes[i]->anchor);
		free(f->nodes[i]->items);
		free(f->nodes[i]->keys);
		free(f->nodes[i]);
	}
	free(f->nodes);
	free(f->docs);
	*f = (struct yaml_file){ .nodes = NULL };
}

const char *yaml_kind_name(const struct yaml_node *n)
{
	static const char *const names[] = { "empty", "text", "a number, boolean or date", "a list",
					     "a mapping" };

	return names[n->kind];
}

static int refuse(struct reader *r, yaml_mark_t at, const char *what)
{
	(void)err_set(r->e, ERR_INVALID, 0, "%s:%zu:%zu: %s", r->name, at.line + 1, at.column + 1,
		      what);
	return -EINVAL;
}

static int no_memory(struct reader *r)
{
	(void)err_set(r->e, ERR_INTERNAL, ENOMEM, "reading %s", r->name);
	return -ENOMEM;
}

/* Room for one more in an array of pointers that doubles at powers of two. */
static bool grow(struct yaml_node ***all, size_t len)
{
	struct yaml_node **more;

	if (len & (len - 1))
		return true;
	more = realloc(*all, (len ? len * 2 : 1) * sizeof(void *));
	if (more)
		*all = more;
	return more != NULL;
}

static int new_node(struct reader *r, enum yaml_kind kind, yaml_mark_t at, struct yaml_node **ret)
{
	struct yaml_file *f = r->f;
	struct yaml_node *n;

	if (f->nodes_len == YAML_NODES_MAX)
		return refuse(r, at, "the file has too many values");
	n = grow(&f->nodes, f->nodes_len) ? calloc(1, sizeof(*n)) : NULL;
	if (!n)
		return no_memory(r);
	n->kind = kind;
	n->line = (unsigned)at.line + 1;
	n->column = (unsigned)at.column + 1;
	f->nodes[f->nodes_len++] = n;
	*ret = n;
	return 0;
}

/* --- putting a node where it belongs --- */

static int add_key(struct reader *r, struct yaml_node *map, struct yaml_node *n, yaml_mark_t at)
{
	if (n->kind != YAML_TEXT && n->kind != YAML_OTHER)
		return refuse(r, at, "a key is not text");
	for (size_t i = 0; i < map->len; i++)
		if (strcmp(map->keys[i]->text, n->text) == 0)
			return refuse(r, at, "the key is there already");
	r->key[r->depth - 1] = n;
	return 0;
}

static int add(struct reader *r, struct yaml_node *n, yaml_mark_t at)
{
	struct yaml_node *up = r->depth ? r->open[r->depth - 1] : NULL;
	struct yaml_node **key = r->depth ? &r->key[r->depth - 1] : NULL;

	if (!up) {
		if (r->f->docs_len == YAML_DOCS_MAX)
			return refuse(r, at, "the file has too many documents");
		if (!grow(&r->f->docs, r->f->docs_len))
			return no_memory(r);
		r->f->docs[r->f->docs_len++] = n;
		return 0;
	}
	if (up->kind == YAML_MAP && !*key)
		return add_key(r, up, n, at);
	if (!grow(&up->items, up->len) || (up->kind == YAML_MAP && !grow(&up->keys, up->len)))
		return no_memory(r);
	if (up->kind == YAML_MAP)
		up->keys[up->len] = *key;
	up->items[up->len++] = n;
	*key = NULL;
	return 0;
}

/* ANCHOR: NULL when N has none. */
static int set_anchor(struct reader *r, struct yaml_node *n, const yaml_char_t *anchor)
{
	n->anchor = anchor ? strdup((const char *)anchor) : NULL;
	return anchor && !n->anchor ? no_memory(r) : 0;
}

/* N is whole, and an alias may stand for it. */
static int remember(struct reader *r, struct yaml_node *n, yaml_mark_t at)
{
	if (!n->anchor)
		return 0;
	if (r->anchors_len == YAML_ANCHORS_MAX)
		return refuse(r, at, "the file has too many anchors");
	r->anchors[r->anchors_len++] = n;
	return 0;
}

/* --- events --- */

/* What YAML 1.1 would not take for text when it stands without quotes, or what is so close to it that quotes are better. */
static enum yaml_kind plain_kind(const char *s)
{
	static const char *const words[] = { "true", "false", "yes",   "no",	"on",
					     "off",  ".inf",  "-.inf", "+.inf", ".nan" };
	size_t n = strlen(s);

	if (n == 0 || strcmp(s, "~") == 0 || strcasecmp(s, "null") == 0)
		return YAML_NULL;
	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (strcasecmp(s, words[i]) == 0)
			return YAML_OTHER;
	if (!strpbrk(s, "0123456789"))
		return YAML_TEXT;
	if (strncmp(s, "0x", 2) == 0 && strspn(s + 2, "0123456789abcdefABCDEF_") == n - 2)
		return YAML_OTHER;
	return strspn(s, "0123456789_.:eE+-") == n ? YAML_OTHER : YAML_TEXT;
}

static int on_scalar(struct reader *r, const yaml_event_t *v)
{
	const char *s = (const char *)v->data.scalar.value;
	bool plain = v->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
	struct yaml_node *n;
	int rc;

	if (v->data.scalar.tag)
		return refuse(r, v->start_mark, "tags are not supported");
	if (strlen(s) != v->data.scalar.length)
		return refuse(r, v->start_mark, "the text has a NUL byte");
	rc = new_node(r, plain ? plain_kind(s) : YAML_TEXT, v->start_mark, &n);
	if (rc < 0)
		return rc;
	n->text = strdup(s);
	if (!n->text)
		return no_memory(r);
	rc = set_anchor(r, n, v->data.scalar.anchor);
	if (rc == 0)
		rc = add(r, n, v->start_mark);
	return rc < 0 ? rc : remember(r, n, v->start_mark);
}

static int on_open(struct reader *r, const yaml_event_t *v, enum yaml_kind kind)
{
	const yaml_char_t *anchor =
		kind == YAML_MAP ? v->data.mapping_start.anchor : v->data.sequence_start.anchor;
	const yaml_char_t *tag =
		kind == YAML_MAP ? v->data.mapping_start.tag : v->data.sequence_start.tag;
	struct yaml_node *n;
	int rc;

	if (tag)
		return refuse(r, v->start_mark, "tags are not supported");
	if (r->depth == YAML_DEPTH_MAX)
		return refuse(r, v->start_mark, "the file is nested too deeply");
	rc = new_node(r, kind, v->start_mark, &n);
	if (rc == 0)
		rc = set_anchor(r, n, anchor);
	if (rc == 0)
		rc = add(r, n, v->start_mark);
	if (rc < 0)
		return rc;
	r->open[r->depth] = n;
	r->key[r->depth] = NULL;
	r->depth++;
	return 0;
}

static int on_close(struct reader *r, const yaml_event_t *v)
{
	struct yaml_node *n = r->depth ? r->open[--r->depth] : NULL;

	return n ? remember(r, n, v->start_mark) : 0;
}

static int on_alias(struct reader *r, const yaml_event_t *v)
{
	const char *name = (const char *)v->data.alias.anchor;

	if (++r->aliases > YAML_ALIASES_MAX)
		return refuse(r, v->start_mark, "the file has too many aliases");
	for (unsigned i = r->anchors_len; i-- > 0;)
		if (strcmp(r->anchors[i]->anchor, name) == 0)
			return add(r, r->anchors[i], v->start_mark);
	return refuse(r, v->start_mark, "the alias stands for nothing before it");
}

static int on_event(struct reader *r, const yaml_event_t *v)
{
	switch (v->type) {
	case YAML_SCALAR_EVENT:
		return on_scalar(r, v);
	case YAML_SEQUENCE_START_EVENT:
		return on_open(r, v, YAML_LIST);
	case YAML_MAPPING_START_EVENT:
		return on_open(r, v, YAML_MAP);
	case YAML_SEQUENCE_END_EVENT:
	case YAML_MAPPING_END_EVENT:
		return on_close(r, v);
	case YAML_ALIAS_EVENT:
		return on_alias(r, v);
	case YAML_DOCUMENT_END_EVENT:
		r->anchors_len = 0;
		return 0;
	case YAML_NO_EVENT:
	case YAML_STREAM_START_EVENT:
	case YAML_STREAM_END_EVENT:
	case YAML_DOCUMENT_START_EVENT:
		break;
	}
	return 0;
}

static int syntax_error(struct reader *r, const yaml_parser_t *p)
{
	char what[160];

	if (p->error == YAML_MEMORY_ERROR)
		return no_memory(r);
	ignore_result(str_format(what, sizeof(what), "invalid YAML: %s",
				 p->problem ? p->problem : "unreadable"));
	return refuse(r, p->problem_mark, what);
}

static int read_all(struct reader *r, yaml_parser_t *p)
{
	bool over = false;
	int rc = 0;

	while (rc == 0 && !over) {
		yaml_event_t v;

		if (!yaml_parser_parse(p, &v))
			return syntax_error(r, p);
		over = v.type == YAML_STREAM_END_EVENT;
		rc = on_event(r, &v);
		yaml_event_delete(&v);
	}
	return rc;
}

int yaml_read(const char *name, const char *p, size_t n, struct yaml_file *ret, struct err *e)
{
	struct reader r = { .name = name, .f = ret, .e = e };
	yaml_parser_t parser;
	int rc;

	*ret = (struct yaml_file){ .nodes = NULL };
	if (n > YAML_FILE_MAX)
		return err_set(e, ERR_TOO_BIG, 0, "%s: has over %u bytes", name, YAML_FILE_MAX);
	if (!yaml_parser_initialize(&parser))
		return no_memory(&r);
	yaml_parser_set_input_string(&parser, (const unsigned char *)p, n);
	rc = read_all(&r, &parser);
	yaml_parser_delete(&parser);
	return rc;
}
