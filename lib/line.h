/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_LINE_H
#define ASB_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "buf.h"
#include "compiler.h"
#include "loop.h"

/*
 * Lines over a stream: the cutting (pure), and one peer in a loop that sends and receives them. For
 * private sockets and pipes of our own, whose other end may all the same be hostile or stuck: lines
 * and queues have caps, waits have deadlines.
 */

/* --- cutting, pure --- */
struct line_cutter {
	struct buf in;
	size_t scanned; /* bytes of IN that are known to hold no newline */
	size_t given;	/* bytes of IN that the last line_next gave out */
};

void line_cutter_init(struct line_cutter *c,
		      size_t max); /* MAX: longest line, without its newline */
void line_cutter_done(struct line_cutter *c);

/* Adds N bytes. 0, -EMSGSIZE when a line is longer than MAX, -ENOMEM. After a failure nothing more
 * may be added. */
int line_feed(struct line_cutter *c, const char *p, size_t n) MUST_CHECK;

/* The next whole line, NUL-terminated, without its newline (a NUL inside is the caller's to refuse:
 * *RET_LEN counts it). NULL when there is none. Points into C and may be changed by the caller;
 * gone at the next call. */
char *line_next(struct line_cutter *c, size_t *ret_len);

/* --- a peer in the loop --- */
struct line_peer;

struct line_ops {
	/* One line; S may be changed, and is gone when it returns. It may call line_close and free
	 * P. */
	void (*line)(struct line_peer *p, char *s, size_t len);
	/* The peer is gone; P is closed already and may be freed. 0: it closed orderly; else a
	 * negative errno: -EMSGSIZE for a line over the cap, -ETIMEDOUT for the deadline. Not
	 * called by line_close. */
	void (*closed)(struct line_peer *p, int error);
};

struct line_peer {
	struct loop *loop;
	struct loop_watch watch;
	struct loop_timer deadline, kick;
	struct line_cutter in;
	struct buf out;
	const struct line_ops *ops; /* borrowed */
	void *arg;		    /* the caller's */
	int fd;			    /* owned; -1 when closed */
	bool paused;
	bool eof;   /* nothing more comes; lines that are already here are still given */
	bool *gone; /* where line_close tells a callback that is under way */
};

#define LINE_PEER_INIT   \
	{                \
		.fd = -1 \
	}			   /* closed */
#define LINE_OUT_MAX (256UL << 10) /* most bytes that may wait for a peer that does not read */

/* FD (owned from here on, also when it fails) must be non-blocking. 0 or negative errno. */
int line_open(struct loop *l, struct line_peer *p, int fd, size_t max, const struct line_ops *ops,
	      void *arg) MUST_CHECK;
void line_close(struct line_peer *p); /* fine when closed */

/* Queues S and a newline and sends what goes out at once. 0, -ENOSPC over LINE_OUT_MAX, -ENOTCONN
 * when closed; a broken connection is told by closed() from the loop. */
int line_send(struct line_peer *p, const char *s) MUST_CHECK;

/* While paused no line is given, nothing is read, and only the end of the connection is noticed.
 * From the loop, also lines that had arrived before are given after a resume. */
void line_pause(struct line_peer *p, bool on);

/* closed(-ETIMEDOUT) unless it is set anew within AFTER_NS; < 0: none. */
void line_deadline(struct line_peer *p, int64_t after_ns);

#endif
