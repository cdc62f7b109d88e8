/* SPDX-License-Identifier: Apache-2.0 */
#include "chan_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <unistd.h>

#include "str.h"

/*
 * The pipe, the hello, and the life of a channel.
 *
 * States: WAITING -> UP (hello and answer) -> WAITING (any error, a hello in mid-session, the
 * peer's restart) and, on the host, UP -> SILENT (quiesce) -> WAITING (chan_hello); DEAD when the
 * host's end of the pipe has ended.
 *
 * How a session is left: the peer may be in the middle of a frame and may not know. So the side
 * that leaves writes CHAN_BREAK bytes 0xff: they complete whatever frame is under way, and the next
 * "frame head" then has a length of 0xffffff, which is over every limit. The peer's nghttp2 reports
 * it, and the peer leaves too. No byte of user data can look like that, because user data only ever
 * stands inside frames. What reaches a user of a torn frame is followed by closed(error).
 *
 * When a session breaks, the bytes that broke it are looked at again for a hello: it usually
 * follows in the same read.
 *
 * Callbacks: nghttp2's callbacks (chan_h2.c) only take notes; the user's are called by
 * chan_streams_run afterwards, when no nghttp2 function is on the stack, so that they may do
 * anything. Calls from outside queue work and arm `kick`, so that no callback ever runs inside a
 * function that the user called.
 */

#define HELLO	   "ASB1 HELLO "
#define READY	   "ASB1 READY "
#define WAIT	   "ASB1 WAIT"
#define HELLO_LEN  (sizeof(HELLO) - 1)
#define HELLO_NS   100000000LL	/* between two hellos, and after a session that did not last */
#define EOF_NS	   50000000LL	/* guest: the host's end is closed; look again */
#define SHORT_NS   1000000000LL /* a session that ends before this did not last */
#define TURN_READS 8		/* fairness: most reads, and writes, in one turn of the loop */

static void destroy(struct chan *c)
{
	while (c->streams)
		chan_stream_free(c->streams);
	chan_h2_stop(c);
	loop_del(&c->watch);
	loop_disarm(&c->kick);
	loop_disarm(&c->hello);
	free(c);
}

static void enter(struct chan *c)
{
	c->depth++;
}

/* Leaves a callback of the loop; C may be gone afterwards. */
static void leave(struct chan *c)
{
	if (--c->depth == 0 && c->doomed)
		destroy(c);
}

void chan_kick(struct chan *c)
{
	if (c->depth == 0 && !c->kick.loop) /* else run() follows anyway */
		loop_arm(c->loop, &c->kick, 0);
}

/* --- output --- */
static void out_add(struct chan *c, const void *p, size_t n)
{
	if (c->out_at == c->out_len)
		c->out_at = c->out_len = 0;
	if (n > sizeof(c->out) - c->out_len)
		return; /* only hello lines can meet this: they are repeated */
	memcpy(c->out + c->out_len, p, n);
	c->out_len += n;
}

static void out_line(struct chan *c, const char *word, const char *nonce)
{
	out_add(c, word, strlen(word));
	out_add(c, nonce, strlen(nonce));
	out_add(c, "\n", 1);
}

/* What is queued belonged to the session that ends; the break makes up for a frame cut in the
 * middle. */
static void out_break(struct chan *c)
{
	c->out_at = 0;
	c->out_len = CHAN_BREAK;
	memset(c->out, 0xff, CHAN_BREAK);
}

static void say_hello(struct chan *c)
{
	if (c->out_len - c->out_at <= CHAN_BREAK) /* else earlier ones are still waiting */
		out_line(c, HELLO, c->nonce);
	loop_arm(c->loop, &c->hello, HELLO_NS);
}

/* --- the end and the beginning of a session --- */
static int new_nonce(struct chan *c)
{
	unsigned char raw[CHAN_NONCE_LEN / 2];

	if (getrandom(raw, sizeof(raw), 0) != (ssize_t)sizeof(raw))
		return -EIO;
	str_hex(raw, sizeof(raw), c->nonce);
	return 0;
}

static void begin_waiting(struct chan *c, bool loud)
{
	int64_t lasted = loop_now() - c->up_at;

	c->state = CHAN_WAITING;
	c->line_len = 0;
	if (loud)
		out_break(c);
	if (c->side == CHAN_GUEST) {
		if (loud)
			out_line(c, WAIT, "");
	} else if (new_nonce(c) < 0) {
		c->state = CHAN_DEAD;
	} else { /* a peer that breaks every session at once must not make us spin */
		loop_arm(c->loop, &c->hello, c->up_at && lasted < SHORT_NS ? HELLO_NS : 0);
	}
	chan_kick(c);
}

