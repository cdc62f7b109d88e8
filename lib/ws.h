/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_WS_H
#define ASB_WS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "buf.h"
#include "compiler.h"
#include "loop.h"
#include "ring.h"

/*
 * The server's end of a WebSocket (RFC 6455) inside a loop; frames are libmicrohttpd_ws's. One object,
 * embedded in its owner's, over a socket that the owner lends. No extensions, no subprotocols.
 */
struct httpd_req;
struct MHD_WebSocketStream;

enum ws_code { /* RFC 6455 §7.4.1 */
	       WS_NORMAL = 1000,
	       WS_GOING_AWAY = 1001,
	       WS_PROTOCOL = 1002,
	       WS_NO_CODE = 1005, /* told, never sent: a close frame without a code */
	       WS_BROKEN = 1006,  /* told, never sent: the connection ended without a close frame */
	       WS_NOT_UTF8 = 1007,
	       WS_POLICY = 1008,
	       WS_TOO_BIG = 1009,
	       WS_INTERNAL = 1011,
};

struct ws_config {
	size_t message_max; /* bytes of one message, of all its fragments together */
	size_t queue_max;   /* bytes of frames that wait to be sent: a power of two, >= 4096 */
	int64_t ping_ns;    /* a ping after that much silence of the client */
	int64_t stall_ns; /* cut when nothing was received, or nothing of a queue taken, for so long */
	/* A whole message, followed by a NUL that is not counted; text is UTF-8. P is the library's.
	 * May call anything below but ws_stop. */
	void (*message)(void *arg, bool text, const char *p, size_t n);
	void (*writable)(void *arg); /* after ws_room was too small: there is room again */
	/* Once, from the loop, the last call: the other side's code when it closed first, else the one
	 * sent, or WS_BROKEN. The object is stopped already. */
	void (*closed)(void *arg, unsigned code);
	void *arg;
};

enum ws_state { WS_OPEN, WS_CLOSING, WS_OVER };

struct ws {
	const struct ws_config *c;
	struct loop *loop;
	struct MHD_WebSocketStream *frames;
	struct loop_watch watch;
	struct loop_timer
		timer; /* pings and stalls; while closing the deadline; once over, the end */
	struct ring queue;
	struct buf in, part; /* received and not decoded; fragments of a message */
	enum ws_state state;
	unsigned code;
	bool paused, wants_room;
	bool frame_start; /* the next byte to decode begins a frame */
	bool shut;	  /* our half is closed */
	int64_t heard, moved;
};

/* Does R ask for a WebSocket as RFC 6455 §4.2.1 wants it, from no other origin than this server's own?
 * Adds the headers of the 101 and returns true; else R has been answered (400, 403, 426). */
bool ws_handshake(struct httpd_req *r) MUST_CHECK;

/* C is borrowed and outlives W, FD non-blocking and borrowed until closed() or ws_stop. P, N: bytes that
 * came with the head. Nothing is called back before this returns. 0 or -ENOMEM, -errno of epoll. */
int ws_start(struct ws *w, struct loop *l, int fd, const struct ws_config *c, const char *p,
	     size_t n) MUST_CHECK;
void ws_stop(struct ws *w); /* forgets it; nothing is called back; fine when closed() was called */

/* Largest message that ws_send takes now; 0 when it is closing. A caller for whom it is too small is told by
 * writable(). */
size_t ws_room(struct ws *w, size_t wanted) MUST_CHECK;
/* 0, -ENOSPC, -EPIPE when closing. TEXT must be UTF-8 (else -EINVAL). */
int ws_send(struct ws *w, bool text, const void *p, size_t n) MUST_CHECK;

/* While paused no message is delivered and the client is held up by TCP. */
void ws_pause(struct ws *w, bool on);

/* Sends what is queued, then a close frame, and ends: at the client's close frame, its end, or the
 * deadline. REASON: at most 123 bytes of UTF-8. Messages that still come are dropped. */
void ws_close(struct ws *w, unsigned code, const char *reason);

#endif
