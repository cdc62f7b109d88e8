/* SPDX-License-Identifier: Apache-2.0 */
#include "host/agent/ask.h"

#include <errno.h>
#include <string.h>

#include "host/agent/http.h"
#include "host/backend.h"

#define ASK_ATTEMPTS 4

struct asking {
	const struct ask *ask;
	struct loop loop;
	struct http *http;
	int status;
	struct buf body; /* owned */
	struct err err;
};

static void on_done(void *arg, int status, const struct buf *body, const struct err *e)
{
	struct asking *k = arg;

	k->status = status;
	k->err = *e;
	buf_clear(&k->body);
	if (status && buf_add(&k->body, body->p ? body->p : "", body->len) < 0)
		k->status = 0;
	loop_stop(&k->loop);
}

static int attempt(struct asking *k, int64_t limit_ns, struct err *e)
{
	const struct ask *a = k->ask;
	struct http_spec s = { .method = a->method,
			       .path = a->path,
			       .body = a->body,
			       .body_len = a->body ? strlen(a->body) : 0,
			       .limit_ns = limit_ns,
			       .done = on_done,
			       .arg = k };
	struct http_call *call;
	int r = http_start(k->http, &s, &call, e);

	if (r < 0)
		return r;
	r = loop_run(&k->loop);
	if (r < 0)
		return err_set(e, ERR_INTERNAL, -r, "waiting for the agent");
	if (k->status)
		return 0;
	*e = k->err;
	return e->errnum > 0 ? -e->errnum : -EIO;
}

static int attempts(struct asking *k, struct err *e)
{
	int64_t limit = k->ask->limit_ns ? k->ask->limit_ns : ASK_LIMIT_NS;
	int64_t until = loop_now() + limit;
	int n = strcmp(k->ask->method, "GET") == 0 ? ASK_ATTEMPTS : 1, r = -EIO;

	for (; n > 0 && loop_now() < until; n--) {
		k->loop.stop = false;
		r = attempt(k, until - loop_now(), e);
		if (r != -ECONNRESET)
			break;
	}
	return r;
}

static const char *detail_of(const cJSON *j)
{
	const char *detail = NULL;

	if (cJSON_IsObject(j))
		ignore_result(jsn_str(j, "detail", &detail, NULL)); /* of another type: no detail */
	return detail;
}

/* What web servers say by themselves; an agent of ours tells what it has not found. */
static bool no_route(int status, const cJSON *j)
{
	const char *detail = detail_of(j);

	return (status == 404 || status == 405) &&
	       (!detail || !strcmp(detail, "Not Found") || !strcmp(detail, "Method Not Allowed"));
}

bool ask_no_route(int status, const struct buf *body)
{
	AUTO_JSN *j = body->len ? jsn_parse(body->p, body->len, NULL) : NULL;

	return no_route(status, j);
}

int ask_unsupported(struct err *e, const char *what)
{
	(void)err_set(e, ERR_UNSUPPORTED, 0, "the agent in the image of the sandbox %s", what);
	if (e)
		e->errnum = EOPNOTSUPP;
	return -ENOSYS;
}

/* What an answer that is no 200 or 201 says. */
static int refusal(int status, const cJSON *j, struct err *e)
{
	static const struct {
		int status, errnum;
		enum err_code code;
	} table[] = {
		{ 404, ENOENT, ERR_NOT_FOUND },	  { 410, ESRCH, ERR_CONFLICT },
		{ 409, EBUSY, ERR_CONFLICT },	  { 401, EACCES, ERR_DENIED },
		{ 403, EACCES, ERR_DENIED },	  { 429, EAGAIN, ERR_FULL },
		{ 503, EAGAIN, ERR_UNAVAILABLE },
	};
	const char *detail = detail_of(j);
	size_t i = 0;

	if (no_route(status, j))
		return ask_unsupported(e,
				       "has the compatible routes only: single commands and whole "
				       "files");
	while (i < ARRAY_LEN(table) && table[i].status != status)
		i++;
	(void)err_set(e,
		      i < ARRAY_LEN(table) ? table[i].code
		      : status < 500	   ? ERR_INVALID
					   : ERR_INTERNAL,
		      0, "%s%.380s",
		      detail ? "" : "the agent refused: ", detail ? detail : "no reason given");
	return i < ARRAY_LEN(table) ? -table[i].errnum : status < 500 ? -EINVAL : -EIO;
}

int ask_take(int status, const struct buf *body, cJSON **ret, struct err *e)
{
	AUTO_JSN *j = body->len ? jsn_parse(body->p, body->len, NULL) : NULL;

	if (status != 200 && status != 201)
		return refusal(status, j, e);
	if (!j) {
		(void)err_set(e, ERR_INTERNAL, 0, "the agent's answer is no JSON document");
		return -EIO;
	}
	if (ret) {
		*ret = j;
		j = NULL;
	}
	return 0;
}

int agent_ask(const struct ask *a, cJSON **ret_json, struct err *e)
{
	struct asking k = { .ask = a };
	int r = loop_init(&k.loop);

	if (r < 0)
		return err_set(e, ERR_INTERNAL, -r, "asking the agent");
	buf_init(&k.body, HTTP_REPLY_MAX);
	r = http_open(&k.loop, a->backend, a->id, &k.http, e);
	if (r == 0)
		r = attempts(&k, e);
	if (r == 0)
		r = ask_take(k.status, &k.body, ret_json, e);
	http_free(k.http);
	buf_done(&k.body);
	loop_done(&k.loop);
	return r;
}
