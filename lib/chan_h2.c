/* SPDX-License-Identifier: Apache-2.0 */
#include "chan_priv.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "str.h"

/*
 * The HTTP/2 session of a channel: nghttp2's callbacks. They take notes in the streams and never
 * call the user.
 *
 * Flow control: the window of a stream (CHAN_WINDOW) is opened again only when its user has
 * consumed the bytes, which bounds what is kept for it. The session's window is opened as soon as
 * bytes arrive: were it bound to consumption too, a few streams that nobody reads would hold up all
 * others. What a peer can make us keep is so at most CHAN_WINDOW for each stream that the host has
 * opened.
 */

static const char authority_host[] = "127.0.0.1:";

/* errno <-> RFC 9113 §7 error codes, for a CONNECT that did not succeed (§8.5) and for a stream
 * that was cut. */
static const struct {
	int errnum;
	uint32_t code;
} codes[] = {
	{ ECONNREFUSED, NGHTTP2_CONNECT_ERROR }, { EMFILE, NGHTTP2_REFUSED_STREAM },
	{ ENOMEM, NGHTTP2_ENHANCE_YOUR_CALM },	 { ETIMEDOUT, NGHTTP2_SETTINGS_TIMEOUT },
	{ EINVAL, NGHTTP2_PROTOCOL_ERROR },	 { EIO, NGHTTP2_INTERNAL_ERROR },
};

static int code_to_error(uint32_t code, bool opened)
{
	if (opened)
		return code == NGHTTP2_NO_ERROR ? 0 : -ECONNRESET;
	for (size_t i = 0; i < ARRAY_LEN(codes); i++)
		if (codes[i].code == code)
			return -codes[i].errnum;
	return -ECONNRESET;
}

static uint32_t errnum_to_code(int errnum)
{
	for (size_t i = 0; i < ARRAY_LEN(codes); i++)
		if (codes[i].errnum == (errnum < 0 ? -errnum : errnum))
			return codes[i].code;
	return NGHTTP2_INTERNAL_ERROR;
}

/* --- heads --- */
static int on_begin_headers(nghttp2_session *h2, const nghttp2_frame *frame, void *arg)
{
	struct chan *c = arg;

	(void)h2;
	if (frame->hd.type != NGHTTP2_HEADERS || frame->headers.cat != NGHTTP2_HCAT_REQUEST)
		return 0;
	if (c->quiescing || !chan_stream_new(c, frame->hd.stream_id))
		return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE; /* answered by RST_STREAM */
	return 0;
}

static bool field_is(const uint8_t *p, size_t n, const char *want)
{
	return n == strlen(want) && !memcmp(p, want, n);
}

static void request_field(struct chan_stream *s, const uint8_t *name, size_t name_len,
			  const uint8_t *value, size_t value_len)
{
	const size_t host = sizeof(authority_host) - 1;
	char digits[6];
	uint64_t port;

	if (field_is(name, name_len, ":method")) {
		s->head_connect = field_is(value, value_len, "CONNECT");
	} else if (field_is(name, name_len, ":authority") && value_len > host &&
		   value_len < host + sizeof(digits) && !memcmp(value, authority_host, host)) {
		memcpy(digits, value + host, value_len - host);
		digits[value_len - host] = '\0';
		if (str_to_u64(digits, 1, 65535, &port) == 0)
			s->port = (uint16_t)port;
	} else {
		s->head_bad = true;
	}
}

static int on_header(nghttp2_session *h2, const nghttp2_frame *frame, const uint8_t *name,
		     size_t name_len, const uint8_t *value, size_t value_len, uint8_t flags,
		     void *arg)
{
	struct chan *c = arg;
	struct chan_stream *s = chan_stream_find(c, frame->hd.stream_id);

	(void)h2;
	(void)flags;
	if (!s || frame->hd.type != NGHTTP2_HEADERS)
		return 0;
	if (c->side == CHAN_GUEST && frame->headers.cat == NGHTTP2_HCAT_REQUEST)
		request_field(s, name, name_len, value, value_len);
	else if (c->side == CHAN_HOST && field_is(name, name_len, ":status"))
		s->status = field_is(value, value_len, "200") ? 200 : -1;
	return 0;
}

