/* SPDX-License-Identifier: Apache-2.0 */
#include "host/aws/logs.h"

#include <errno.h>
#include <string.h>

#include "host/aws/aws.h"
#include "host/aws/sigv4.h"
#include "lib/jsn.h"
#include "lib/str.h"

/* One operation of CloudWatch Logs. Its errors are all HTTP 400. */
static int ask(struct aws *a, const char *what, const cJSON *params, struct aws_answer *ret,
	       struct err *e)
{
	char target[64];
	const struct sigv4_header head = { "x-amz-target", target };
	struct aws_call c = { .service = &aws_logs,
			      .what = what,
			      .method = "POST",
			      .path = "/",
			      .content_type = "application/x-amz-json-1.1",
			      .heads = &head,
			      .heads_len = 1 };
	char *body = cJSON_PrintUnformatted(params);
	int r = str_format(target, sizeof(target), "Logs_20140328.%s", what);

	*ret = (struct aws_answer){ .attempts = 0 };
	if (!body || r < 0) {
		cJSON_free(body);
		return err_set(e, ERR_INTERNAL, ENOMEM, "%s", what);
	}
	c.body = body;
	c.body_len = strlen(body);
	r = aws_call(a, &c, ret, e);
	cJSON_free(body);
	if (r == -EINVAL && strcmp(ret->code, "ResourceNotFoundException") == 0) {
		if (e)
			e->code = ERR_NOT_FOUND;
		return -ENOENT;
	}
	if (r == -EINVAL && strcmp(ret->code, "AccessDeniedException") == 0) {
		if (e)
			e->code = ERR_DENIED;
		return -EACCES;
	}
	return r;
}

static int each_event(const cJSON *answer, logs_fn *fn, void *arg)
{
	const cJSON *item, *events = jsn_get(answer, "events");
	int r = 0;

	cJSON_ArrayForEach(item, events)
	{
		const char *stream = cJSON_GetStringValue(jsn_get(item, "logStreamName"));
		const cJSON *at = jsn_get(item, "timestamp");
		struct logs_event ev = { .stream = stream ? stream : "" };

		ev.message = cJSON_GetStringValue(jsn_get(item, "message"));
		if (cJSON_IsNumber(at) && at->valuedouble > 0 && at->valuedouble < 1e15)
			ev.time_ms = (int64_t)at->valuedouble;
		r = ev.message ? fn(arg, &ev) : 0;
		if (r)
			break;
	}
	return r;
}

static cJSON *params_of(const struct logs_query *q, const char *stream_as, const char *token)
{
	cJSON *p = cJSON_CreateObject();

	if (p && jsn_add_str(p, "logGroupName", q->group) &&
	    (!q->stream || jsn_add_str(p, stream_as, q->stream)) &&
	    (!q->since_ms || jsn_add_i64(p, "startTime", q->since_ms)) &&
	    (!token || jsn_add_str(p, "nextToken", token)))
		return p;
	cJSON_Delete(p);
	return NULL;
}

/* What a reader of pages has in common. *RET_STOP is what FN returned. */
static int page(struct aws *a, const char *what, cJSON *params, const char *next, struct buf *token,
		logs_fn *fn, void *arg, int *ret_stop, struct err *e)
{
	struct aws_answer w = { .attempts = 0 };
	const char *to;
	int r = params ? ask(a, what, params, &w, e) : err_set(e, ERR_INTERNAL, ENOMEM, "%s", what);

	if (r == 0)
		*ret_stop = each_event(w.json, fn, arg);
	to = cJSON_GetStringValue(jsn_get(w.json, next));
	/* The end: of a search no token, of a stream the same one again. */
	if (r == 0 && *ret_stop == 0 && to && *to && (!token->len || strcmp(token->p, to) != 0)) {
		buf_clear(token);
		r = buf_adds(token, to);
		r = r < 0 ? err_set(e, ERR_TOO_BIG, -r, "%s: the token for the next page", what)
			  : 1;
	}
	aws_answer_done(&w);
	return r;
}

