/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app.h"
#include "control.h"
#include "exec.h"
#include "lib/b64.h"
#include "lib/proto.h"
#include "lib/str.h"

/*
 * GET /v1/execs/{id}/output: the log of an exec as frames. A stream is a position in the log and at
 * most one event that has been made but not sent. What is sent is decided when the connection has
 * room: a gap when the log has moved on, bytes, then at the end of a finished command the exit
 * event and the end of the answer. A stream whose exec is forgotten under it is cut, without an
 * exit event.
 *
 * With `max` an answer ends after so many bytes, and the client asks for the next piece. Bytes that were sent
 * may still be under way when a connection breaks; only the next request tells that they have arrived, and
 * until then they are kept. So a client that bounds its pieces by half a log loses nothing.
 *
 * As server-sent events (WHATWG HTML, section 9.2) bytes are events too, in base64, whose id is the offset
 * behind them: what a browser sends as Last-Event-ID when it comes back is where it goes on.
 */

#define EVENT_MAX 256
#define SSE_RAW	  3072 /* bytes in one event, a multiple of 3 */
#define SSE_MAX	  (EVENT_MAX + SSE_RAW / 3 * 4)

struct stream {
	struct exec_follower f;
	struct exec *e; /* without follow: borrowed for the length of one pull at most; see pull */
	struct httpd_req *r;
	char id[LIMIT_ID + 1];
	bool follow, sse, ended;
	bool alive_due;
	struct loop_timer alive;
	struct loop *loop;
	uint64_t stop; /* no byte from here on */
	size_t event_len, event_at;
	char event[]; /* PROTO_FRAME_HEADER + EVENT_MAX, or SSE_MAX */
};

static void put_header(char *p, unsigned stream, size_t n)
{
	p[0] = (char)stream;
	p[1] = p[2] = p[3] = 0;
	p[4] = (char)(n >> 24);
	p[5] = (char)(n >> 16);
	p[6] = (char)(n >> 8);
	p[7] = (char)n;
}

/* JSON as a frame, or as an event of the name NAME. */
static void put_json(struct stream *s, const char *name, const char *json)
{
	size_t n = strlen(json);

	s->event_at = 0;
	if (s->sse) {
		s->event_len =
			(size_t)snprintf(s->event, SSE_MAX, "id: %llu\nevent: %s\ndata: %s\n\n",
					 (unsigned long long)s->f.offset, name, json);
		return;
	}
	put_header(s->event, PROTO_STREAM_EVENT, n);
	memcpy(s->event + PROTO_FRAME_HEADER, json, n);
	s->event_len = PROTO_FRAME_HEADER + n;
}

static void alive_event(struct stream *s)
{
	static const char comment[] = ": alive\n\n";

	if (!s->sse) {
		put_json(s, "alive", "{\"event\":\"alive\"}");
		return;
	}
	memcpy(s->event, comment, sizeof(comment));
	s->event_len = sizeof(comment) - 1;
	s->event_at = 0;
}

static void gap_event(struct stream *s, uint64_t to)
{
	char json[EVENT_MAX];

	(void)snprintf(json, sizeof(json), "{\"event\":\"gap\",\"from\":%llu,\"to\":%llu}",
		       (unsigned long long)s->f.offset, (unsigned long long)to);
	s->f.offset = s->f.sure = to;
	if (s->stop < to)
		s->stop = to;
	put_json(s, "gap", json);
}

static void exit_event(struct stream *s, const struct exec *e)
{
	char json[EVENT_MAX];

	control_exit(e, "event", json, sizeof(json));
	put_json(s, "exit", json);
	s->ended = true;
}

/* Picks the next event when there are no bytes to send. False: nothing now. */
static bool next_event(struct stream *s, const struct exec *e)
{
	if (s->ended || s->f.offset >= s->stop)
		return false;
	if (e->state == EXEC_EXITED)
		exit_event(s, e);
	else if (s->alive_due)
		alive_event(s);
	else
		return false;
	s->alive_due = false;
	return true;
}

