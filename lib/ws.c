/* SPDX-License-Identifier: Apache-2.0 */
#include "ws.h"

#include <errno.h>
#include <microhttpd.h>
#include <microhttpd_ws.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "str.h"

/*
 * Input. At most RECV bytes are held undecoded; while there are messages that nobody takes (paused) or
 * no room for the pongs that they may ask for, nothing is read and TCP holds the client up. The library
 * gives every frame back by itself (WANT_FRAGMENTS), and we join them, so that it is known here where a
 * frame begins. That is needed for close frames: when one arrives in pieces, libmicrohttpd 0.9.75 checks
 * its text with a length that goes below zero and reads beyond its memory. So a close frame is held back
 * until it is whole; its size stands in its second byte, and the library refuses all other shapes at that
 * byte. The library does not see that a text ends in the middle of a character; whole texts are checked
 * here as well.
 *
 * Output. Frames wait in a ring of queue_max bytes. RESERVE of them are for control frames, so that a
 * pong or the close frame always has room.
 *
 * The end. Whoever begins it, a close frame is sent and then our half of the connection closed, and what
 * comes is dropped until the client has closed or CLOSE_NS are over: a socket that is closed with unread
 * bytes would send a reset, and the client might never see the code. closed() is called by the timer, never
 * from inside a call of the owner's.
 */

#define RECV	 (16U << 10)
#define ROUNDS	 4    /* reads of one turn of the loop */
#define RESERVE	 512U /* of the queue, for control frames */
#define HEADER	 10U  /* of an unmasked frame, at most */
#define CLOSE_NS (2 * 1000000000LL)

static void on_event(struct loop_watch *w, uint32_t events);

static void over(struct ws *w, unsigned code)
{
	if (w->state == WS_OVER)
		return;
	if (w->code == 0)
		w->code = code;
	w->state = WS_OVER;
	loop_del(&w->watch);
	loop_arm(w->loop, &w->timer, 0);
}

/* --- output --- */
static size_t queue_room(const struct ws *w)
{
	size_t room = ring_room(&w->queue);

	return room > RESERVE ? room - RESERVE : 0;
}

