/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_BRIDGE_H
#define ASB_BRIDGE_H

#include <stdbool.h>

#include "chan.h"
#include "compiler.h"
#include "loop.h"

/*
 * Joins a socket and a stream of a channel: bytes, half-closes and ends go both ways, and each side
 * holds up the other, so that nothing is kept beyond the stream's own buffers. Used at both ends:
 * by asb-portd for TCP, by the supervisor for link.sock.
 */
struct bridge {
	struct loop_watch watch;
	struct loop *loop;
	struct chan_stream *stream; /* NULL when it has ended */
	int fd;			    /* owned */
	bool read_end;		    /* the socket gives nothing more */
	bool write_end;		    /* it takes nothing more */
	bool blocked;		    /* it is full */
	bool end_given;		    /* it was told that the stream sends nothing more */
	int64_t read_at; /* loop_now() of the last bytes that the socket gave; 0 = none */
	void (*ended)(struct bridge *b,
		      int error); /* last callback; B is closed already and may be freed */
};

/* What the stream's owner passes to chan_connect or chan_accept, with the bridge as ARG. Its
 * opened() does nothing. */
extern const struct chan_stream_ops bridge_ops;

/* FD: a connected socket, non-blocking; owned from here on, also when it fails. S must have been
 * accepted or opened with bridge_ops. 0 or negative errno (S is then reset). */
int bridge_start(struct bridge *b, struct loop *l, struct chan_stream *s, int fd,
		 void (*ended)(struct bridge *b, int error)) MUST_CHECK;
void bridge_stop(struct bridge *b); /* cuts both; no callback follows; fine when it has ended */

#endif
