/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "host/agent/ask.h"
#include "host/agent/frames.h"
#include "host/agent/stream.h"
#include "host/mcp/tools.h"
#include "lib/b64.h"
#include "lib/loop.h"
#include "lib/str.h"

/*
 * Commands that run on between calls. A session is a command of the guest's agent under the agent's id: nothing about
 * it is kept here, so that it outlives this server, and another server or `asb exec --attach` can go on with it.
 */

#define ID_MAX	     64
#define POLL_STEP_NS (100 * 1000000LL)
#define WAIT_MAX_MS  60000
#define PIECE_MAX    (512U << 10) /* the agent keeps what may be lost on the way, up to this */

/* The id that argument "session" is; NULL with E when it cannot be one. */
static const char *session(struct mcp_job *j, struct err *e)
{
	const char *id = job_str(j, "session");
	size_t n = strlen(id);

	if (n && n <= ID_MAX &&
	    strspn(id, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-") == n)
		return id;
	(void)job_fail(j, e, "not_found", "'%.80s' is no session", id);
	return NULL;
}

static int no_session(struct mcp_job *j, const struct core_named *n, struct err *e)
{
	return job_fail(j, e, "not_found", "there is no session '%s' in '%s'",
			job_str(j, "session"), n->record.name);
}

/* Asks the agent about the session: METHOD /v1/execs/{id}REST. */
static int ask(struct mcp_job *j, const struct core_named *n, const char *method, const char *rest,
	       const char *body, cJSON **ret, struct err *e)
{
	char path[ID_MAX + 64];
	struct ask a = { .backend = n->backend,
			 .id = n->record.microvm_id,
			 .method = method,
			 .path = path,
			 .body = body };
	const char *id = session(j, e);
	int r;

	if (!id)
		return -EINVAL;
	ignore_result(str_format(path, sizeof(path), "/v1/execs/%s%s", id, rest)); /* it fits */
	r = agent_ask(&a, ret, e);
	return r == -ENOENT ? no_session(j, n, e) : r;
}

int tool_exec_list(struct mcp_job *j, struct err *e)
{
	struct core_named n;
	AUTO_JSN *doc = NULL;
	int r = job_reach(j, &n, "SandboxError", e);

	if (r == 0) {
		struct ask a = { .backend = n.backend,
				 .id = n.record.microvm_id,
				 .method = "GET",
				 .path = "/v1/execs" };

		r = agent_ask(&a, &doc, e);
		core_named_done(&n);
	}
	if (r == 0) {
		cJSON *list = cJSON_DetachItemFromObjectCaseSensitive(doc, "execs");

		r = list && cJSON_AddItemToObject(j->data, "sessions", list) ? 0 : -EPROTO;
	}
	return r;
}

/* --- poll --- */

struct polled {
	struct buf out[2];
	uint64_t offset; /* behind what has come */
	uint64_t lost;
	int last; /* which stream came last */
	bool over;
	cJSON *exit; /* owned */
};

static int on_data(void *arg, int stream, const void *p, size_t n)
{
	struct polled *q = arg;

	q->last = stream == PROTO_STREAM_STDOUT ? 0 : 1;
	q->offset += n;
	return buf_add(&q->out[q->last], p, n);
}

static int on_event(void *arg, const char *json, size_t n)
{
	struct polled *q = arg;
	cJSON *doc = jsn_parse(json, n, NULL);
	const char *what = "";
	uint64_t to = 0;

	if (!doc || jsn_str(doc, "event", &what, NULL) != 1) {
		cJSON_Delete(doc);
		return -EPROTO;
	}
	if (!strcmp(what, "gap") && jsn_u64(doc, "to", q->offset, 1ULL << 53, &to, NULL) == 1) {
		q->lost += to - q->offset;
		q->offset = to;
	}
	if (!strcmp(what, "exit") && !q->exit) {
		q->exit = doc;
		return 0;
	}
	cJSON_Delete(doc);
	return 0;
}

static int read_frames(struct stream *s, struct polled *q)
{
	static const struct frames_ops ops = { .data = on_data, .event = on_event };
	struct frames f;
	char p[4096];
	ssize_t n = 0;
	int r = 0;

	frames_init(&f, &ops, q);
	while (r == 0 && (n = stream_read(s, p, sizeof(p))) > 0)
		r = frames_feed(&f, p, (size_t)n);
	frames_done(&f);
	return r < 0 ? r : (int)n;
}

static int poll_once(struct mcp_job *j, const struct core_named *n, struct polled *q, size_t max,
		     struct err *e)
{
	char path[ID_MAX + 96];
	struct stream_spec s = {
		.backend = n->backend, .id = n->record.microvm_id, .method = "GET", .path = path
	};
	const char *id = session(j, e);
	struct stream *st = NULL;
	int r;

	if (!id)
		return -EINVAL;
	ignore_result(str_format(path, sizeof(path),
				 "/v1/execs/%s/output?format=frames&offset=%llu&max=%zu", id,
				 (unsigned long long)q->offset, max)); /* it fits */
	r = stream_open(&s, &st, e);
	if (r == 0)
		r = read_frames(st, q);
	if (r < 0 && st) {
		r = stream_end(st, NULL, e);
		if (r == -ENOENT)
			r = no_session(j, n, e);
		else if (r == 0)
			r = err_set(e, ERR_INTERNAL, EPROTO, "the output of the session");
	}
	stream_free(st);
	return r;
}

/* Half a character at the very end is left for the next call, unless there is none. */
static void leave_half(struct polled *q)
{
	struct buf *b = &q->out[q->last];
	size_t k = b->len > 1 ? mcp_cut(b->p, b->len, b->len - 1) : b->len, n;
	unsigned char c = b->len > 1 ? (unsigned char)b->p[k] : 0;

	n = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : c >= 0xc0 ? 2 : 1;
	if (b->len > 1 && b->len - k < n) {
		q->offset -= b->len - k;
		b->len = k;
	}
}

static bool add_output(const struct mcp_job *j, const char *name, const struct buf *b, bool base64)
{
	AUTO_BUF coded;

	buf_init(&coded, B64_LEN(PIECE_MAX) + 1);
	if (!base64)
		return job_add_capped(j, j->data, name, b->p, b->len, b->len);
	return b64_append(&coded, b->p ? b->p : "", b->len) == 0 &&
	       jsn_add_str(j->data, name, coded.p ? coded.p : "");
}

static bool add_end(struct mcp_job *j, const struct polled *q)
{
	static const char *const names[] = { "exit_code", "signal", "timed_out", "oom",
					     "duration_ms" };

	if (!jsn_add_str(j->data, "state", q->exit ? "exited" : "running"))
		return false;
	for (size_t i = 0; i < ARRAY_LEN(names) && q->exit; i++) {
		cJSON *v = cJSON_DetachItemFromObjectCaseSensitive(q->exit, names[i]);

		if (v && !cJSON_AddItemToObject(j->data, names[i], v))
			return false;
	}
	return true;
}

static int tell(struct mcp_job *j, struct polled *q, uint64_t from, bool more)
{
	bool base64 = !strcmp(job_str(j, "encoding"), "base64");

	if (!base64 && !q->exit)
		leave_half(q);
	if (jsn_add_str(j->data, "session", job_str(j, "session")) && add_end(j, q) &&
	    add_output(j, "stdout", &q->out[0], base64) &&
	    add_output(j, "stderr", &q->out[1], base64) && jsn_add_u64(j->data, "offset", from) &&
	    jsn_add_u64(j->data, "next_offset", q->offset) &&
	    jsn_add_u64(j->data, "lost_bytes", q->lost) && jsn_add_bool(j->data, "more", more))
		return 0;
	return -ENOMEM;
}

int tool_exec_poll(struct mcp_job *j, struct err *e)
{
	double wait = job_num(j, "wait_ms");
	int64_t until = loop_now() + (int64_t)((wait > WAIT_MAX_MS ? WAIT_MAX_MS
						: wait > 0	   ? wait
								   : 0) *
					       1e6);
	uint64_t from = job_num(j, "offset") > 0 ? (uint64_t)job_num(j, "offset") : 0;
	size_t max = job_cap(j) < PIECE_MAX ? job_cap(j) : PIECE_MAX;
	struct polled q = { .offset = from };
	struct core_named n;
	int r;

	if (!strcmp(job_str(j, "encoding"), "base64"))
		max = max / 4 * 3;
	buf_init(&q.out[0], PIECE_MAX + 1);
	buf_init(&q.out[1], PIECE_MAX + 1);
	r = job_reach(j, &n, "SandboxError", e);
	if (r < 0)
		return r;
	while ((r = poll_once(j, &n, &q, max, e)) == 0 && q.offset == from && !q.exit &&
	       loop_now() < until)
		job_pause(j, POLL_STEP_NS);
	if (r == 0)
		r = tell(j, &q, from, q.offset - from - q.lost >= max);
	core_named_done(&n);
	buf_done(&q.out[0]);
	buf_done(&q.out[1]);
	cJSON_Delete(q.exit);
	return r;
}

/* --- input, signals, the end --- */

int tool_exec_write(struct mcp_job *j, struct err *e)
{
	const char *data = job_str(j, "data"), *id = session(j, e);
	char path[ID_MAX + 64], *raw = NULL;
	size_t len = 0;
	struct stream *st = NULL;
	struct core_named n;
	AUTO_JSN *doc = NULL;
	uint64_t offset = 0;
	int r = id ? job_bytes(j, "data", &raw, &len, e) : -EINVAL;

	if (r == 0)
		r = job_reach(j, &n, "SandboxError", e);
	if (r == 0) {
		struct stream_spec s = { .backend = n.backend,
					 .id = n.record.microvm_id,
					 .method = "POST",
					 .path = path,
					 .upload = true };

		ignore_result(str_format(path, sizeof(path), "/v1/execs/%s/stdin%s", id,
					 job_bool(j, "eof") ? "?eof=1" : "")); /* it fits */
		r = stream_open(&s, &st, e);
		if (r == 0) {
			ignore_result(
				stream_write(st, raw ? raw : data, len)); /* stream_end tells */
			r = stream_end(st, &doc, e);
		}
		if (r == -ENOENT)
			r = no_session(j, &n, e);
		stream_free(st);
		core_named_done(&n);
	}
	if (r == 0)
		ignore_result(jsn_u64(doc, "offset", 0, 1ULL << 53, &offset, NULL)); /* else 0 */
	if (r == 0 &&
	    (!jsn_add_str(j->data, "session", id) || !jsn_add_u64(j->data, "bytes_written", len) ||
	     !jsn_add_u64(j->data, "offset", offset)))
		r = -ENOMEM;
	free(raw);
	return r;
}

int tool_exec_signal(struct mcp_job *j, struct err *e)
{
	AUTO_JSN *body = cJSON_CreateObject();
	char *text = NULL;
	struct core_named n;
	int r = job_reach(j, &n, "SandboxError", e);

	if (r < 0)
		return r;
	if (body && jsn_add_str(body, "signal", job_str(j, "signal")) &&
	    jsn_add_str(body, "to", job_str(j, "to")))
		text = cJSON_PrintUnformatted(body);
	r = text ? ask(j, &n, "POST", "/signal", text, NULL, e) : -ENOMEM;
	if (r == 0 && (!jsn_add_str(j->data, "session", job_str(j, "session")) ||
		       !jsn_add_str(j->data, "signal", job_str(j, "signal"))))
		r = -ENOMEM;
	free(text);
	core_named_done(&n);
	return r;
}

int tool_exec_close(struct mcp_job *j, struct err *e)
{
	struct core_named n;
	int r = job_reach(j, &n, "SandboxError", e);

	if (r < 0)
		return r;
	r = ask(j, &n, "DELETE", "?kill=1", NULL, NULL, e);
	if (r == 0 && (!jsn_add_str(j->data, "session", job_str(j, "session")) ||
		       !jsn_add_bool(j->data, "closed", true)))
		r = -ENOMEM;
	core_named_done(&n);
	return r;
}
