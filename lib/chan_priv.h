/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_CHAN_PRIV_H
#define ASB_CHAN_PRIV_H

#include <nghttp2/nghttp2.h>

#include "chan.h"
#include "ring.h"

/* Shared by chan.c (pipe, hello, life), chan_h2.c (the HTTP/2 session) and chan_stream.c (one
 * stream); nobody else's. */

#define CHAN_TX_CAP (256U << 10) /* queued of one stream towards the pipe */
#define CHAN_WINDOW \
	(1U << 20) /* received of one stream and not consumed: its flow-control window */
#define CHAN_WINDOW_ALL (8U << 20) /* of the session; never the limit, see chan_h2.c */
#define CHAN_OUT_FILL	65536	   /* frames are gathered up to here for one write(2) */
#define CHAN_OUT_SIZE	(CHAN_OUT_FILL + 2 * 16384)
#define CHAN_IN_SIZE	65536
#define CHAN_NONCE_LEN	32

enum chan_state {
	CHAN_WAITING, /* no session: the host says hello, the guest listens for one */
	CHAN_UP,
	CHAN_SILENT, /* host, after quiesce */
	CHAN_DEAD,   /* host: the pipe has ended */
};

enum chan_event { /* what a stream has to tell its user */
		  EV_CONNECT = 1 << 0,
		  EV_OPENED = 1 << 1,
		  EV_WRITABLE = 1 << 2,
};

struct chan_stream {
	struct chan *c;			   /* owner */
	struct chan_stream *next, **pprev; /* in c->streams */
	struct chan_stream *ready_next;	   /* in c->ready */
	const struct chan_stream_ops *ops; /* borrowed; NULL while a CONNECT is unanswered */
	void *arg;
	struct ring rx, tx;
	int32_t id;
	int error;	 /* for closed() */
	unsigned events; /* enum chan_event */
	uint16_t port;
	bool ready;  /* is in c->ready */
	bool rx_eof; /* the peer's last byte is in rx */
	bool eof_told;
	bool paused;	 /* data() took less than it was given */
	bool tx_end;	 /* no more after what is in tx */
	bool tx_end_out; /* and the peer is being told so */
	bool deferred;	 /* nghttp2 waits for nghttp2_session_resume_data */
	bool want_write; /* the user waits for writable() */
	bool closed;	 /* nghttp2 knows it no more */
	bool dropped;	 /* reset by the user from inside its own callback */
	bool running;	 /* a callback of it is on the stack */
	/* request or response head as it comes in */
	bool head_bad;
	bool head_connect; /* ":method: CONNECT" */
	int status;
};

struct chan {
	struct loop *loop;
	const struct chan_ops *ops;
	void *arg;
	nghttp2_session *h2;
	struct chan_stream *streams;
	struct chan_stream *ready, **ready_tail;
	struct loop_watch watch;
	struct loop_timer kick;	 /* work for the next turn of the loop */
	struct loop_timer hello; /* host: says it again; guest: looks whether the host is back */
	int64_t up_at;		 /* loop_now when the session began */
	enum chan_side side;
	enum chan_state state;
	int fd;
	unsigned stream_count;
	int depth; /* of callbacks on the stack: memory is freed at 0 */
	bool doomed;
	bool magic_due; /* guest: the hello may still be repeated until HTTP/2 starts */
	bool quiescing;
	bool last_sent; /* of a quiesce: nothing may follow it */
	bool last_seen;
	const char *broken; /* why the session must end; NULL = it is fine */
	char nonce[CHAN_NONCE_LEN + 1];
	char line[64]; /* the last bytes since a newline */
	size_t line_len;
	size_t out_at, out_len;
	char out[CHAN_OUT_SIZE];
	char in[CHAN_IN_SIZE];
};

/* chan.c */
void chan_kick(struct chan *c);
/* chan_h2.c */
int chan_h2_start(struct chan *c) MUST_CHECK;
void chan_h2_stop(struct chan *c);
void chan_h2_feed(struct chan *c, const char *p, size_t n); /* may set c->broken */
void chan_h2_fill(struct chan *c);			    /* moves frames to c->out */
int chan_h2_quiesce(struct chan *c) MUST_CHECK;
/* chan_stream.c */
struct chan_stream *chan_stream_new(struct chan *c, int32_t id);
struct chan_stream *chan_stream_find(const struct chan *c, int32_t id);
void chan_stream_free(struct chan_stream *s);
void chan_stream_mark(struct chan_stream *s, unsigned events); /* callbacks are due */
void chan_stream_closed(struct chan_stream *s, int error);     /* nghttp2 has forgotten it */
void chan_streams_run(struct chan *c);			       /* the callbacks that are due */
void chan_streams_end(struct chan *c, int error);	       /* closes all, now */

#endif
