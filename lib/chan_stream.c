/* SPDX-License-Identifier: Apache-2.0 */
#include "chan_priv.h"

#include <errno.h>
#include <stdlib.h>

/*
 * One stream of a channel: its two queues, and the order in which its user is told things: connect
 * or opened, data, the end of data, writable, closed.
 *
 * A stream that was cut with an error is told at once and what it still had is dropped, unless the
 * peer had sent its last byte before: then all of that is handed over first, because a server that
 * answers early and goes away has answered.
 */

struct chan_stream *chan_stream_new(struct chan *c, int32_t id)
{
	struct chan_stream *s;

	if (c->stream_count >= CHAN_STREAMS_MAX)
		return NULL;
	s = calloc(1, sizeof(*s));
	if (!s)
		return NULL;
	s->c = c;
	s->id = id;
	ring_init(&s->rx, CHAN_WINDOW);
	ring_init(&s->tx, CHAN_TX_CAP);
	s->next = c->streams;
	s->pprev = &c->streams;
	if (s->next)
		s->next->pprev = &s->next;
	c->streams = s;
	c->stream_count++;
	return s;
}

/* At most CHAN_STREAMS_MAX, and asked once for a frame of up to 16 KiB. */
struct chan_stream *chan_stream_find(const struct chan *c, int32_t id)
{
	struct chan_stream *s = c->streams;

	while (s && (s->id != id || s->dropped))
		s = s->next;
	return s;
}

static void unready(struct chan_stream *s)
{
	struct chan *c = s->c;
	struct chan_stream **at = &c->ready;

	if (!s->ready)
		return;
	while (*at && *at != s)
		at = &(*at)->ready_next;
	if (*at)
		*at = s->ready_next;
	if (c->ready_tail == &s->ready_next)
		c->ready_tail = at;
	s->ready = false;
}

void chan_stream_free(struct chan_stream *s)
{
	unready(s);
	*s->pprev = s->next;
	if (s->next)
		s->next->pprev = s->pprev;
	s->c->stream_count--;
	ring_done(&s->rx);
	ring_done(&s->tx);
	free(s);
}

void chan_stream_mark(struct chan_stream *s, unsigned events)
{
	struct chan *c = s->c;

	s->events |= events;
	if (s->ready)
		return;
	s->ready = true;
	s->ready_next = NULL;
	*c->ready_tail = s;
	c->ready_tail = &s->ready_next;
}

void chan_stream_closed(struct chan_stream *s, int error)
{
	s->closed = true;
	s->error = error;
	chan_stream_mark(s, 0);
}

/* Tells the peer that N more bytes may come. */
static void consumed(struct chan_stream *s, size_t n)
{
	if (n && !s->closed && s->c->h2 && nghttp2_session_consume_stream(s->c->h2, s->id, n) != 0)
		s->c->broken = "out of memory";
}

static bool gone(const struct chan_stream *s)
{
	return s->dropped || s->c->doomed;
}

static void run_data(struct chan_stream *s)
{
	const char *p;
	size_t n;

	while (!gone(s) && !s->paused && (n = ring_peek(&s->rx, &p)) > 0) {
		size_t took = s->ops->data(s->arg, p, n);

		if (gone(s))
			return;
		s->paused = took < n;
		ring_drop(&s->rx, took);
		consumed(s, took);
	}
	if (!gone(s) && s->rx.len == 0 && s->rx_eof && !s->eof_told) {
		s->eof_told = true;
		(void)s->ops->data(s->arg, "", 0);
	}
}

