/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_CHAN_H
#define ASB_CHAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "compiler.h"
#include "loop.h"

/*
 * One byte pipe (a virtio-serial port) carrying many TCP-like streams: HTTP/2 (nghttp2), each
 * stream a CONNECT to "127.0.0.1:<port>" in the guest. The host is the HTTP/2 client, the guest
 * (asb-portd) the server.
 *
 * The pipe has no session boundary of its own: bytes of an earlier life may still be in it. So each
 * session begins with a hello line under a fresh nonce, and whatever comes before the expected line
 * is discarded: host  -> guest  "ASB1 HELLO <32 hex digits>\n"   repeated until answered guest ->
 * host   "ASB1 READY <the same digits>\n" then both start HTTP/2. A hello while a session is up
 * ends that session (the host restarted or was restored). An end that begins anew first sends
 * CHAN_BREAK bytes 0xff, which no HTTP/2 parser survives, wherever in a frame it is; the guest adds
 * "ASB1 WAIT\n", so that the host need not wait for its timer.
 *
 * The program must ignore SIGPIPE. Callbacks come from the loop only, never from inside a function
 * of this header, and may call all of them, chan_free too.
 */
struct chan;
struct chan_stream;

#define CHAN_STREAMS_MAX 256
#define CHAN_BREAK \
	(16384 +   \
	 2 * 9) /* the rest of any frame, and a frame head after it (RFC 9113 §4.1, §4.2) \
			 */

enum chan_side { CHAN_HOST, CHAN_GUEST };

struct chan_ops {
	void (*up)(void *arg); /* the session is established (after each hello) */
	void (*down)(
		void *arg,
		const char *why); /* it ended: every stream has had its closed callback before */
	/* Guest only: a CONNECT has arrived. It must be answered by chan_accept or chan_refuse, at
	 * once or later, also when the host has given it up meanwhile: until then S stays valid
	 * (chan_free frees all). */
	void (*connect)(void *arg, struct chan_stream *s, uint16_t port);
};

struct chan_stream_ops {
	void (*opened)(void *arg); /* host: the guest accepted */
	/* N bytes came from the peer; return how many were consumed. The rest is kept (bounded by
	 * the flow-control window) until chan_resume. N == 0: the peer has sent its last byte. */
	size_t (*data)(void *arg, const void *p, size_t n);
	void (*writable)(void *arg); /* chan_write took less than it was given; try again */
	void (*closed)(void *arg,
		       int error); /* last callback; 0 or a negative errno (-ECONNREFUSED, …) */
};

/* FD: the pipe, non-blocking, borrowed. 0 or negative errno. */
int chan_start(struct loop *l, enum chan_side side, int fd, const struct chan_ops *ops, void *arg,
	       struct chan **ret) MUST_CHECK;
void chan_free(struct chan *c); /* no callback follows */
bool chan_is_up(const struct chan *c);

/* Host: opens a stream to PORT. 0, -ENOTCONN while down, -EMFILE when the peer's limit of streams
 * is reached. */
int chan_connect(struct chan *c, uint16_t port, const struct chan_stream_ops *ops, void *arg,
		 struct chan_stream **ret) MUST_CHECK;
/* Guest: answers a CONNECT. -ECONNRESET: the host has given it up, and S is gone. */
int chan_accept(struct chan_stream *s, const struct chan_stream_ops *ops, void *arg) MUST_CHECK;
void chan_refuse(struct chan_stream *s, int errnum);

size_t chan_write(struct chan_stream *s, const void *p,
		  size_t n);		 /* bytes taken, at most its own buffer of 256 KiB */
size_t chan_room(struct chan_stream *s); /* what chan_write would take now; 0 asks for writable() */
bool chan_drained(const struct chan_stream *s); /* nothing of what was written waits here */
void chan_write_end(struct chan_stream *s);	/* no more from this side, after what is queued */
void chan_resume(struct chan_stream *s);	/* offers the kept bytes to data() again */
void chan_reset(struct chan_stream *s);		/* drops the stream; no callback follows */

/* Host: ends the session so that a snapshot may be taken: streams are closed, both sides say their
 * last word, and both ends are back in the hello state with nothing in flight when down() is called. The host
 * stays silent then until chan_hello. A guest that does not answer is the caller's deadline to
 * watch. -EBUSY when one is under way, -ENOTCONN while down. */
int chan_quiesce(struct chan *c) MUST_CHECK;
void chan_hello(struct chan *c); /* Host, after chan_quiesce: begins a new session */

#endif
