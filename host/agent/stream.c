/* SPDX-License-Identifier: Apache-2.0 */
#include "host/agent/stream.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "host/agent/ask.h"
#include "host/agent/http.h"
#include "host/backend.h"
#include "lib/ring.h"

/*
 * Between the caller, who blocks, and libcurl, which calls back, is a ring. Whoever finds it full or empty waits: the caller by running
 * the loop, libcurl by being paused until the caller has made room or bytes.
 */

struct stream {
	struct stream_spec spec;
	struct loop loop;
	struct http *http;
	struct http_call *call; /* NULL when it is over */
	struct ring ring;
	bool paused;   /* libcurl waits for us */
	bool body_end; /* upload: all is in the ring */
	bool over;
	int status;	 /* of the answer; 0 = none that is whole */
	struct buf body; /* of an answer that is not streamed */
	struct err err;
	int64_t moved_ns;
};

/* --- libcurl's side --- */
static ssize_t on_read(void *arg, void *p, size_t n)
{
	struct stream *s = arg;
	size_t k = ring_get(&s->ring, p, n);

	s->moved_ns = loop_now();
	if (k || s->body_end)
		return (ssize_t)k;
	s->paused = true;
	return -EAGAIN;
}

static int on_data(void *arg, const void *p, size_t n)
{
	struct stream *s = arg;

	s->moved_ns = loop_now();
	if (ring_room(&s->ring) < n) {
		s->paused = true;
		return -EAGAIN;
	}
	return ring_put(&s->ring, p, n);
}

static void on_done(void *arg, int status, const struct buf *body, const struct err *e)
{
	struct stream *s = arg;

	s->call = NULL;
	s->over = true;
	s->status = status;
	s->err = *e;
	if (status && body->len && buf_add(&s->body, body->p, body->len) < 0)
		s->status = 0;
}

/* --- the caller's side --- */
int stream_open(const struct stream_spec *spec, struct stream **ret, struct err *e)
{
	struct stream *s = calloc(1, sizeof(*s));
	struct http_spec h = {
		.method = spec->method, .path = spec->path, .done = on_done, .arg = s
	};
	int r;

	if (!s)
		return err_set(e, ERR_INTERNAL, ENOMEM, "asking the agent");
	s->spec = *spec;
	ring_init(&s->ring, STREAM_BUFFER);
	buf_init(&s->body, HTTP_REPLY_MAX);
	s->moved_ns = loop_now();
	if (spec->upload)
		h.read = on_read;
	else
		h.data = on_data;
	r = loop_init(&s->loop);
	if (r < 0) {
		free(s);
		return err_set(e, ERR_INTERNAL, -r, "asking the agent");
	}
	r = http_open(&s->loop, spec->backend, spec->id, &s->http, e);
	if (r == 0)
		r = http_start(s->http, &h, &s->call, e);
	if (r < 0) {
		stream_free(s);
		return r;
	}
	*ret = s;
	return 0;
}

void stream_free(struct stream *s)
{
	if (!s)
		return;
	http_free(s->http);
	ring_done(&s->ring);
	buf_done(&s->body);
	loop_done(&s->loop);
	free(s);
}

static void resume(struct stream *s)
{
	if (!s->paused || !s->call)
		return;
	s->paused = false;
	http_resume(s->call);
}

/* One turn of the loop. 0, or a negative errno, which is remembered. */
static int wait_for_it(struct stream *s)
{
	int r = loop_once(&s->loop, STREAM_TURN_MS);

	if (s->spec.turn)
		s->spec.turn(s->spec.turn_arg);
	if (r == 0 && s->spec.cancel && *s->spec.cancel)
		r = -EINTR;
	else if (r == 0 && !s->over && loop_now() - s->moved_ns > STREAM_SILENT_NS)
		r = -ETIMEDOUT;
	if (r == 0)
		return 0;
	(void)err_set(&s->err, r == -ETIMEDOUT ? ERR_TIMEOUT : ERR_UNAVAILABLE, 0, "%s",
		      r == -EINTR ? "interrupted" : "the agent in the sandbox has gone silent");
	s->err.errnum = -r;
	s->status = 0;
	s->over = true;
	http_cancel(s->call);
	s->call = NULL;
	return r;
}

int stream_write(struct stream *s, const void *p, size_t n)
{
	const char *c = p;

	while (n) {
		size_t k = ring_room(&s->ring);
		int r;

		if (s->over)
			return s->err.errnum == EINTR ? -EINTR : -EPIPE;
		k = k < n ? k : n;
		r = k ? ring_put(&s->ring, c, k) : wait_for_it(s);
		if (r < 0)
			return r;
		if (k)
			resume(s);
		c += k;
		n -= k;
	}
	return 0;
}

static void on_readable(struct loop_watch *w, uint32_t events)
{
	(void)w;
	(void)events; /* it has ended the wait */
}

int stream_turn(struct stream *s, int fd)
{
	struct loop_watch w = LOOP_WATCH_INIT;
	int r;

	if (s->over)
		return s->err.errnum == EINTR ? -EINTR : -EPIPE;
	w.fn = on_readable;
	ignore_result(loop_add(&s->loop, &w, fd, EPOLLIN)); /* else it is looked at soon */
	r = wait_for_it(s);
	loop_del(&w);
	return r;
}

ssize_t stream_read(struct stream *s, void *p, size_t n)
{
	for (;;) {
		size_t k = ring_get(&s->ring, p, n);
		int r;

		if (k) {
			if (s->ring.len < STREAM_BUFFER / 2)
				resume(s);
			return (ssize_t)k;
		}
		if (s->over)
			return s->status == 200	   ? 0
			       : s->status	   ? -EPROTO
			       : s->err.errnum > 0 ? -s->err.errnum
						   : -EIO;
		resume(s);
		r = wait_for_it(s);
		if (r < 0)
			return r;
	}
}

bool stream_failed(const struct stream *s)
{
	return s->over && s->status != 200;
}

int stream_end(struct stream *s, cJSON **ret_json, struct err *e)
{
	int r = 0;

	if (ret_json)
		*ret_json = NULL;
	s->body_end = true;
	while (!s->over && r == 0) {
		ring_drop(&s->ring, s->spec.upload ? 0 : s->ring.len);
		resume(s);
		r = wait_for_it(s);
	}
	if (s->status == 0) {
		*e = s->err;
		return e->errnum > 0 ? -e->errnum : -EIO;
	}
	if (s->status == 200 && !s->spec.upload)
		return 0;
	return ask_take(s->status, &s->body, ret_json, e);
}