static int pages(struct aws *a, const struct logs_query *q, bool search, struct buf *token,
		 logs_fn *fn, void *arg, struct err *e)
{
	const char *what = search ? "FilterLogEvents" : "GetLogEvents";
	const char *stream_as = search ? "logStreamNamePrefix" : "logStreamName";
	const char *next = search ? "nextToken" : "nextForwardToken";
	int stop = 0, r = 1;

	for (unsigned n = 0; r == 1 && n < LOGS_PAGES_MAX; n++) {
		AUTO_JSN *p = params_of(q, stream_as, token->len ? token->p : NULL);

		if (p && !search && !jsn_add_bool(p, "startFromHead", true))
			return err_set(e, ERR_INTERNAL, ENOMEM, "%s", what);
		r = page(a, what, p, next, token, fn, arg, &stop, e);
	}
	if (r == 1)
		return err_set(e, ERR_TOO_BIG, 0, "the log %s has no end", q->group);
	return r < 0 ? r : stop;
}

int logs_stream(struct aws *a, const struct logs_query *q, struct buf *token, logs_fn *fn,
		void *arg, struct err *e)
{
	return pages(a, q, false, token, fn, arg, e);
}

/* --- backwards --- */

struct back {
	cJSON *page[LOGS_BACK_MAX]; /* owned; the newest first */
	unsigned pages;
	uint64_t events;
};

/* One page before those that are held. 1: there may be another one. */
static int page_back(struct aws *a, const struct logs_query *q, uint64_t want, struct back *b,
		     struct buf *back, struct buf *token, struct err *e)
{
	AUTO_JSN *p = params_of(q, "logStreamName", back->len ? back->p : NULL);
	uint64_t limit = want > LOGS_PAGE_EVENTS ? LOGS_PAGE_EVENTS : want ? want : 1;
	struct aws_answer w = { .attempts = 0 };
	const char *to, *on;
	int r;

	if (!p || !jsn_add_u64(p, "limit", limit))
		return err_set(e, ERR_INTERNAL, ENOMEM, "GetLogEvents");
	r = ask(a, "GetLogEvents", p, &w, e);
	to = cJSON_GetStringValue(jsn_get(w.json, "nextBackwardToken"));
	on = cJSON_GetStringValue(jsn_get(w.json, "nextForwardToken"));
	if (r == 0 && b->pages == 0 && (!on || buf_adds(token, on) < 0))
		r = err_set(e, ERR_INTERNAL, EBADMSG, "GetLogEvents: the token for what follows");
	if (r == 0) {
		b->events += (uint64_t)cJSON_GetArraySize(jsn_get(w.json, "events"));
		b->page[b->pages++] = w.json;
		w.json = NULL;
		r = to && *to && (!back->len || strcmp(back->p, to) != 0);
	}
	if (r == 1) {
		buf_clear(back);
		if (buf_adds(back, to) < 0)
			r = err_set(e, ERR_TOO_BIG, ENOSPC, "GetLogEvents: the token of a page");
	}
	aws_answer_done(&w);
	return r;
}

int logs_last(struct aws *a, const struct logs_query *q, uint64_t n, struct buf *token, logs_fn *fn,
	      void *arg, struct err *e)
{
	struct back b = { .pages = 0 };
	AUTO_BUF back;
	int r = 1;

	buf_init(&back, LOGS_TOKEN_MAX);
	while (r == 1 && (!b.pages || b.events < n) && b.pages < LOGS_BACK_MAX)
		r = page_back(a, q, n - b.events, &b, &back, token, e);
	if (r > 0)
		r = 0;
	for (unsigned i = b.pages; i > 0; i--) {
		if (r == 0)
			r = each_event(b.page[i - 1], fn, arg);
		cJSON_Delete(b.page[i - 1]);
	}
	return r;
}

int logs_search(struct aws *a, const struct logs_query *q, logs_fn *fn, void *arg, struct err *e)
{
	AUTO_BUF token;

	buf_init(&token, LOGS_TOKEN_MAX);
	return pages(a, q, true, &token, fn, arg, e);
}