/* Ends the session. LOUD: the peer may not know and is told by a break. */
static void end_session(struct chan *c, const char *why, bool loud)
{
	bool quiet = c->quiescing;

	c->broken = NULL;
	chan_streams_end(c, -ECONNRESET);
	chan_h2_stop(c);
	c->quiescing = c->last_sent = c->last_seen = c->magic_due = false;
	if (c->side == CHAN_HOST && quiet && !loud)
		c->state = CHAN_SILENT;
	else
		begin_waiting(c, loud);
	if (c->ops->down && !c->doomed)
		c->ops->down(c->arg, why);
}

static void begin_session(struct chan *c)
{
	c->up_at = loop_now();
	c->magic_due = c->side == CHAN_GUEST;
	loop_disarm(&c->hello);
	c->state = CHAN_UP;
	if (chan_h2_start(c) < 0) {
		c->broken = "out of memory";
		return;
	}
	if (c->ops->up)
		c->ops->up(c->arg);
}

/* --- input --- */
/* Whether the line just read ends with WORD and 32 hex digits; what stands before them is garbage.
 */
static const char *line_nonce(struct chan *c, const char *word)
{
	size_t word_len = strlen(word), n = word_len + CHAN_NONCE_LEN;
	const char *at;

	if (c->line_len < n)
		return NULL;
	at = c->line + c->line_len - n;
	if (memcmp(at, word, word_len) ||
	    strspn(at + word_len, "0123456789abcdef") != CHAN_NONCE_LEN)
		return NULL;
	return at + word_len;
}

static void guest_line(struct chan *c)
{
	const char *nonce = line_nonce(c, HELLO);

	if (!nonce)
		return;
	if (c->state == CHAN_UP) {
		if (!memcmp(nonce, c->nonce, CHAN_NONCE_LEN))
			return; /* said again before our answer came */
		memcpy(c->nonce, nonce, CHAN_NONCE_LEN);
		end_session(c, "the host began anew", true);
		if (c->doomed)
			return;
	} else {
		memcpy(c->nonce, nonce, CHAN_NONCE_LEN);
	}
	out_line(c, READY, c->nonce);
	begin_session(c);
}

static void host_line(struct chan *c)
{
	const char *nonce = line_nonce(c, READY);
	size_t n = sizeof(WAIT) - 1;

	if (nonce && !memcmp(nonce, c->nonce, CHAN_NONCE_LEN))
		begin_session(c);
	else if (c->line_len >= n && !memcmp(c->line + c->line_len - n, WAIT, n) && c->hello.loop &&
		 loop_now() - c->up_at > HELLO_NS)
		say_hello(c);
}

static void scan_byte(struct chan *c, char ch)
{
	const size_t max = sizeof(c->line) - 1;

	if (ch != '\n') {
		if (c->line_len == max)
			memmove(c->line, c->line + 1, --c->line_len);
		c->line[c->line_len++] = ch;
		return;
	}
	c->line[c->line_len] = '\0';
	if (c->side == CHAN_GUEST)
		guest_line(c);
	else if (c->state == CHAN_WAITING)
		host_line(c);
	c->line_len = 0;
}

static void feed(struct chan *c, const char *p, size_t n)
{
	while (n && !c->doomed) {
		if (c->state == CHAN_UP && c->magic_due && c->line_len == 0 && *p == 'P')
			c->magic_due = false; /* "PRI * HTTP/2.0": no more hellos */
		if (c->state != CHAN_UP || c->magic_due) {
			scan_byte(c, *p++);
			n--;
			continue;
		}
		chan_h2_feed(c, p, n);
		chan_streams_run(c);
		if (!c->broken && !c->doomed)
			chan_h2_fill(c); /* an error that nghttp2 found shows when its GOAWAY comes
					    out */
		if (!c->broken || c->doomed)
			return;
		end_session(c, c->broken, true); /* P and N as they are: a hello may be in there */
	}
}

static void pipe_ended(struct chan *c)
{
	loop_del(&c->watch);
	if (c->state == CHAN_UP)
		end_session(c, "the other end of the channel is closed", true);
	if (c->doomed)
		return;
	if (c->side == CHAN_GUEST) {
		loop_arm(c->loop, &c->hello, EOF_NS);
	} else {
		loop_disarm(&c->hello);
		c->state = CHAN_DEAD;
	}
	c->out_at = c->out_len = 0;
}

/* One buffer full at most; a virtio port gives a page at a time. Bytes read, 0: no more now,
 * -EPIPE: ended. */
