/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_CHAN_H
#define ASB_CHAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "compiler.h"
#include "loop.h"

/*
 * One byte pipe (a virtio-serial port) carrying many TCP-like streams: HTTP/2 (nghttp2), each stream a CONNECT to
 * "127.0.0.1:<port>" in the guest. The host is the HTTP/2 client, the guest (asb-portd) the server.
 *
 * The pipe has no session boundary of its own: bytes of an earlier life may still be in it. So each session begins with a
 * hello line under a fresh nonce, and whatever comes before the expected line is discarded:
 *     host  -> guest  "ASB1 HELLO <32 hex digits>\n"   repeated until answered
 *     guest -> host   "ASB1 READY <the same digits>\n"
 * then both start HTTP/2. A hello while a session is up ends that session (the host restarted or was restored).
 */
struct chan;
struct chan_stream;

enum chan_side { CHAN_HOST, CHAN_GUEST };

struct chan_ops {
	void (*up)(void *arg);			 /* the session is established (after each hello) */
	void (*down)(void *arg, const char *why); /* it ended: every stream has had its closed callback before */
	/* Guest only: a CONNECT has arrived. Answer by chan_accept or chan_refuse, at once or later. */
	void (*connect)(void *arg, struct chan_stream *s, uint16_t port);
};

struct chan_stream_ops {
	void (*opened)(void *arg);			      /* host: the guest accepted */
	/* N bytes came from the peer; return how many were consumed. The rest is kept (bounded by the flow-control window)
	 * until chan_resume. N == 0: the peer has sent its last byte. */
	size_t (*data)(void *arg, const void *p, size_t n);
	void (*writable)(void *arg);			      /* chan_write took less than it was given; try again */
	void (*closed)(void *arg, int error);		      /* last callback; 0 or a negative errno (-ECONNREFUSED, …) */
};

/* FD: the pipe, non-blocking, borrowed. 0 or negative errno. */
int chan_start(struct loop *l, enum chan_side side, int fd, const struct chan_ops *ops, void *arg, struct chan **ret) MUST_CHECK;
void chan_free(struct chan *c);
bool chan_is_up(const struct chan *c);

/* Host: opens a stream to PORT. 0, -ENOTCONN while down, -EMFILE when the peer's limit of streams is reached. */
int chan_connect(struct chan *c, uint16_t port, const struct chan_stream_ops *ops, void *arg, struct chan_stream **ret) MUST_CHECK;
/* Guest: answers a CONNECT. */
int chan_accept(struct chan_stream *s, const struct chan_stream_ops *ops, void *arg) MUST_CHECK;
void chan_refuse(struct chan_stream *s, int errnum);

size_t chan_write(struct chan_stream *s, const void *p, size_t n); /* bytes taken, at most its own buffer of 256 KiB */
void chan_write_end(struct chan_stream *s);			    /* no more from this side, after what is queued */
void chan_resume(struct chan_stream *s);			    /* offers the kept bytes to data() again */
void chan_reset(struct chan_stream *s);				    /* drops the stream; no callback follows */

/* Host: ends the session so that a snapshot may be taken: streams are closed, GOAWAY is exchanged, and both ends are back in the
 * hello state with nothing in flight when down() is called. -EBUSY when one is under way. */
int chan_quiesce(struct chan *c) MUST_CHECK;

#endif