static int reset_stream(struct chan *c, int32_t id, uint32_t code)
{
	int r = nghttp2_submit_rst_stream(c->h2, NGHTTP2_FLAG_NONE, id, code);

	return nghttp2_is_fatal(r) ? NGHTTP2_ERR_CALLBACK_FAILURE : 0;
}

static int head_complete(struct chan *c, const nghttp2_frame *frame)
{
	struct chan_stream *s = chan_stream_find(c, frame->hd.stream_id);

	if (!s)
		return 0;
	if (frame->headers.cat == NGHTTP2_HCAT_REQUEST) {
		if (!s->head_bad && s->head_connect && s->port) {
			chan_stream_mark(s, EV_CONNECT);
			return 0;
		}
		chan_stream_free(s);
		return reset_stream(c, frame->hd.stream_id, NGHTTP2_PROTOCOL_ERROR);
	}
	if (frame->headers.cat != NGHTTP2_HCAT_RESPONSE)
		return 0; /* trailers: nothing of ours */
	if (s->status == 200)
		chan_stream_mark(s, EV_OPENED);
	else
		return reset_stream(c, frame->hd.stream_id, NGHTTP2_PROTOCOL_ERROR);
	return 0;
}

/* --- frames --- */
/*
 * To end a session in order the host sends a PING with this text, and nothing after it; the guest answers with a
 * GOAWAY, and nothing after that. A GOAWAY of the host could not be first: an nghttp2 that has sent one and has no
 * stream open reads nothing any more (nghttp2_session_want_read), not even the answer.
 */
static const uint8_t LAST[8] = { 'q', 'u', 'i', 'e', 's', 'c', 'e', '\n' };

static bool is_last(const nghttp2_frame *frame)
{
	return frame->hd.type == NGHTTP2_PING && !(frame->hd.flags & NGHTTP2_FLAG_ACK) &&
	       memcmp(frame->ping.opaque_data, LAST, sizeof(LAST)) == 0;
}

static int on_frame_recv(nghttp2_session *h2, const nghttp2_frame *frame, void *arg)
{
	struct chan *c = arg;
	int r = 0;

	(void)h2;
	if (frame->hd.type == NGHTTP2_HEADERS)
		r = head_complete(c, frame);
	if ((frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA) &&
	    (frame->hd.flags & NGHTTP2_FLAG_END_STREAM)) {
		struct chan_stream *s = chan_stream_find(c, frame->hd.stream_id);

		if (s) {
			s->rx_eof = true;
			chan_stream_mark(s, 0);
		}
	}
	if (is_last(frame) && c->side == CHAN_GUEST && !c->quiescing) {
		if (nghttp2_submit_goaway(c->h2, NGHTTP2_FLAG_NONE, 0, NGHTTP2_NO_ERROR, NULL, 0) !=
		    0)
			return NGHTTP2_ERR_CALLBACK_FAILURE;
		c->quiescing = c->last_seen = true;
	}
	if (frame->hd.type != NGHTTP2_GOAWAY)
		return r;
	c->last_seen = true;
	if (frame->goaway.error_code != NGHTTP2_NO_ERROR || c->side == CHAN_GUEST || !c->quiescing)
		c->broken = "the peer ended the session";
	return r;
}

static int on_data(nghttp2_session *h2, uint8_t flags, int32_t id, const uint8_t *p, size_t n,
		   void *arg)
{
	struct chan *c = arg;
	struct chan_stream *s = chan_stream_find(c, id);

	(void)flags;
	if (nghttp2_session_consume_connection(h2, n) != 0)
		return NGHTTP2_ERR_CALLBACK_FAILURE;
	if (!s || s->closed)
		return 0;
	if (ring_put(&s->rx, p, n) < 0)
		return reset_stream(c, id, NGHTTP2_INTERNAL_ERROR);
	chan_stream_mark(s, 0);
	return 0;
}

static int on_stream_close(nghttp2_session *h2, int32_t id, uint32_t code, void *arg)
{
	struct chan *c = arg;
	struct chan_stream *s = chan_stream_find(c, id);

	(void)h2;
	if (s)
		chan_stream_closed(s,
				   code_to_error(code, c->side == CHAN_GUEST || s->status == 200));
	return 0;
}