static ssize_t read_some(struct chan *c)
{
	size_t n = 0;

	while (n < sizeof(c->in)) {
		ssize_t k = read(c->fd, c->in + n, sizeof(c->in) - n);

		if (k < 0 && errno == EINTR)
			continue;
		if (k <= 0 && n == 0)
			return k < 0 && errno == EAGAIN ? 0 : -EPIPE;
		if (k <= 0)
			break;
		n += (size_t)k;
		if (k < 4096)
			break;
	}
	return (ssize_t)n;
}

/* --- the turn --- */
/* Writes what there is and the pipe takes. */
static void flush(struct chan *c)
{
	for (int i = 0; i < TURN_READS; i++) {
		ssize_t k;

		if (c->state == CHAN_UP && !c->broken)
			chan_h2_fill(c);
		if (c->out_at == c->out_len)
			return;
		k = write(c->fd, c->out + c->out_at, c->out_len - c->out_at);
		if (k >= 0)
			c->out_at += (size_t)k;
		else if (errno == EAGAIN)
			return;
		else if (errno != EINTR) {
			pipe_ended(c);
			return;
		}
	}
}

static void check_quiesced(struct chan *c)
{
	if (!c->quiescing || c->state != CHAN_UP)
		return;
	if (c->last_sent && c->last_seen && c->out_at == c->out_len)
		end_session(c, "quiesced", false);
}

static void run(struct chan *c)
{
	for (int i = 0; i < TURN_READS && !c->doomed; i++) {
		chan_streams_run(c);
		if (!c->doomed && c->watch.loop)
			flush(c);
		if (!c->doomed && c->broken)
			end_session(c, c->broken, true);
		if (!c->ready)
			break;
	}
	if (c->doomed)
		return;
	check_quiesced(c);
	if (c->doomed || !c->watch.loop)
		return;
	if (c->ready || c->broken)
		loop_arm(c->loop, &c->kick, 0);
	if (loop_set(&c->watch, c->out_at == c->out_len ? EPOLLIN : EPOLLIN | EPOLLOUT) < 0)
		loop_arm(c->loop, &c->kick, 0);
}

static void on_pipe(struct loop_watch *w, uint32_t events)
{
	struct chan *c = w->arg;

	enter(c);
	for (int i = 0; i < TURN_READS && (events & ~(uint32_t)EPOLLOUT) && !c->doomed; i++) {
		ssize_t n = read_some(c);

		if (n < 0)
			pipe_ended(c);
		if (n <= 0)
			break;
		feed(c, c->in, (size_t)n);
		if ((size_t)n < sizeof(c->in))
			break;
	}
	run(c);
	leave(c);
}

static void on_kick(struct loop_timer *t)
{
	struct chan *c = t->arg;

	enter(c);
	run(c);
	leave(c);
}

static void on_hello(struct loop_timer *t)
{
	struct chan *c = t->arg;

	enter(c);
	if (c->side == CHAN_HOST) {
		if (c->state == CHAN_WAITING)
			say_hello(c);
	} else if (!c->watch.loop && loop_add(c->loop, &c->watch, c->fd, EPOLLIN) < 0) {
		loop_arm(c->loop, &c->hello, EOF_NS);
	}
	run(c);
	leave(c);
}

/* --- for the user --- */
int chan_start(struct loop *l, enum chan_side side, int fd, const struct chan_ops *ops, void *arg,
	       struct chan **ret)
{
	struct chan *c = calloc(1, sizeof(*c));
	int r;

	if (!c)
		return -ENOMEM;
	c->loop = l;
	c->side = side;
	c->fd = fd;
	c->ops = ops;
	c->arg = arg;
	c->ready_tail = &c->ready;
	c->watch = (struct loop_watch)LOOP_WATCH_INIT;
	c->watch.fn = on_pipe;
	c->kick.fn = on_kick;
	c->hello.fn = on_hello;
	c->watch.arg = c->kick.arg = c->hello.arg = c;
	r = loop_add(l, &c->watch, fd, EPOLLIN);
	if (r < 0) {
		free(c);
		return r;
	}
	begin_waiting(c, true);
	*ret = c;
	return 0;
}

void chan_free(struct chan *c)
{
	if (!c)
		return;
	c->doomed = true;
	if (c->depth == 0)
		destroy(c);
}

bool chan_is_up(const struct chan *c)
{
	return c->state == CHAN_UP && !c->quiescing;
}

int chan_quiesce(struct chan *c)
{
	int r;

	if (c->state != CHAN_UP)
		return -ENOTCONN;
	if (c->quiescing)
		return -EBUSY;
	r = chan_h2_quiesce(c);
	if (r < 0)
		return r;
	c->quiescing = true;
	chan_kick(c);
	return 0;
}

void chan_hello(struct chan *c)
{
	if (c->state != CHAN_SILENT)
		return;
	c->up_at = 0;
	begin_waiting(c, true);
}