static void took(struct stream *s, size_t n)
{
	if (s->f.e)
		exec_fetched(&s->f, n);
	else
		s->f.offset += n;
}

/* What can be sent next, at most MAX bytes. */
static size_t peek(const struct stream *s, const struct exec *e, size_t max, unsigned *ret_stream,
		   const char **ret)
{
	size_t n = outlog_peek(&e->log, s->f.offset, ret_stream, ret);

	if (max > s->stop - s->f.offset)
		max = (size_t)(s->stop - s->f.offset);
	return n < max ? n : max;
}

/* Bytes of the log as an event that is still to be sent. False when there is nothing. */
static bool make_bytes(struct stream *s, const struct exec *e)
{
	unsigned stream;
	const char *from;
	size_t n = peek(s, e, SSE_RAW, &stream, &from);
	int k;

	if (n == 0)
		return false;
	k = snprintf(s->event, SSE_MAX,
		     "id: %llu\nevent: %s\ndata: ", (unsigned long long)(s->f.offset + n),
		     stream == PROTO_STREAM_STDOUT ? "stdout" : "stderr");
	b64_encode(from, n, s->event + k);
	k += (int)B64_LEN(n);
	memcpy(s->event + k, "\n\n", 2);
	s->event_len = (size_t)k + 2;
	s->event_at = 0;
	took(s, n);
	return true;
}

/* One frame of the log, or a part of one that fits. Bytes written, 0 when there is nothing. */
static size_t put_bytes(struct stream *s, const struct exec *e, char *p, size_t max)
{
	unsigned stream;
	const char *from;
	size_t n =
		max > PROTO_FRAME_HEADER ? peek(s, e, max - PROTO_FRAME_HEADER, &stream, &from) : 0;

	if (n == 0)
		return 0;
	put_header(p, stream, n);
	memcpy(p + PROTO_FRAME_HEADER, from, n);
	took(s, n);
	return PROTO_FRAME_HEADER + n;
}

static size_t put_event(struct stream *s, char *p, size_t max)
{
	size_t n = s->event_len - s->event_at;

	if (n > max)
		n = max;
	memcpy(p, s->event + s->event_at, n);
	s->event_at += n;
	return n;
}

static size_t fill(struct stream *s, const struct exec *e, char *p, size_t max)
{
	size_t w = 0;

	while (w < max) {
		size_t k = put_event(s, p + w, max - w);

		if (k == 0 && s->f.offset < e->log.start) {
			gap_event(s, e->log.start);
			continue;
		}
		if (k == 0 && s->sse) {
			if (!make_bytes(s, e) && !next_event(s, e))
				break;
			continue;
		}
		if (k == 0)
			k = put_bytes(s, e, p + w, max - w);
		if (k == 0 && max - w <= PROTO_FRAME_HEADER)
			break;
		if (k == 0 && !next_event(s, e))
			break;
		w += k;
	}
	return w;
}

static ssize_t pull(void *arg, char *p, size_t max)
{
	struct stream *s = arg;
	struct exec *e = s->follow ? s->f.e : exec_find(s->id);
	size_t n;

	if (!e)
		return HTTPD_PULL_ABORT;
	n = fill(s, e, p, max);
	loop_arm(s->loop, &s->alive, LIMIT_ALIVE_NS);
	if (n)
		return (ssize_t)n;
	if (s->ended || !s->follow || s->f.offset >= s->stop)
		return HTTPD_PULL_END;
	return HTTPD_PULL_LATER;
}

static void on_wake(struct exec_follower *f)
{
	struct stream *s = (struct stream *)(void *)f; /* its first member */

	httpd_wake(s->r);
}

static void on_alive(struct loop_timer *t)
{
	struct stream *s = t->arg;

	s->alive_due = true;
	httpd_wake(s->r);
}

/* The client has closed its side: writing something tells whether it still reads. */
static void on_hup(void *arg)
{
	struct stream *s = arg;

	s->alive_due = true;
	httpd_wake(s->r);
}

