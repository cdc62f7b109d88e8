/* SPDX-License-Identifier: Apache-2.0 */
#include "host/aws/ops.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "host/aws/sigv4.h"
#include "lib/str.h"

#define PATH_CAP  (64U << 10)
#define BODY_CAP  (1U << 20)
#define WHERE_MAX 200

const struct aws_op *ops_of(enum aws_op_id id)
{
	return id < OP_MICROVMS_COUNT ? &aws_ops_microvms[id]
				      : &aws_ops_core[id - OP_MICROVMS_COUNT];
}

/* --- checking what is sent --- */

static int check(const struct shape *s, const cJSON *j, const char *where, struct err *e);

static int wrong(struct err *e, const char *where, const char *what)
{
	return err_set(e, ERR_INVALID, 0, "%s: %s", where, what);
}

static int check_string(const struct shape *s, const cJSON *j, const char *where, struct err *e)
{
	const char *v = cJSON_GetStringValue(j);
	size_t n = v ? strlen(v) : 0;

	if (!v)
		return wrong(e, where, "is not text");
	if ((int64_t)n < s->min || (int64_t)n > s->max)
		return err_set(e, ERR_INVALID, 0, "%s: has %zu bytes, allowed are %lld to %lld",
			       where, n, (long long)s->min, (long long)s->max);
	for (size_t i = 0; s->words && s->words[i]; i++)
		if (strcmp(s->words[i], v) == 0)
			return 0;
	return s->words ? err_set(e, ERR_INVALID, 0, "%s: '%.60s' is none of its values", where, v)
			: 0;
}

/* Integers that jsn_add_u64 adds are raw text. */
static bool number_of(const cJSON *j, int64_t *ret)
{
	double d = cJSON_GetNumberValue(j);
	uint64_t u;

	if (cJSON_IsRaw(j)) {
		if (str_to_u64(j->valuestring, 0, INT64_MAX, &u) < 0)
			return false;
		*ret = (int64_t)u;
		return true;
	}
	if (!cJSON_IsNumber(j) || floor(d) != d || fabs(d) > 9007199254740992.0)
		return false;
	*ret = (int64_t)d;
	return true;
}

static int check_number(const struct shape *s, const cJSON *j, const char *where, struct err *e)
{
	int64_t n;

	if (!number_of(j, &n))
		return wrong(e, where, "is not an integer");
	if (n < s->min || n > s->max)
		return err_set(e, ERR_INVALID, 0, "%s: %lld is not within %lld to %lld", where,
			       (long long)n, (long long)s->min, (long long)s->max);
	return 0;
}

/* Lists, maps: their size, and each entry. */
static int check_entries(const struct shape *s, const cJSON *j, const char *where, struct err *e)
{
	char inner[WHERE_MAX];
	const cJSON *item;
	int n = cJSON_GetArraySize(j), i = 0, r = 0;

	if (!(s->type == SHAPE_LIST ? cJSON_IsArray(j) : cJSON_IsObject(j)))
		return wrong(e, where, s->type == SHAPE_LIST ? "is not a list" : "is not a map");
	if (n < s->min || n > s->max)
		return err_set(e, ERR_INVALID, 0, "%s: has %d entries, allowed are %lld to %lld",
			       where, n, (long long)s->min, (long long)s->max);
	cJSON_ArrayForEach(item, j)
	{
		ignore_result(
			str_format(inner, sizeof(inner), "%.150s[%d]", where, i++)); /* it fits */
		r = check(s->item, item, inner, e);
		if (r < 0)
			break;
	}
	return r;
}

static const struct member *find(const struct shape *s, const char *name)
{
	for (const struct member *m = s->members; m->name; m++)
		if (strcmp(m->name, name) == 0)
			return m;
	return NULL;
}