static void flush(struct ws *w)
{
	const char *p;
	size_t n;

	while (w->state != WS_OVER && (n = ring_peek(&w->queue, &p)) > 0) {
		ssize_t k = send(w->watch.fd, p, n, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (k > 0) {
			ring_drop(&w->queue, (size_t)k);
			w->moved = loop_now();
		} else if (k < 0 && errno == EAGAIN) {
			return;
		} else if (k == 0 || errno != EINTR) {
			over(w, WS_BROKEN);
		}
	}
	if (w->state == WS_CLOSING && !w->shut) {
		w->shut = true;
		(void)shutdown(w->watch.fd, SHUT_WR);
	}
}

/* Decoding one frame queues one control frame at most. */
static bool may_decode(const struct ws *w)
{
	return w->state == WS_OPEN && !w->paused && ring_room(&w->queue) >= RESERVE;
}

static bool may_read(const struct ws *w)
{
	return w->state == WS_CLOSING || (may_decode(w) && w->in.len < RECV);
}

/* Sends what goes at once, and watches for what can matter next. */
static void settle(struct ws *w)
{
	flush(w);
	if (w->state == WS_OVER)
		return;
	if (loop_set(&w->watch, (may_read(w) ? EPOLLIN : 0U) | (w->queue.len ? EPOLLOUT : 0U)) < 0)
		over(w, WS_BROKEN);
}

/* Takes FRAME, which the library has made, or the failure to make it. */
static int put_frame(struct ws *w, int status, char *frame, size_t n)
{
	int r = -ENOMEM;

	if (status == MHD_WEBSOCKET_STATUS_UTF8_ENCODING_ERROR)
		r = -EINVAL;
	else if (status == MHD_WEBSOCKET_STATUS_OK)
		r = ring_put(&w->queue, frame, n);
	if (r == 0 && w->queue.len == n)
		w->moved = loop_now(); /* it was empty: the clock of a stall begins */
	(void)MHD_websocket_free(w->frames, frame);
	return r;
}

size_t ws_room(struct ws *w, size_t wanted)
{
	size_t room = queue_room(w);

	if (w->state != WS_OPEN)
		return 0;
	room = room > HEADER ? room - HEADER : 0;
	if (room < wanted)
		w->wants_room = true;
	return room;
}

int ws_send(struct ws *w, bool text, const void *p, size_t n)
{
	char *frame = NULL;
	size_t len = 0;
	int step, r;

	if (w->state != WS_OPEN)
		return -EPIPE;
	if (n + HEADER > queue_room(w))
		return -ENOSPC;
	if (text)
		r = MHD_websocket_encode_text(w->frames, p, n, MHD_WEBSOCKET_FRAGMENTATION_NONE,
					      &frame, &len, &step);
	else
		r = MHD_websocket_encode_binary(w->frames, p, n, MHD_WEBSOCKET_FRAGMENTATION_NONE,
						&frame, &len);
	r = put_frame(w, r, frame, len);
	if (r == 0)
		settle(w);
	return r;
}

static void begin_close(struct ws *w, unsigned send_code, const char *reason)
{
	char *frame = NULL;
	size_t len = 0;
	int r;

	r = MHD_websocket_encode_close(w->frames, (unsigned short)send_code, reason,
				       reason ? strlen(reason) : 0, &frame, &len);
	if (put_frame(w, r, frame, len) < 0) {
		over(w, WS_BROKEN);
		return;
	}
	w->state = WS_CLOSING;
	loop_arm(w->loop, &w->timer, CLOSE_NS);
}

void ws_close(struct ws *w, unsigned code, const char *reason)
{
	if (w->state != WS_OPEN)
		return;
	w->code = code;
	begin_close(w, code, reason);
	settle(w);
}

/* --- input --- */
static void fail(struct ws *w, unsigned code, const char *reason)
{
	if (w->state != WS_OPEN)
		return;
	w->code = code;
	begin_close(w, code, reason);
}

/* Codes that may stand in a close frame: RFC 6455 §7.4, IANA's 1012 to 1014, libraries and
 * applications. */
static bool code_is_valid(unsigned c)
{
	return (c >= 1000 && c <= 1003) || (c >= 1007 && c <= 1014) || (c >= 3000 && c <= 4999);
}

static void on_close_frame(struct ws *w, const char *p, size_t n)
{
	const char *reason = NULL;
	unsigned short code = 0;
	size_t len = 0;

	if (MHD_websocket_split_close_reason(p, n, &code, &reason, &len) !=
		    MHD_WEBSOCKET_STATUS_OK ||
	    (n && !code_is_valid(code)))
		fail(w, WS_PROTOCOL, "invalid close frame");
	else if (len && !str_is_utf8(reason, len))
		fail(w, WS_NOT_UTF8, "close reason is not UTF-8");
	else if (w->state == WS_OPEN) {
		w->code = n ? code : WS_NO_CODE;
		begin_close(w, code, NULL);
	}
}

static void deliver(struct ws *w, bool text, const char *p, size_t n)
{
	if (n == 0)
		p = "";
	if (text && !str_is_utf8(p, n))
		fail(w, WS_NOT_UTF8, "text is not UTF-8");
	else
		w->c->message(w->c->arg, text, p, n);
}

static void on_fragment(struct ws *w, int status, const char *p, size_t n)
{
	int r = buf_add(&w->part, n ? p : "", n);

	if (r < 0) {
		fail(w, r == -ENOSPC ? WS_TOO_BIG : WS_INTERNAL, "message too big");
		return;
	}
	if (!(status & 0x40)) /* not the last one */
		return;
	deliver(w, (status & 0xf) == MHD_WEBSOCKET_STATUS_TEXT_FRAME, w->part.p, w->part.len);
	buf_done(&w->part);
}

static void on_ping(struct ws *w, const char *p, size_t n)
{
	char *frame = NULL;
	size_t len = 0;
	int r = MHD_websocket_encode_pong(w->frames, p, n, &frame, &len);

	if (put_frame(w, r, frame, len) < 0)
		over(w, WS_BROKEN);
}

static void on_frame(struct ws *w, int status, const char *p, size_t n)
{
	switch (status) {
	case MHD_WEBSOCKET_STATUS_TEXT_FRAME:
	case MHD_WEBSOCKET_STATUS_BINARY_FRAME:
		deliver(w, status == MHD_WEBSOCKET_STATUS_TEXT_FRAME, p, n);
		return;
	case MHD_WEBSOCKET_STATUS_PING_FRAME:
		on_ping(w, p, n);
		return;
	case MHD_WEBSOCKET_STATUS_PONG_FRAME:
		return; /* that something came is all it says */
	case MHD_WEBSOCKET_STATUS_CLOSE_FRAME:
		on_close_frame(w, p, n);
		return;
	case MHD_WEBSOCKET_STATUS_MAXIMUM_SIZE_EXCEEDED:
		fail(w, WS_TOO_BIG, "message too big");
		return;
	case MHD_WEBSOCKET_STATUS_UTF8_ENCODING_ERROR:
		fail(w, WS_NOT_UTF8, "text is not UTF-8");
		return;
	case MHD_WEBSOCKET_STATUS_MEMORY_ERROR:
		fail(w, WS_INTERNAL, "out of memory");
		return;
	default:
		if (status > 0)
			on_fragment(w, status, p, n);
		else
			fail(w, WS_PROTOCOL, "invalid frame");
	}
}

/* The bytes at P begin a close frame that has not come whole. See the theory. */
static bool is_part_of_close(const char *p, size_t n)
{
	if ((p[0] & 0x0f) != 0x08)
		return false;
	return n < 2 || (n < 6U + (p[1] & 0x7fU) && (p[1] & 0x80) && (p[1] & 0x7f) <= 125);
}

static void decode(struct ws *w)
{
	size_t at = 0;

	while (at < w->in.len && may_decode(w)) {
		char *payload = NULL;
		size_t used = 0, n = 0;
		int status;

		if (w->frame_start && is_part_of_close(w->in.p + at, w->in.len - at))
			break;
		status = MHD_websocket_decode(w->frames, w->in.p + at, w->in.len - at, &used,
					      &payload, &n);
		at += used;
		if (status == MHD_WEBSOCKET_STATUS_OK && used == 0)
			status = MHD_WEBSOCKET_STATUS_STREAM_BROKEN; /* cannot be */
		w->frame_start = status != MHD_WEBSOCKET_STATUS_OK;
		if (status != MHD_WEBSOCKET_STATUS_OK)
			on_frame(w, status, payload, n);
		(void)MHD_websocket_free(w->frames, payload);
	}
	buf_drop(&w->in, at);
}

/* Reads once. False when there is nothing more for now. */
static bool receive(struct ws *w)
{
	ssize_t k;

	decode(w);
	if (w->state == WS_CLOSING)
		buf_clear(&w->in); /* nobody looks at it */
	if (!may_read(w))
		return false;
	if (buf_reserve(&w->in, RECV - w->in.len) < 0) {
		over(w, WS_BROKEN);
		return false;
	}
	k = recv(w->watch.fd, w->in.p + w->in.len, RECV - w->in.len, MSG_DONTWAIT);
	if (k > 0) {
		w->in.len += (size_t)k;
		w->heard = loop_now();
		decode(w);
		return true;
	}
	if (k == 0 || (errno != EAGAIN && errno != EINTR))
		over(w, WS_BROKEN);
	return false;
}

static void tell_room(struct ws *w)
{
	if (!w->wants_room || w->state != WS_OPEN || w->queue.len > w->c->queue_max / 2)
		return;
	w->wants_room = false;
	w->c->writable(w->c->arg);
}

static void on_event(struct loop_watch *watch, uint32_t events)
{
	struct ws *w = watch->arg;

	if (events & EPOLLOUT)
		flush(w);
	decode(w);
	if ((events & (EPOLLHUP | EPOLLERR)) && !may_read(w))
		over(w, WS_BROKEN);
	for (int i = 0; i < ROUNDS && may_read(w) && (events & ~(uint32_t)EPOLLOUT); i++)
		if (!receive(w))
			break;
	tell_room(w);
	settle(w);
}

void ws_pause(struct ws *w, bool on)
{
	if (w->paused == on)
		return;
	w->paused = on;
	if (on || w->state != WS_OPEN)
		return;
	w->heard = loop_now();		 /* what it said meanwhile waits in the socket */
	loop_arm(w->loop, &w->timer, 0); /* decodes what is left, from the loop */
}

/* --- time --- */
static void send_ping(struct ws *w)
{
	char *frame = NULL;
	size_t len = 0;
	int r = MHD_websocket_encode_ping(w->frames, NULL, 0, &frame, &len);

	ignore_result(put_frame(w, r, frame, len)); /* the stall is noticed without it */
}

static bool stalled(const struct ws *w)
{
	int64_t since = loop_now() - w->c->stall_ns;

	return (!w->paused && w->heard <= since) || (w->queue.len && w->moved <= since);
}

static void tell_end(struct ws *w)
{
	const struct ws_config *c = w->c;
	unsigned code = w->code;

	ws_stop(w);
	c->closed(c->arg, code);
}

static void on_timer(struct loop_timer *t)
{
	struct ws *w = t->arg;

	if (w->state == WS_OVER) {
		tell_end(w);
		return;
	}
	if (w->state == WS_CLOSING || stalled(w)) {
		over(w, WS_BROKEN);
		return;
	}
	loop_arm(w->loop, t, w->c->ping_ns);
	decode(w);
	if (w->state == WS_OPEN && w->queue.len == 0 && loop_now() - w->heard >= w->c->ping_ns)
		send_ping(w);
	tell_room(w);
	settle(w);
}

/* --- start and stop --- */
int ws_start(struct ws *w, struct loop *l, int fd, const struct ws_config *c, const char *p,
	     size_t n)
{
	int r;

	*w = (struct ws){ .c = c, .loop = l, .state = WS_OPEN, .frame_start = true };
	w->watch = (struct loop_watch)LOOP_WATCH_INIT;
	w->watch.fn = on_event;
	w->watch.arg = w->timer.arg = w;
	w->timer.fn = on_timer;
	w->heard = w->moved = loop_now();
	ring_init(&w->queue, c->queue_max);
	buf_init(&w->in, n > RECV ? n : RECV);
	buf_init(&w->part, c->message_max);
	r = buf_add(&w->in, n ? p : "", n);
	if (r == 0 &&
	    MHD_websocket_stream_init(&w->frames,
				      MHD_WEBSOCKET_FLAG_SERVER | MHD_WEBSOCKET_FLAG_WANT_FRAGMENTS,
				      c->message_max) != MHD_WEBSOCKET_STATUS_OK)
		r = -ENOMEM;
	if (r == 0)
		r = loop_add(l, &w->watch, fd, EPOLLIN);
	if (r < 0) {
		ws_stop(w);
		return r;
	}
	loop_arm(l, &w->timer, n ? 0 : c->ping_ns);
	return 0;
}

void ws_stop(struct ws *w)
{
	loop_del(&w->watch);
	loop_disarm(&w->timer);
	if (w->frames)
		(void)MHD_websocket_stream_free(w->frames);
	w->frames = NULL;
	ring_done(&w->queue);
	buf_done(&w->in);
	buf_done(&w->part);
	w->state = WS_OVER;
}
