/* SPDX-License-Identifier: Apache-2.0 */
#include "host/agent/tail.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "host/agent/frames.h"
#include "host/agent/http.h"
#include "host/backend.h"
#include "lib/jsn.h"
#include "lib/str.h"

/* Reads the output once without keeping it, and remembers where the last lines began. */

#define TAIL_NS (60LL * 1000000000)

struct tail {
	const struct backend *backend;
	const char *sandbox_id;
	struct loop loop;
	struct http *http;
	struct frames frames;
	uint64_t *begins; /* owned: a ring of LINES offsets */
	uint64_t lines, count, at;
	bool mid_line;
	int status;
	struct err err;
};

static int on_frame(void *arg, int stream, const void *p, size_t n)
{
	struct tail *t = arg;
	const char *s = p;

	(void)stream;
	for (size_t i = 0; i < n; i++) {
		if (!t->mid_line)
			t->begins[t->count++ % t->lines] = t->at + i;
		t->mid_line = s[i] != '\n';
	}
	t->at += n;
	return 0;
}

static int on_event(void *arg, const char *json, size_t n)
{
	struct tail *t = arg;
	AUTO_JSN *j = jsn_parse(json, n, NULL);
	const char *what = "";

	if (!j || jsn_str(j, "event", &what, NULL) != 1)
		return -EPROTO;
	if (!strcmp(what, "gap") && jsn_u64(j, "to", t->at, 1ULL << 53, &t->at, NULL) != 1)
		return -EPROTO;
	return 0;
}

static int on_body(void *arg, const void *p, size_t n)
{
	struct tail *t = arg;

	return frames_feed(&t->frames, p, n);
}

static void on_done(void *arg, int status, const struct buf *body, const struct err *e)
{
	struct tail *t = arg;

	(void)body;
	t->status = status;
	t->err = *e;
	loop_stop(&t->loop);
}

static int ask(struct tail *t, const char *exec_id, struct err *e)
{
	static const struct frames_ops ops = { .data = on_frame, .event = on_event };
	char path[160];
	struct http_spec s = { .method = "GET",
			       .path = path,
			       .limit_ns = TAIL_NS,
			       .data = on_body,
			       .done = on_done,
			       .arg = t };
	struct http_call *call;
	int r;

	frames_init(&t->frames, &ops, t);
	ignore_result(str_format(path, sizeof(path), "/v1/execs/%.64s/output", exec_id));
	r = http_start(t->http, &s, &call, e);
	if (r == 0)
		r = loop_run(&t->loop);
	if (r == 0 && t->status == 200)
		return 0;
	if (r == 0 && t->status == 0)
		*e = t->err;
	else if (r == 0)
		(void)err_set(e, ERR_NOT_FOUND, 0, "the command's output is not there any more");
	return r < 0 ? r : -EIO;
}

int tail_offset(const struct backend *b, const char *sandbox_id, const char *exec_id,
		uint64_t lines, uint64_t *ret_offset, struct err *e)
{
	struct tail t = { .backend = b, .sandbox_id = sandbox_id, .lines = lines ? lines : 1 };
	int r = loop_init(&t.loop);

	if (r < 0)
		return err_set(e, ERR_INTERNAL, -r, "asking the agent");
	if (t.lines > TAIL_LINES_MAX)
		t.lines = TAIL_LINES_MAX;
	t.begins = calloc(t.lines, sizeof(*t.begins));
	r = t.begins ? http_open(&t.loop, t.backend, t.sandbox_id, &t.http, e)
		     : err_set(e, ERR_INTERNAL, ENOMEM, "asking the agent");
	if (r == 0)
		r = ask(&t, exec_id, e);
	if (r == 0 && lines == 0)
		*ret_offset = t.at;
	else if (r == 0) /* the oldest of the ring, or all there was */
		*ret_offset = t.count > t.lines ? t.begins[t.count % t.lines] : 0;
	frames_done(&t.frames);
	http_free(t.http);
	loop_done(&t.loop);
	free(t.begins);
	return r;
}