static int check_struct(const struct shape *s, const cJSON *j, const char *where, struct err *e)
{
	char inner[WHERE_MAX];
	const cJSON *item;
	int r = 0, n = 0;

	if (!cJSON_IsObject(j))
		return wrong(e, where, "is not an object");
	cJSON_ArrayForEach(item, j)
	{
		const struct member *m = find(s, item->string);

		ignore_result(str_format(inner, sizeof(inner), "%.100s.%.80s", where,
					 item->string)); /* it fits */
		r = m ? check(m->shape, item, inner, e)
		      : wrong(e, inner, "there is no such member");
		if (r < 0)
			return r;
		n++;
	}
	for (const struct member *m = s->members; m->name; m++)
		if (m->required && !cJSON_GetObjectItemCaseSensitive(j, m->name))
			return err_set(e, ERR_INVALID, 0, "%.100s.%s: is missing", where, m->name);
	if (s->type == SHAPE_UNION && n != 1)
		return wrong(e, where, "must have exactly one member");
	return 0;
}

static int check(const struct shape *s, const cJSON *j, const char *where, struct err *e)
{
	switch (s->type) {
	case SHAPE_STRING:
		return check_string(s, j, where, e);
	case SHAPE_NUMBER:
		return check_number(s, j, where, e);
	case SHAPE_BOOL:
		return cJSON_IsBool(j) ? 0 : wrong(e, where, "is not true or false");
	case SHAPE_TIME:
		return cJSON_IsNumber(j) || cJSON_IsString(j) ? 0 : wrong(e, where, "is no time");
	case SHAPE_LIST:
	case SHAPE_MAP:
		return check_entries(s, j, where, e);
	case SHAPE_STRUCT:
	case SHAPE_UNION:
		return check_struct(s, j, where, e);
	}
	return wrong(e, where, "has no type");
}

/* --- making a request --- */

/* A part of a path. A slash would be another path, dots another folder, and both are signed otherwise than they are sent. */
static int add_part(struct buf *b, const struct aws_op *op, const char *name, const cJSON *params,
		    struct err *e)
{
	const char *v = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(params, name));

	if (!v || !*v || strchr(v, '/') || strcmp(v, ".") == 0 || strcmp(v, "..") == 0)
		return err_set(e, ERR_INVALID, 0, "%s.%s: '%.80s' cannot be part of a path",
			       op->name, name, v ? v : "");
	return sigv4_encode(b, v, strlen(v), "");
}

static int build_path(const struct aws_op *op, const cJSON *params, struct buf *b, struct err *e)
{
	int r = 0;

	for (const char *p = op->path; *p && r == 0;) {
		char name[64];
		size_t n = strcspn(p, "{}");

		r = buf_add(b, p, n);
		p += n;
		if (r < 0 || *p != '{')
			continue;
		n = strcspn(++p, "}");
		r = str_format(name, sizeof(name), "%.*s", (int)n, p);
		if (r == 0)
			r = add_part(b, op, name, params, e);
		p += n + 1;
	}
	return r;
}

static int add_query(struct buf *b, const char *name, const cJSON *v)
{
	int r = buf_addf(b, "%s%s=", b->len ? "&" : "", name);
	int64_t n;

	if (r < 0)
		return r;
	if (number_of(v, &n))
		return buf_addf(b, "%lld", (long long)n);
	return sigv4_encode(b, cJSON_GetStringValue(v), strlen(cJSON_GetStringValue(v)), "");
}

static int build_query(const struct aws_op *op, const cJSON *params, struct buf *b)
{
	int r = 0;

	for (const struct member *m = op->in->members; m->name && r == 0; m++) {
		const cJSON *v = cJSON_GetObjectItemCaseSensitive(params, m->name), *item;

		if (m->place != IN_QUERY || !v)
			continue;
		if (!cJSON_IsArray(v)) {
			r = add_query(b, m->name, v);
			continue;
		}
		cJSON_ArrayForEach(item, v) if (r == 0) r = add_query(b, m->name, item);
	}
	return r;
}

static int build_body(const struct aws_op *op, const cJSON *params, struct buf *b)
{
	AUTO_JSN *o = cJSON_CreateObject();
	bool any = false;
	char *text;
	int r;

	for (const struct member *m = op->in->members; o && m->name; m++) {
		cJSON *v = cJSON_GetObjectItemCaseSensitive(params, m->name);

		any = any || m->place == IN_BODY;
		if (m->place != IN_BODY || !v)
			continue;
		if (!cJSON_AddItemReferenceToObject(o, m->name, v))
			return -ENOMEM;
	}
	if (!any)
		return 0;
	text = o ? cJSON_PrintUnformatted(o) : NULL;
	if (!text)
		return -ENOMEM;
	r = buf_adds(b, text);
	cJSON_free(text);
	return r;
}

