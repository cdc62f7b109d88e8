/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "app.h"
#include "fsop.h"
#include "lib/jsn.h"
#include "limits.h"
#include "watch.h"

/*
 * GET /v1/watch: events as lines of JSON, or as server-sent events. They wait in a buffer for the
 * client; when that is LIMIT_WATCH_BUF full the watch stands, the kernel's queue fills, and at its
 * end the client is told of an overflow: a slow client costs no more than that.
 *
 * Nothing is answered before the watch is ready, so that what cannot be watched is a proper error.
 */

struct stream {
	struct app *a;
	struct httpd_req *r;
	struct watch *w; /* owned */
	struct buf out;
	size_t last; /* where the last event in OUT begins */
	char *path;  /* owned; as asked for */
	bool sse, begun, over;
	struct loop_timer alive;
};

static unsigned streams;

static const char names[][9] = {
	[WATCH_READY] = "ready",       [WATCH_CREATE] = "create", [WATCH_MODIFY] = "modify",
	[WATCH_DELETE] = "delete",     [WATCH_RENAME] = "rename", [WATCH_ATTRIB] = "attrib",
	[WATCH_OVERFLOW] = "overflow", [WATCH_END] = "delete",
};

static char *describe(const char *name, const char *path, const char *to, const char *type)
{
	cJSON *o = cJSON_CreateObject();
	char *s = NULL;

	if (o && jsn_add_str(o, "event", name) && (!path || fsop_add_bytes(o, "path", path)) &&
	    (!to || fsop_add_bytes(o, "to", to)) && (!type || jsn_add_str(o, "type", type)))
		s = cJSON_PrintUnformatted(o);
	cJSON_Delete(o);
	return s;
}

/* Puts an event behind the others, unless the last one, not sent yet, is the same. */
static void put(struct stream *s, const char *name, const char *path, const char *to,
		const char *type)
{
	char *text = describe(name, path, to, type);
	size_t at = s->out.len, n;

	if (!text || buf_addf(&s->out, s->sse ? "data: %s\n\n" : "%s\n", text) < 0) {
		cJSON_free(text);
		s->over = true; /* the stream ends early rather than with a hole */
		return;
	}
	cJSON_free(text);
	n = s->out.len - at;
	if (at - s->last == n && !memcmp(s->out.p + s->last, s->out.p + at, n)) {
		s->out.len = at;
		s->out.p[at] = '\0';
	} else {
		s->last = at;
	}
	if (s->out.len >= LIMIT_WATCH_BUF)
		watch_pause(s->w, true);
	if (s->begun)
		httpd_wake(s->r);
}

static ssize_t pull(void *arg, char *p, size_t max)
{
	struct stream *s = arg;
	size_t n = s->out.len < max ? s->out.len : max;

	if (n) {
		memcpy(p, s->out.p, n);
		buf_drop(&s->out, n);
		s->last = s->out.len; /* what is partly sent is not compared */
		if (s->out.len < LIMIT_WATCH_BUF / 2)
			watch_pause(s->w, false);
		loop_arm(&s->a->loop, &s->alive, LIMIT_ALIVE_NS);
		return (ssize_t)n;
	}
	return s->over ? HTTPD_PULL_END : HTTPD_PULL_LATER;
}

static void on_alive(struct loop_timer *t)
{
	put(t->arg, "alive", NULL, NULL, NULL);
}

static void on_hup(void *arg)
{
	put(arg, "alive", NULL, NULL, NULL);
}

static void begin(struct stream *s)
{
	s->begun = true;
	httpd_on_hup(s->r, on_hup, s);
	httpd_set_timeout(s->r, LIMIT_FOLLOW_S);
	httpd_reply_stream(s->r, 200, s->sse ? "text/event-stream" : "application/x-ndjson", -1,
			   pull, s);
	loop_arm(&s->a->loop, &s->alive, LIMIT_ALIVE_NS);
}

static void on_event(void *arg, enum watch_event ev, const char *path, const char *to,
		     const char *type)
{
	struct stream *s = arg;

	s->over = s->over || ev == WATCH_END;
	put(s, names[ev], path, to, type);
	if (ev == WATCH_READY)
		begin(s);
	else if (ev == WATCH_END && !s->begun)
		begin(s);
}

static void on_failed(void *arg, int errnum)
{
	struct stream *s = arg;

	if (errnum == -1)
		httpd_reply_error(
			s->r, 413,
			"%s: more than %d directories, or %lu bytes of paths of all watches",
			s->path, LIMIT_WATCH_DIRS, LIMIT_WATCH_BYTES);
	else if (errnum == ENOSPC)
		httpd_reply_error(s->r, 507,
				  "%s: more directories than fs.inotify.max_user_watches allows",
				  s->path);
	else
		fsop_fail(s->r, errnum, s->path);
}

static const struct watch_ops ops = { on_event, on_failed };

static void on_end(void *arg)
{
	struct stream *s = arg;

	streams--;
	loop_disarm(&s->alive);
	watch_free(s->w);
	buf_done(&s->out);
	free(s->path);
	free(s);
}

static void start(struct stream *s, bool recursive)
{
	int r = watch_start(&s->a->loop, s->path, recursive, &ops, s, &s->w);

	if (r == -EMFILE)
		httpd_reply_error(s->r, 503, "no inotify instance is left for this user");
	else if (r < 0)
		on_failed(s, -r);
}

static bool wants_sse(struct httpd_req *r)
{
	const char *accept = httpd_header(r, "Accept"), *format = httpd_query(r, "format");

	return format ? !strcmp(format, "sse") : accept && strstr(accept, "text/event-stream");
}

void route_watch(struct httpd_req *r)
{
	const char *recursive = httpd_query(r, "recursive");
	struct err e = ERR_INIT;
	char *path = NULL;
	struct stream *s;
	size_t n;

	if (recursive && strcmp(recursive, "0") != 0 && strcmp(recursive, "1") != 0) {
		httpd_reply_error(r, 400, "\"recursive\" must be 0 or 1");
		return;
	}
	if (fsop_path_query(r, "path", &path, &e) < 0) {
		httpd_reply_error(r, err_http_status(e.code), "%s", e.msg);
		return;
	}
	s = streams < LIMIT_WATCHERS ? calloc(1, sizeof(*s)) : NULL;
	if (!s) {
		free(path);
		httpd_reply_error(r, 429, "%u watches are open, the limit is %d", streams,
				  LIMIT_WATCHERS);
		return;
	}
	for (n = strlen(path); n > 1 && path[n - 1] == '/';)
		path[--n] = '\0';
	*s = (struct stream){ .a = httpd_server_arg(r), .r = r, .path = path, .sse = wants_sse(r) };
	/* one event has two paths, both also in base64 */
	buf_init(&s->out, LIMIT_WATCH_BUF + 16 * (FSOP_PATH_MAX + 1));
	s->alive.fn = on_alive;
	s->alive.arg = s;
	streams++;
	httpd_on_end(r, on_end, s);
	start(s, recursive && recursive[0] == '1');
}