static void on_end(void *arg)
{
	struct stream *s = arg;

	if (s->ended && s->f.e)
		exec_told(s->f.e);
	exec_unfollow(&s->f);
	loop_disarm(&s->alive);
	free(s);
}

/* Server-sent events are wanted. */
static bool wants_sse(struct httpd_req *r)
{
	const char *format = httpd_query(r, "format"), *accept = httpd_header(r, "Accept");

	if (format)
		return !strcmp(format, "sse");
	return accept && strcasestr(accept, "text/event-stream");
}

static int read_query(struct httpd_req *r, struct output_query *q)
{
	const char *max = httpd_query(r, "max"), *forget = httpd_query(r, "forget");
	const char *offset = httpd_query(r, "offset"), *follow = httpd_query(r, "follow");
	const char *last = httpd_header(r, "Last-Event-ID"), *format = httpd_query(r, "format");

	*q = (struct output_query){ .offset = 0 };
	if (max && str_to_u64(max, 1, UINT64_MAX, &q->max) < 0)
		return -EINVAL;
	if (forget && str_to_u64(forget, 1, LIMIT_FORGET_S, &q->forget) < 0)
		return -EINVAL;
	if (format && strcmp(format, "sse") != 0 && strcmp(format, "frames") != 0)
		return -EINVAL;
	if (last &&
	    wants_sse(r)) /* the address of a stream that is taken up again stays the same */
		offset = last;
	if (offset && str_to_u64(offset, 0, UINT64_MAX, &q->offset) < 0)
		return -EINVAL;
	if (follow && strcmp(follow, "0") != 0 && strcmp(follow, "1") != 0)
		return -EINVAL;
	q->follow = follow && follow[0] == '1';
	return 0;
}

bool output_query(struct httpd_req *r, struct output_query *q)
{
	if (read_query(r, q) == 0)
		return true;
	httpd_reply_error(
		r, 400,
		"offset, max and forget must be numbers, follow 0 or 1, format sse or frames");
	return false;
}

void output_begin(struct httpd_req *r, int status, struct exec *e, const struct output_query *q)
{
	struct app *a = httpd_server_arg(r);
	bool sse = wants_sse(r);
	struct stream *s = calloc(1, sizeof(*s) + (sse ? SSE_MAX : PROTO_FRAME_HEADER + EVENT_MAX));

	if (!s) {
		httpd_reply_error(r, 503, "out of memory");
		return;
	}
	s->r = r;
	s->loop = &a->loop;
	s->follow = q->follow;
	s->sse = sse;
	s->alive_due = q->greet;
	s->f.offset = s->f.sure = q->offset;
	s->f.bounded = q->max > 0;
	s->stop = q->max && q->max < UINT64_MAX - q->offset ? q->offset + q->max : UINT64_MAX;
	s->f.wake = on_wake;
	s->alive.fn = on_alive;
	s->alive.arg = s;
	memcpy(s->id, e->id, sizeof(s->id));
	if (q->follow)
		exec_follow(e, &s->f);
	httpd_on_end(r, on_end, s);
	httpd_on_hup(r, on_hup, s);
	httpd_set_timeout(r, LIMIT_FOLLOW_S);
	if (sse)
		ignore_result(httpd_add_header(r, "Cache-Control", "no-cache"));
	httpd_reply_stream(r, status,
			   sse ? "text/event-stream" : "application/vnd.docker.multiplexed-stream",
			   -1, pull, s);
}

void route_exec_output(struct httpd_req *r)
{
	struct exec *e = exec_find(httpd_segment(r, 0));
	struct output_query q;

	if (!e)
		httpd_reply_error(r, 404, "no such exec: %s", httpd_segment(r, 0));
	else if (!output_query(r, &q))
		return;
	else if (q.offset > e->log.end)
		httpd_reply_error(r, 416, "offset %llu is behind the end, which is %llu",
				  (unsigned long long)q.offset, (unsigned long long)e->log.end);
	else
		output_begin(r, 200, e, &q);
}
