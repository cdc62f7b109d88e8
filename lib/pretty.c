/* SPDX-License-Identifier: Apache-2.0 */
#include "pretty.h"

#include <cJSON.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define DEPTH_MAX 64

/* cJSON's own form indents by tabs; so only containers are laid out here, and it prints the
 * scalars. */

static int add_scalar(const cJSON *j, struct buf *out)
{
	char *s = cJSON_PrintUnformatted(j);
	int r;

	if (!s)
		return -ENOMEM;
	r = buf_adds(out, s);
	cJSON_free(s);
	return r;
}

static int add_key(const char *key, struct buf *out)
{
	cJSON k = { .type = cJSON_String };
	char *copy = strdup(key ? key : "");
	int r;

	if (!copy)
		return -ENOMEM;
	k.valuestring = copy;
	r = add_scalar(&k, out);
	free(copy);
	return r < 0 ? r : buf_adds(out, ": ");
}

static int add_break(int depth, struct buf *out)
{
	int r = buf_adds(out, "\n");

	while (r == 0 && depth-- > 0)
		r = buf_adds(out, "  ");
	return r;
}

static int add_value(const cJSON *j, int depth, struct buf *out)
{
	bool object = cJSON_IsObject(j);
	int r;

	if (depth > DEPTH_MAX)
		return -ENOSPC;
	if (!object && !cJSON_IsArray(j))
		return add_scalar(j, out);
	if (!j->child)
		return buf_adds(out, object ? "{}" : "[]");
	r = buf_adds(out, object ? "{" : "[");
	for (const cJSON *c = j->child; c && r == 0; c = c->next) {
		r = add_break(depth + 1, out);
		if (r == 0 && object)
			r = add_key(c->string, out);
		if (r == 0)
			r = add_value(c, depth + 1, out);
		if (r == 0 && c->next)
			r = buf_adds(out, ",");
	}
	if (r == 0)
		r = add_break(depth, out);
	return r < 0 ? r : buf_adds(out, object ? "}" : "]");
}

int pretty_json(const cJSON *j, struct buf *out)
{
	int r = add_value(j, 0, out);

	return r < 0 ? r : buf_adds(out, "\n");
}