/* All callbacks that are due of S, which is freed when that was the last. */
static void run_stream(struct chan_stream *s)
{
	struct chan *c = s->c;
	unsigned events = s->events;

	s->events = 0;
	s->running = true;
	if (events & EV_CONNECT)
		c->ops->connect(c->arg, s, s->port);
	if (s->ops && !gone(s) && (events & EV_OPENED) && s->ops->opened)
		s->ops->opened(s->arg);
	if (s->ops && !gone(s))
		run_data(s);
	if (s->ops && !gone(s) && (events & EV_WRITABLE) && !s->closed && s->ops->writable)
		s->ops->writable(s->arg);
	if (s->ops && !gone(s) && s->closed && (s->rx.len == 0 || (s->error && !s->rx_eof))) {
		s->dropped = true;
		s->ops->closed(s->arg, s->error);
	}
	s->running = false;
	if (s->dropped)
		chan_stream_free(s);
}

/* Takes it off the list, which is not empty. */
static struct chan_stream *first_ready(struct chan *c)
{
	struct chan_stream *s = c->ready;

	c->ready = s->ready_next;
	if (!c->ready)
		c->ready_tail = &c->ready;
	s->ready = false;
	return s;
}

void chan_streams_run(struct chan *c)
{
	while (c->ready && !c->doomed)
		run_stream(first_ready(c));
}

void chan_streams_end(struct chan *c, int error)
{
	for (struct chan_stream *s = c->streams; s; s = s->next) {
		if (s->dropped)
			continue;
		if (!s->closed || s->rx.len || !s->eof_told)
			s->error = s->error ? s->error : error;
		s->closed = true;
		if (s->ops) { /* an unanswered CONNECT waits for its answer */
			ring_done(&s->rx);
			s->rx_eof = s->eof_told;
			chan_stream_mark(s, 0);
		} else if (s->events & EV_CONNECT) { /* nobody has heard of it yet */
			s->dropped = true;
			chan_stream_mark(s, 0);
			s->events = 0;
		}
		s->id = -1; /* the next session counts from 1 again */
	}
	chan_streams_run(c);
}

/* --- for the user --- */
size_t chan_room(struct chan_stream *s)
{
	size_t room = s->closed || s->tx_end ? 0 : ring_room(&s->tx);

	if (room == 0)
		s->want_write = true;
	return room;
}

bool chan_drained(const struct chan_stream *s)
{
	return s->tx.len == 0 && s->tx_end == s->tx_end_out;
}

static void resume_sending(struct chan_stream *s)
{
	if (s->deferred && !s->closed) {
		s->deferred = false;
		if (nghttp2_is_fatal(nghttp2_session_resume_data(s->c->h2, s->id)))
			s->c->broken = "out of memory";
	}
	chan_kick(s->c);
}

size_t chan_write(struct chan_stream *s, const void *p, size_t n)
{
	size_t take = chan_room(s);

	if (n <= take)
		take = n;
	else
		s->want_write = true;
	if (take == 0)
		return 0;
	if (ring_put(&s->tx, p, take) <
	    0) { /* no memory: nobody would wake the writer, so the stream ends */
		if (nghttp2_is_fatal(nghttp2_submit_rst_stream(s->c->h2, NGHTTP2_FLAG_NONE, s->id,
							       NGHTTP2_INTERNAL_ERROR)))
			s->c->broken = "out of memory";
		take = 0;
	}
	resume_sending(s);
	return take;
}

void chan_write_end(struct chan_stream *s)
{
	if (s->tx_end || s->closed)
		return;
	s->tx_end = true;
	resume_sending(s);
}

void chan_resume(struct chan_stream *s)
{
	if (!s->paused)
		return;
	s->paused = false;
	chan_stream_mark(s, 0);
	chan_kick(s->c);
}

void chan_reset(struct chan_stream *s)
{
	struct chan *c = s->c;

	if (s->dropped)
		return;
	if (!s->closed && c->h2 &&
	    nghttp2_is_fatal(
		    nghttp2_submit_rst_stream(c->h2, NGHTTP2_FLAG_NONE, s->id, NGHTTP2_CANCEL)))
		c->broken = "out of memory";
	s->dropped = true;
	chan_kick(c);
	if (!s->running)
		chan_stream_free(s);
}