/* The last frame of a quiesce, or a GOAWAY that is nghttp2's verdict on the peer. */
static int on_frame_send(nghttp2_session *h2, const nghttp2_frame *frame, void *arg)
{
	struct chan *c = arg;

	(void)h2;
	if (c->side == CHAN_HOST && is_last(frame))
		c->last_sent = true;
	if (frame->hd.type != NGHTTP2_GOAWAY)
		return 0;
	if (frame->goaway.error_code == NGHTTP2_NO_ERROR)
		c->last_sent = true;
	else
		c->broken = "what came over the channel is not HTTP/2";
	return 0;
}

static ssize_t on_read(nghttp2_session *h2, int32_t id, uint8_t *p, size_t max, uint32_t *flags,
		       nghttp2_data_source *source, void *arg)
{
	struct chan *c = arg;
	struct chan_stream *s = chan_stream_find(c, id);
	size_t n;

	(void)h2;
	(void)source;
	if (!s)
		return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE; /* reset meanwhile */
	n = ring_get(&s->tx, p, max);
	if (s->want_write && s->tx.len <= CHAN_TX_CAP / 2) {
		s->want_write = false;
		chan_stream_mark(s, EV_WRITABLE);
	}
	if (s->tx.len == 0 && s->tx_end) {
		s->tx_end_out = true;
		*flags |= NGHTTP2_DATA_FLAG_EOF;
	} else if (n == 0) {
		s->deferred = true;
		return NGHTTP2_ERR_DEFERRED;
	}
	return (ssize_t)n;
}

/* --- session --- */
static int make_session(struct chan *c, nghttp2_session_callbacks *cb, nghttp2_option *opt)
{
	nghttp2_session_callbacks_set_on_begin_headers_callback(cb, on_begin_headers);
	nghttp2_session_callbacks_set_on_header_callback(cb, on_header);
	nghttp2_session_callbacks_set_on_frame_recv_callback(cb, on_frame_recv);
	nghttp2_session_callbacks_set_on_frame_send_callback(cb, on_frame_send);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(cb, on_data);
	nghttp2_session_callbacks_set_on_stream_close_callback(cb, on_stream_close);
	nghttp2_option_set_no_auto_window_update(opt, 1);
	nghttp2_option_set_no_closed_streams(opt, 1);
	nghttp2_option_set_peer_max_concurrent_streams(opt, CHAN_STREAMS_MAX);
	nghttp2_option_set_max_reserved_remote_streams(opt, 0);
	/* The host cuts streams whenever a client of it goes away, and is no attacker of its own
	 * guest. */
	nghttp2_option_set_stream_reset_rate_limit(opt, 1U << 30, 1U << 30);
	if (c->side == CHAN_HOST)
		return nghttp2_session_client_new2(&c->h2, cb, c, opt);
	return nghttp2_session_server_new2(&c->h2, cb, c, opt);
}

int chan_h2_start(struct chan *c)
{
	const nghttp2_settings_entry settings[] = {
		{ NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS,
		  c->side == CHAN_GUEST ? CHAN_STREAMS_MAX : 0 },
		{ NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, CHAN_WINDOW },
		{ NGHTTP2_SETTINGS_ENABLE_PUSH, 0 },
	};
	size_t n = c->side == CHAN_HOST
			   ? 3
			   : 2; /* a server may not send ENABLE_PUSH = 0 before RFC 9113 */
	nghttp2_session_callbacks *cb = NULL;
	nghttp2_option *opt = NULL;
	int r = -ENOMEM;

	if (nghttp2_session_callbacks_new(&cb) == 0 && nghttp2_option_new(&opt) == 0 &&
	    make_session(c, cb, opt) == 0 &&
	    nghttp2_submit_settings(c->h2, NGHTTP2_FLAG_NONE, settings, n) == 0 &&
	    nghttp2_session_set_local_window_size(c->h2, NGHTTP2_FLAG_NONE, 0, CHAN_WINDOW_ALL) ==
		    0)
		r = 0;
	nghttp2_option_del(opt);
	nghttp2_session_callbacks_del(cb);
	return r;
}

void chan_h2_stop(struct chan *c)
{
	nghttp2_session_del(c->h2);
	c->h2 = NULL;
}

