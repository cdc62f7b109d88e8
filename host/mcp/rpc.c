/* SPDX-License-Identifier: Apache-2.0 */
#include "host/mcp/rpc.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/str.h"

/*
 * A line that is too long is thrown away while it comes: neither its end nor its length is waited for, and nothing of it
 * is kept. Who sent it gets an error, and the line after it is read as usual.
 */

#define KEEP_MAX (64U << 10) /* memory that stays for the next line */

void rpc_lines_init(struct rpc_lines *l, bool (*line)(void *arg, char *p, size_t n), void *arg)
{
	*l = (struct rpc_lines){ .line = line, .arg = arg };
	buf_init(&l->in, RPC_LINE_MAX);
}

void rpc_lines_done(struct rpc_lines *l)
{
	buf_done(&l->in);
}

static void forget(struct rpc_lines *l)
{
	if (l->in.size > KEEP_MAX) {
		buf_done(&l->in);
		buf_init(&l->in, RPC_LINE_MAX);
	}
	buf_clear(&l->in);
}

/* P is the rest of a line, up to its newline when WHOLE. */
static bool take(struct rpc_lines *l, const char *p, size_t n, bool whole)
{
	bool go_on = true;

	if (!l->throwing && buf_add(&l->in, p, n) < 0) {
		l->throwing = true;
		forget(l);
		go_on = l->line(l->arg, NULL, 0);
	}
	if (!whole)
		return go_on;
	if (!l->throwing && buf_reserve(&l->in, 1) == 0)
		go_on = l->line(l->arg, l->in.p, l->in.len);
	l->throwing = false;
	forget(l);
	return go_on;
}

bool rpc_feed(struct rpc_lines *l, const char *p, size_t n)
{
	bool go_on = true;

	while (n && go_on) {
		const char *nl = memchr(p, '\n', n);
		size_t k = nl ? (size_t)(nl - p) : n;

		go_on = take(l, p, k, nl != NULL);
		k += nl != NULL;
		p += k;
		n -= k;
	}
	return go_on;
}

void rpc_end(struct rpc_lines *l)
{
	if (l->in.len)
		(void)take(l, "", 0, true);
	l->throwing = false;
}

/* --- messages --- */

bool rpc_id_text(const cJSON *id, char out[static RPC_ID_MAX + 1])
{
	char *text;
	bool good;

	if (cJSON_IsNumber(id)) {
		double v = id->valuedouble;

		return isfinite(v) && fabs(v) <= 9007199254740992.0 && floor(v) == v &&
		       str_format(out, RPC_ID_MAX + 1, "%lld", (long long)v) == 0;
	}
	if (!cJSON_IsString(id) || strlen(id->valuestring) > RPC_ID_MAX)
		return false;
	text = cJSON_PrintUnformatted(id);
	good = text && str_format(out, RPC_ID_MAX + 1, "%s", text) == 0;
	free(text);
	return good;
}

static void bad(struct rpc_msg *m, enum rpc_error code, const char *why)
{
	m->kind = RPC_BAD;
	m->code = code;
	ignore_result(str_format(m->why, sizeof(m->why), "%.150s", why)); /* it fits */
}

/* The four hexadecimal digits behind "\u" at P, or 0. */
static unsigned unit_at(const char *p, const char *end)
{
	char digits[5] = "";

	if (end - p < 6 || p[0] != '\\' || p[1] != 'u')
		return 0;
	memcpy(digits, p + 2, 4);
	return strspn(digits, "0123456789abcdefABCDEF") == 4 ? (unsigned)strtoul(digits, NULL, 16)
							     : 0;
}

/*
 * Puts U+FFFD in the place of halves of surrogate pairs that stand alone in P, as JavaScript's and Python's writers
 * leave them, and cJSON does not read them. True when there was one.
 */
