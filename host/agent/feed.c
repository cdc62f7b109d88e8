/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host/agent/exec_int.h"
#include "lib/jsn.h"
#include "lib/str.h"

/*
 * Input. Our stdin is sent as a row of requests, one at a time: the next is made of what has come
 * when the child has taken the one before, which is the back-pressure, and what a broken connection
 * carried is still here to be sent again, with the offset of its first byte. Nothing is opened
 * before there is something to send, so an idle stdin costs nothing, and the end of the command
 * never waits for it.
 *
 * A pipe is read only when nothing is under way: what the command does not read stays there for
 * others. A terminal is read always, because detach keys must work while the sandbox does not.
 *
 * What is all there before the command is started goes along with that request, which then says that there is no more; what was read for
 * that is lost to others when the command is refused. Only so much that a slow line does not make the start late.
 *
 * Others may type into a terminal too, or into a command that we have attached to. Our count of
 * bytes says nothing then, so it is given only when a request is repeated.
 */

#define FEED_AGAIN_NS (100LL * 1000000)
#define EARLY_MAX     (64U << 10) /* of what goes along with the start */

static void post(struct exec *x);

static bool is_shared(const struct exec *x)
{
	return x->spec->tty || x->spec->attach;
}

/* Room for more; with keys that are kept back, those fit in any case. */
static size_t room(const struct exec *x)
{
	size_t used = x->have + (x->keys.len ? KEYS_MAX : 0);

	return used < FEED_CHUNK ? FEED_CHUNK - used : 0;
}

static void wait_for_input(struct exec *x)
{
	if (x->eof || !room(x) || (x->feed && !x->spec->tty))
		return;
	if (source_wait(&x->in) < 0)
		feed_stop(x);
}

/* Sends what there is, unless something is under way. */
static void pump(struct exec *x)
{
	if (!x->feed && !x->feed_again.loop && (x->have || x->eof)) {
		x->sent = x->have;
		x->sent_eof = x->eof;
		x->repeat = false;
		post(x);
	}
	if (x->feeding)
		wait_for_input(x);
}

/* The agent's count, where there is one that can be. */
static void taken(struct exec *x, const struct buf *body)
{
	AUTO_JSN *j = body->len ? jsn_parse(body->p, body->len, NULL) : NULL;
	uint64_t at = 0;

	x->fed += x->sent;
	if (cJSON_IsObject(j) && jsn_u64(j, "offset", x->fed, 1ULL << 53, &at, NULL) == 1)
		x->fed = at;
	x->have -= x->sent;
	memmove(x->input, x->input + x->sent, x->have);
	x->sent = 0;
}

static void on_fed(void *arg, int status, const struct buf *body, const struct err *e)
{
	struct exec *x = arg;

	(void)e;
	x->feed = NULL;
	if (!x->feeding)
		return;
	if (status == 0 || status == 503) {
		x->repeat = true;
		loop_arm(&x->loop, &x->feed_again, FEED_AGAIN_NS);
		return;
	}
	if (status == 409 && x->spec->tty) /* somebody else types: as if it were lost */
		status = 200;
	if (status != 200 || x->sent_eof) { /* 409 and 410: the command reads no more */
		feed_stop(x);
		return;
	}
	taken(x, body);
	pump(x);
}

static void post(struct exec *x)
{
	char path[EXEC_PATH_MAX], rest[64] = "/stdin";
	struct http_spec s = { .method = "POST",
			       .path = path,
			       .body = x->input,
			       .body_len = x->sent,
			       .once = is_shared(x),
			       .done = on_fed,
			       .arg = x };
	struct err e = ERR_INIT;
	const char *eof = x->sent_eof ? "eof=1" : "";

	if (!is_shared(x) || x->repeat)
		ignore_result(str_format(rest, sizeof(rest), "/stdin?offset=%llu%s%s",
					 (unsigned long long)x->fed, x->sent_eof ? "&" : "",
					 eof)); /* it fits */
	else if (x->sent_eof)
		ignore_result(str_format(rest, sizeof(rest), "/stdin?%s", eof)); /* it fits */
	exec_path(x, rest, path);
	if (http_start(x->http, &s, &x->feed, &e) < 0)
		exec_fail(x, &e);
}