int ops_build(const struct aws_op *op, const cJSON *params, struct ops_request *ret, struct err *e)
{
	int r;

	buf_init(&ret->path, PATH_CAP);
	buf_init(&ret->query, PATH_CAP);
	buf_init(&ret->body, BODY_CAP);
	r = check_struct(op->in, params, op->name, e);
	if (r < 0)
		return r;
	r = build_path(op, params, &ret->path, e);
	if (r < 0 && e && e->code)
		return r;
	if (r == 0)
		r = build_query(op, params, &ret->query);
	if (r == 0)
		r = build_body(op, params, &ret->body);
	return r < 0 ? err_set(e, ERR_INVALID, -r, "%s", op->name) : 0;
}

void ops_request_done(struct ops_request *r)
{
	buf_done(&r->path);
	buf_done(&r->query);
	buf_done(&r->body);
}

/* --- checking what is read --- */

static bool fits(const struct shape *s, const cJSON *j);

static bool all_fit(const struct shape *s, const cJSON *j)
{
	const cJSON *item;

	cJSON_ArrayForEach(item, j) if (!fits(s->item, item)) return false;
	return true;
}

static const char *misfit(const struct shape *s, const cJSON *j)
{
	for (const struct member *m = s->members; m->name; m++) {
		const cJSON *v = cJSON_GetObjectItemCaseSensitive(j, m->name);

		if (v && m->place == IN_BODY && !fits(m->shape, v))
			return m->name;
	}
	return NULL;
}

static bool fits(const struct shape *s, const cJSON *j)
{
	if (cJSON_IsNull(j))
		return true;
	switch (s->type) {
	case SHAPE_STRING:
		return cJSON_IsString(j);
	case SHAPE_NUMBER:
		return cJSON_IsNumber(j);
	case SHAPE_BOOL:
		return cJSON_IsBool(j);
	case SHAPE_TIME:
		return cJSON_IsNumber(j) || cJSON_IsString(j);
	case SHAPE_LIST:
		return cJSON_IsArray(j) && all_fit(s, j);
	case SHAPE_MAP:
		return cJSON_IsObject(j) && all_fit(s, j);
	case SHAPE_STRUCT:
	case SHAPE_UNION:
		return cJSON_IsObject(j) && !misfit(s, j);
	}
	return false;
}

int ops_check(const struct aws_op *op, const cJSON *answer, struct err *e)
{
	const char *bad;

	if (!op->out)
		return 0;
	if (!cJSON_IsObject(answer))
		return err_set(e, ERR_INTERNAL, EBADMSG, "the answer of %s is no object", op->name);
	bad = misfit(op->out, answer);
	return bad ? err_set(e, ERR_INTERNAL, EBADMSG, "in the answer of %s, %s is of another type",
			     op->name, bad)
		   : 0;
}

/* --- calling --- */

int ops_uuid(char ret[static OPS_UUID_LEN + 1], struct err *e)
{
	unsigned char b[16];

	if (getrandom(b, sizeof(b), 0) != (ssize_t)sizeof(b))
		return err_set(e, ERR_INTERNAL, errno, "getrandom");
	b[6] = (unsigned char)((b[6] & 0x0f) | 0x40);
	b[8] = (unsigned char)((b[8] & 0x3f) | 0x80);
	(void)snprintf(ret, OPS_UUID_LEN + 1,
		       "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0],
		       b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12],
		       b[13], b[14], b[15]);
	return 0;
}

static int add_token(const struct aws_op *op, cJSON *params, struct err *e)
{
	char uuid[OPS_UUID_LEN + 1];
	int r = 0;

	for (const struct member *m = op->in->members; m->name && r == 0; m++) {
		if (!m->token || cJSON_GetObjectItemCaseSensitive(params, m->name))
			continue;
		r = ops_uuid(uuid, e);
		if (r == 0 && !jsn_add_str(params, m->name, uuid))
			r = err_set(e, ERR_INTERNAL, ENOMEM, "%s", op->name);
	}
	return r;
}