static bool mend_surrogates(char *p, size_t n)
{
	static const char instead[4] = { 'f', 'f', 'f', 'd' };
	const char *end = p + n;
	bool found = false;

	while ((p = memchr(p, '\\', (size_t)(end - p))) != NULL) {
		unsigned a = unit_at(p, end), b = end - p > 6 ? unit_at(p + 6, end) : 0;

		if (a >= 0xd800 && a < 0xdc00 && b >= 0xdc00 && b < 0xe000) {
			p += 12;
			continue;
		}
		if (a >= 0xd800 && a < 0xe000) {
			memcpy(p + 2, instead, sizeof(instead));
			found = true;
		}
		if (end - p < 2)
			return found;
		p += 2;
	}
	return found;
}

/* A line that is no message: its id is looked for all the same, because a client waits for an answer that bears it. */
static void unreadable(char *p, size_t n, const struct err *e, struct rpc_msg *m)
{
	bool half = mend_surrogates(p, n);
	AUTO_JSN *j = cJSON_ParseWithLength(p, n);
	const cJSON *id = cJSON_IsObject(j) ? jsn_get(j, "id") : NULL;

	if (id && !rpc_id_text(id, m->id))
		ignore_result(str_format(m->id, sizeof(m->id), "null")); /* it fits */
	bad(m, RPC_PARSE,
	    half && j	? "half of a surrogate pair (\\ud800 to \\udfff) stands alone in a string"
	    : e->msg[0] ? e->msg
			: "this is not JSON");
}

static void classify(struct rpc_msg *m)
{
	const cJSON *o = m->doc, *id = jsn_get(o, "id"), *params = jsn_get(o, "params");
	const char *version = NULL;

	if (id && !rpc_id_text(id, m->id)) {
		bad(m, RPC_INVALID_REQUEST,
		    "the id must be a string or an integer of less than 256 bytes");
		return;
	}
	if (jsn_str(o, "jsonrpc", &version, NULL) != 1 || strcmp(version, "2.0") != 0) {
		bad(m, RPC_INVALID_REQUEST, "jsonrpc must be \"2.0\"");
		return;
	}
	if (!jsn_get(o, "method") && (jsn_get(o, "result") || jsn_get(o, "error"))) {
		m->kind = RPC_RESPONSE;
		return;
	}
	if (jsn_str(o, "method", &m->method, NULL) != 1) {
		bad(m, RPC_INVALID_REQUEST, "method must be a string");
		return;
	}
	if (params && !cJSON_IsObject(params)) {
		bad(m, RPC_INVALID_PARAMS, "params must be an object");
		return;
	}
	m->params = params;
	m->kind = id ? RPC_REQUEST : RPC_NOTIFICATION;
}

void rpc_read(char *p, size_t n, struct rpc_msg *ret)
{
	struct err e = ERR_INIT;

	*ret = (struct rpc_msg){ .kind = RPC_RESPONSE, .id = "null" };
	while (n && strchr(" \t\r", p[n - 1]) && p[n - 1])
		n--;
	if (n == 0)
		return;
	ret->doc = jsn_parse(p, n, &e);
	if (!ret->doc)
		unreadable(p, n, &e, ret);
	else if (cJSON_IsArray(ret->doc))
		bad(ret, RPC_INVALID_REQUEST, "batches are not part of this protocol");
	else if (!cJSON_IsObject(ret->doc))
		bad(ret, RPC_INVALID_REQUEST, "a message is an object");
	else
		classify(ret);
}

void rpc_done(struct rpc_msg *m)
{
	cJSON_Delete(m->doc);
	m->doc = NULL;
}

int rpc_error(struct buf *b, const char *id, enum rpc_error code, const char *message,
	      const char *data)
{
	AUTO_JSN *text = cJSON_CreateString(message);
	char *quoted = text ? cJSON_PrintUnformatted(text) : NULL;
	int r = quoted ? buf_addf(
				 b,
				 "{\"jsonrpc\":\"2.0\",\"id\":%s,\"error\":{\"code\":%d,\"message\":%s%s%s}}\n",
				 id, (int)code, quoted, data ? ",\"data\":" : "", data ? data : "")
		       : -ENOMEM;

	free(quoted);
	return r;
}