/* As source_read, into the input; *RET_DETACH when the detach keys came. */
static ssize_t read_some(struct exec *x, bool *ret_detach)
{
	unsigned char typed[1024], out[KEYS_MAX];
	size_t want = room(x) < sizeof(typed) ? room(x) : sizeof(typed), n;
	ssize_t k;

	if (!x->keys.len) {
		k = source_read(&x->in, x->input + x->have, room(x));
		x->have += k > 0 ? (size_t)k : 0;
		return k;
	}
	k = source_read(&x->in, typed, want);
	for (ssize_t i = 0; i < k && !*ret_detach; i++) {
		*ret_detach = keys_feed(&x->keys, typed[i], out, &n);
		memcpy(x->input + x->have, out, n);
		x->have += n;
	}
	return k;
}

/* Reads all that is there now, up to a chunk, so that the end of a short input goes along with its
 * last bytes. */
static void on_input(void *arg)
{
	struct exec *x = arg;
	bool detach = false;
	ssize_t k = 1;

	while (x->feeding && !x->eof && room(x) && k > 0) {
		k = read_some(x, &detach);
		if (detach) {
			stop_detach(x);
			return;
		}
		if (k == -EAGAIN)
			break;
		if (k <= 0 && x->term.raw) /* our terminal has gone */
			stop_hang_up(x, SIGHUP);
		else if (k <= 0) /* an input that cannot be read has ended */
			x->eof = true;
		if (x->in.kind == STDIO_POLLED)
			break;
	}
	if (x->feeding)
		pump(x);
}

static void on_again(struct loop_timer *t)
{
	struct exec *x = t->arg;

	if (!x->feeding || x->feed)
		return;
	if (x->repeat)
		post(x);
	else
		pump(x);
}

int feed_init(struct exec *x)
{
	x->feed_again = (struct loop_timer)LOOP_TIMER_INIT;
	x->feed_again.fn = on_again;
	x->feed_again.arg = x;
	if (!x->spec->use_stdin)
		return 0;
	if (x->spec->tty && x->spec->detach_keys)
		x->keys = *x->spec->detach_keys;
	x->input = malloc(FEED_CHUNK);
	if (!x->input)
		return -ENOMEM;
	source_init(&x->in, &x->loop, STDIN_FILENO, on_input, x);
	return 0;
}

bool feed_early(struct exec *x)
{
	if (!x->input || is_shared(x) || x->spec->detach || x->in.kind == STDIO_POLLED)
		return false;
	/* Ours of a FIFO is not told that its writers have gone: reading it, which does not block, says so. */
	while (!x->eof && x->have < EARLY_MAX &&
	       (x->in.kind != STDIO_PLAIN || source_ready(&x->in))) {
		ssize_t k = source_read(&x->in, x->input + x->have, room(x));

		if (k == -EAGAIN)
			break;
		x->have += k > 0 ? (size_t)k : 0;
		x->eof = k <= 0; /* an input that cannot be read has ended */
	}
	return x->eof;
}

void feed_begin(struct exec *x)
{
	if (!x->spec->use_stdin || x->whole)
		return;
	x->feeding = true;
	if (x->have || x->eof) /* libcurl may be calling us */
		loop_arm(&x->loop, &x->feed_again, 0);
	else
		wait_for_input(x);
}

void feed_restart(struct exec *x)
{
	if (!x->feeding || !x->feed)
		return;
	http_cancel(x->feed);
	x->feed = NULL;
	x->repeat = true;
	loop_arm(&x->loop, &x->feed_again, FEED_AGAIN_NS);
}

void feed_stop(struct exec *x)
{
	x->feeding = false;
	loop_disarm(&x->feed_again);
	http_cancel(x->feed);
	x->feed = NULL;
}

void feed_done(struct exec *x)
{
	feed_stop(x);
	if (x->input)
		source_done(&x->in);
	free(x->input);
	x->input = NULL;
}
