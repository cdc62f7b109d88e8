/* SPDX-License-Identifier: Apache-2.0 */
#include "payload.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/b64.h"
#include "lib/hostname.h"
#include "lib/jsn.h"
#include "lib/str.h"

#define TIME_MAX_S (1ULL << 33)

static int invalid(struct err *e, const char *what)
{
	return err_set(e, ERR_INVALID, 0, "payload: %s", what);
}

static int read_entropy(struct payload *p, struct err *e)
{
	const char *s = NULL;
	size_t n;
	int r = jsn_str(p->doc, "entropy", &s, e);

	if (r <= 0)
		return r;
	n = strlen(s);
	if (n > B64_LEN(PAYLOAD_ENTROPY_MAX))
		return invalid(e, "entropy is too long");
	p->entropy = malloc(n / 4 * 3 + 3);
	if (!p->entropy)
		return err_set(e, ERR_IO, ENOMEM, "payload");
	return b64_decode(s, n, p->entropy, &p->entropy_len) < 0
		       ? invalid(e, "entropy is not base64")
		       : 0;
}

/* "1767225600.5" or the number: a double holds the microseconds of a date, not its nanoseconds. */
static int read_time(struct payload *p, struct err *e)
{
	const cJSON *t = cJSON_GetObjectItemCaseSensitive(p->doc, "time");
	double v;

	if (!t || cJSON_IsNull(t))
		return 0;
	if (cJSON_IsString(t))
		return str_to_ns(t->valuestring, TIME_MAX_S, &p->time_ns) < 0
			       ? invalid(e, "time is no time")
			       : 0;
	v = cJSON_IsNumber(t) ? t->valuedouble : -1;
	if (!(v >= 0 && v < (double)TIME_MAX_S))
		return invalid(e, "time is no time");
	p->time_ns = (int64_t)v * 1000000000 + (int64_t)((v - (double)(int64_t)v) * 1e6) * 1000;
	return 0;
}

static int read_env(struct payload *p, struct err *e)
{
	const cJSON *v, *env = NULL;
	int r = jsn_object(p->doc, "env", &env, e);

	if (r < 0)
		return r;
	cJSON_ArrayForEach(v,
			   env) if (!cJSON_IsString(v) || !v->string[0] ||
				    strchr(v->string,
					   '=')) return invalid(e,
								"env is not an object of strings");
	p->env = env;
	return 0;
}

static int read_members(struct payload *p, struct err *e)
{
	int r = jsn_str(p->doc, "hostname", &p->hostname, e);

	if (r >= 0 && p->hostname && !hostname_valid(p->hostname))
		r = invalid(e, "hostname is no host name");
	if (r >= 0)
		r = jsn_str(p->doc, "agent_token", &p->agent_token, e);
	if (r >= 0 && p->agent_token && !*p->agent_token)
		r = invalid(e, "agent_token is empty");
	if (r >= 0)
		r = read_env(p, e);
	if (r >= 0)
		r = read_time(p, e);
	if (r >= 0)
		r = read_entropy(p, e);
	return r < 0 ? r : 0;
}

static int keep_text(struct payload *p, const char *s, struct err *e)
{
	p->text = strdup(s);
	return p->text ? 0 : err_set(e, ERR_IO, ENOMEM, "payload");
}

/* ENV is the parsed body. Leaves in P the payload, and nothing of the envelope but the id. */
static int unwrap(cJSON *env, const char *body, struct payload *p, struct err *e)
{
	const char *id = NULL;
	const cJSON *inner;

	if (jsn_str(env, "microvmId", &id, e) < 0)
		return -EINVAL;
	if (id && !(p->microvm_id = strdup(id)))
		return err_set(e, ERR_IO, ENOMEM, "payload");
	inner = cJSON_GetObjectItemCaseSensitive(env, "runHookPayload");
	if (cJSON_IsString(inner)) {
		p->doc = jsn_parse(inner->valuestring, strlen(inner->valuestring), NULL);
		if (p->doc && !cJSON_IsObject(p->doc))
			jsn_free(&p->doc);
		return *inner->valuestring ? keep_text(p, inner->valuestring, e) : 0;
	}
	if (inner && !cJSON_IsNull(inner) && !cJSON_IsObject(inner))
		return err_set(e, ERR_INVALID, 0, "runHookPayload is not a string");
	if (!inner && id) /* the envelope of a run without a payload */
		return 0;
	p->doc = cJSON_Duplicate(cJSON_IsObject(inner) ? inner : env, 1);
	return p->doc ? keep_text(p, body, e) : err_set(e, ERR_IO, ENOMEM, "payload");
}

int payload_parse(const char *body, size_t n, struct payload *ret, struct err *e)
{
	struct payload p = PAYLOAD_INIT;
	AUTO_JSN *env = NULL;
	int r = 0;

	if (body && strspn(body, " \t\r\n") < n) {
		env = jsn_parse(body, n, e);
		if (!env)
			return err_wrap(e, "body"), -EINVAL;
		if (!cJSON_IsObject(env))
			return err_set(e, ERR_INVALID, 0, "body is not an object");
		r = unwrap(env, body, &p, e);
	}
	if (r == 0 && p.doc)
		r = read_members(&p, e);
	if (r < 0) {
		payload_done(&p);
		return r;
	}
	*ret = p;
	return 0;
}

void payload_done(struct payload *p)
{
	jsn_free(&p->doc);
	free(p->text);
	free(p->microvm_id);
	free(p->entropy);
	*p = (struct payload)PAYLOAD_INIT;
}

char *payload_public(const struct payload *p)
{
	AUTO_JSN *j = NULL;

	if (!p->doc)
		return p->text ? strdup(p->text) : NULL;
	j = cJSON_Duplicate(p->doc, 1);
	if (!j)
		return NULL;
	cJSON_DeleteItemFromObjectCaseSensitive(j, "agent_token");
	cJSON_DeleteItemFromObjectCaseSensitive(j, "entropy");
	return cJSON_PrintUnformatted(j);
}