int ops_call(struct aws *a, enum aws_op_id id, cJSON *params, struct aws_answer *ret, struct err *e)
{
	const struct aws_op *op = ops_of(id);
	struct ops_request q = { .path = { .len = 0 } };
	struct aws_call c = { .service = op->service, .what = op->name, .method = op->method };
	int r = params ? add_token(op, params, e)
		       : err_set(e, ERR_INTERNAL, ENOMEM, "%s", op->name);

	*ret = (struct aws_answer){ .attempts = 0 };
	if (r == 0)
		r = ops_build(op, params, &q, e);
	if (r == 0) {
		c.path = q.path.p;
		c.query = q.query.len ? q.query.p : NULL;
		c.body = q.body.p;
		c.body_len = q.body.len;
		c.content_type = q.body.len ? "application/json" : NULL;
		r = aws_call(a, &c, ret, e);
	}
	if (r == 0)
		r = ops_check(op, ret->json, e);
	ops_request_done(&q);
	return r;
}

/* --- lists --- */

static const struct paging {
	const char *input, *output, *items;
} paging_microvms = { "nextToken", "nextToken", "items" },
  paging_core = { "Marker", "NextMarker", "NetworkConnectors" };

/* One page. 1: there is another, and PARAMS asks for it. */
static int one_page(struct aws *a, enum aws_op_id id, const struct paging *g, cJSON *params,
		    int (*fn)(void *arg, const cJSON *item), void *arg, struct err *e)
{
	struct aws_answer w;
	const cJSON *item, *items;
	const char *next;
	int r = ops_call(a, id, params, &w, e);

	items = cJSON_GetObjectItemCaseSensitive(w.json, g->items);
	if (r == 0)
		cJSON_ArrayForEach(item, items)
		{
			r = fn(arg, item);
			if (r)
				break;
		}
	next = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(w.json, g->output));
	if (r == 0 && next && *next) {
		const char *now =
			cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(params, g->input));

		if (now && strcmp(now, next) == 0)
			r = err_set(e, ERR_INTERNAL, EBADMSG, "%s gives the same page for ever",
				    ops_of(id)->name);
		else
			cJSON_DeleteItemFromObjectCaseSensitive(params, g->input);
		if (r == 0)
			r = jsn_add_str(params, g->input, next)
				    ? 1
				    : err_set(e, ERR_INTERNAL, ENOMEM, "%s", ops_of(id)->name);
	}
	aws_answer_done(&w);
	return r;
}

struct stop { /* so that what FN returns is told from "another page" */
	int (*fn)(void *arg, const cJSON *item);
	void *arg;
	int result;
};

static int on_item(void *arg, const cJSON *item)
{
	struct stop *s = arg;

	s->result = s->fn(s->arg, item);
	return s->result ? -ECANCELED : 0;
}

int ops_each(struct aws *a, enum aws_op_id id, cJSON *params,
	     int (*fn)(void *arg, const cJSON *item), void *arg, struct err *e)
{
	const struct paging *g = id < OP_MICROVMS_COUNT ? &paging_microvms : &paging_core;
	struct stop s = { fn, arg, 0 };
	int r = 1;

	for (unsigned n = 0; r == 1 && n < OPS_PAGES_MAX; n++)
		r = one_page(a, id, g, params, on_item, &s, e);
	if (s.result)
		return s.result;
	return r == 1 ? err_set(e, ERR_TOO_BIG, 0, "%s has no end", ops_of(id)->name) : r;
}

int ops_keep(void *arg, const cJSON *item)
{
	cJSON *copy;

	if (cJSON_GetArraySize(arg) >= OPS_ITEMS_MAX)
		return -E2BIG;
	copy = cJSON_Duplicate(item, true);
	if (copy && cJSON_AddItemToArray(arg, copy))
		return 0;
	cJSON_Delete(copy);
	return -ENOMEM;
}

int ops_list(struct aws *a, enum aws_op_id id, cJSON *params, cJSON *all, struct err *e)
{
	int r = params && all ? ops_each(a, id, params, ops_keep, all, e) : -ENOMEM;

	if (r == -E2BIG || (r == -ENOMEM && e && !e->code))
		return err_set(e, r == -E2BIG ? ERR_TOO_BIG : ERR_INTERNAL, -r, "%s",
			       ops_of(id)->name);
	return r;
}