void chan_h2_feed(struct chan *c, const char *p, size_t n)
{
	ssize_t k = nghttp2_session_mem_recv(c->h2, (const uint8_t *)p, n);

	if (k < 0 && !c->broken)
		c->broken = k == NGHTTP2_ERR_NOMEM ? "out of memory"
						   : "what came over the channel is not HTTP/2";
}

void chan_h2_fill(struct chan *c)
{
	if (c->out_at == c->out_len)
		c->out_at = c->out_len = 0;
	while (c->out_len < CHAN_OUT_FILL && !c->last_sent) {
		const uint8_t *p;
		ssize_t n = nghttp2_session_mem_send(c->h2, &p);

		if (n == 0)
			return;
		if (n < 0 || (size_t)n > sizeof(c->out) - c->out_len) {
			c->broken = "the session failed";
			return;
		}
		memcpy(c->out + c->out_len, p, (size_t)n);
		c->out_len += (size_t)n;
	}
}

int chan_h2_quiesce(struct chan *c)
{
	/* The streams end with the session (chan_streams_end): nothing of them may follow. */
	return nghttp2_submit_ping(c->h2, NGHTTP2_FLAG_NONE, LAST) == 0 ? 0 : -ENOMEM;
}

/* --- what streams ask of the session (chan_stream.c's public half) --- */
static nghttp2_nv field(const char *name, const char *value)
{
	union { /* nghttp2_nv wants pointers to non-const and does not write to them */
		const char *in;
		uint8_t *out;
	} n = { .in = name }, v = { .in = value };

	return (nghttp2_nv){ n.out, v.out, strlen(name), strlen(value), NGHTTP2_NV_FLAG_NONE };
}

int chan_connect(struct chan *c, uint16_t port, const struct chan_stream_ops *ops, void *arg,
		 struct chan_stream **ret)
{
	const nghttp2_data_provider body = { .read_callback = on_read };
	struct chan_stream *s;
	char authority[sizeof(authority_host) + 5];
	nghttp2_nv nv[2];
	int32_t id;

	if (c->side != CHAN_HOST || !chan_is_up(c) || c->broken)
		return -ENOTCONN;
	if (c->stream_count >= CHAN_STREAMS_MAX ||
	    c->stream_count >=
		    nghttp2_session_get_remote_settings(c->h2,
							NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS))
		return -EMFILE;
	(void)snprintf(authority, sizeof(authority), "%s%u", authority_host, port);
	nv[0] = field(":method", "CONNECT");
	nv[1] = field(":authority", authority);
	s = chan_stream_new(c, -1);
	if (!s)
		return -ENOMEM;
	id = nghttp2_submit_request(c->h2, NULL, nv, ARRAY_LEN(nv), &body, NULL);
	if (id < 0) {
		chan_stream_free(s);
		if (id == NGHTTP2_ERR_STREAM_ID_NOT_AVAILABLE) { /* 2^30 streams: begin anew */
			c->broken = "the session has used up its stream ids";
			chan_kick(c);
		}
		return id == NGHTTP2_ERR_NOMEM ? -ENOMEM : -ENOTCONN;
	}
	s->id = id;
	s->ops = ops;
	s->arg = arg;
	chan_kick(c);
	*ret = s;
	return 0;
}

int chan_accept(struct chan_stream *s, const struct chan_stream_ops *ops, void *arg)
{
	const nghttp2_data_provider body = { .read_callback = on_read };
	const nghttp2_nv nv[] = { field(":status", "200") };
	struct chan *c = s->c;

	if (s->closed || nghttp2_submit_response(c->h2, s->id, nv, ARRAY_LEN(nv), &body) != 0) {
		chan_reset(s);
		return -ECONNRESET;
	}
	s->ops = ops;
	s->arg = arg;
	chan_stream_mark(s, 0);
	chan_kick(c);
	return 0;
}

void chan_refuse(struct chan_stream *s, int errnum)
{
	struct chan *c = s->c;

	if (!s->closed && reset_stream(c, s->id, errnum_to_code(errnum)) != 0)
		c->broken = "out of memory";
	s->closed = true; /* for chan_reset: the RST_STREAM has been queued */
	chan_reset(s);
}
