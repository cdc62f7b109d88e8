/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host/agent/exec_int.h"
#include "lib/jsn.h"
#include "lib/str.h"

/*
 * Input. Our stdin is sent as a row of requests, each with the offset of its first byte: the next
 * chunk is read when the child has taken the one before, which is the back-pressure, and a chunk
 * whose connection broke is still here to be sent again. Nothing is opened before there is
 * something to send, so an idle stdin costs nothing, and the end of the command never waits for it.
 */

#define FEED_AGAIN_NS (100LL * 1000000)

static void post(struct exec *x);

static void wait_for_input(struct exec *x)
{
	if (source_wait(&x->in) < 0)
		feed_stop(x);
}

static void on_fed(void *arg, int status, const struct buf *body, const struct err *e)
{
	struct exec *x = arg;

	(void)body;
	(void)e;
	x->feed = NULL;
	if (!x->feeding)
		return;
	if (status == 0 || status == 503) {
		loop_arm(&x->loop, &x->feed_again, FEED_AGAIN_NS);
		return;
	}
	if (status != 200 || x->chunk_eof) { /* 409 and 410: the command reads no more */
		feed_stop(x);
		return;
	}
	x->fed += x->chunk_len;
	x->chunk_len = 0;
	wait_for_input(x);
}

static void post(struct exec *x)
{
	char path[128];
	struct http_spec s = { .method = "POST",
			       .path = path,
			       .body = x->chunk,
			       .body_len = x->chunk_len,
			       .done = on_fed,
			       .arg = x };
	struct err e = ERR_INIT;

	ignore_result(str_format(path, sizeof(path), "/v1/execs/%s/stdin?offset=%llu%s", x->id,
				 (unsigned long long)x->fed,
				 x->chunk_eof ? "&eof=1" : "")); /* it fits */
	if (http_start(x->http, &s, &x->feed, &e) < 0)
		exec_fail(x, &e);
}

/* Reads all that is there now, up to a chunk, so that the end of a short input goes along with its
 * last bytes. */
static void on_input(void *arg)
{
	struct exec *x = arg;

	if (!x->feeding || x->feed)
		return;
	while (x->chunk_len < FEED_CHUNK && !x->chunk_eof) {
		ssize_t k = source_read(&x->in, x->chunk + x->chunk_len, FEED_CHUNK - x->chunk_len);

		if (k == -EAGAIN)
			break;
		if (k <= 0) /* an input that cannot be read has ended */
			x->chunk_eof = true;
		else
			x->chunk_len += (size_t)k;
		if (x->in.kind == STDIO_POLLED)
			break;
	}
	if (x->chunk_len || x->chunk_eof)
		post(x);
	else
		wait_for_input(x);
}

static void on_again(struct loop_timer *t)
{
	struct exec *x = t->arg;

	if (x->feeding && !x->feed)
		post(x);
}

int feed_init(struct exec *x)
{
	x->feed_again = (struct loop_timer)LOOP_TIMER_INIT;
	x->feed_again.fn = on_again;
	x->feed_again.arg = x;
	if (!x->spec->use_stdin)
		return 0;
	x->chunk = malloc(FEED_CHUNK);
	if (!x->chunk)
		return -ENOMEM;
	source_init(&x->in, &x->loop, STDIN_FILENO, on_input, x);
	return 0;
}

void feed_begin(struct exec *x)
{
	if (!x->spec->use_stdin)
		return;
	x->feeding = true;
	wait_for_input(x);
}

void feed_restart(struct exec *x)
{
	if (!x->feeding || !x->feed)
		return;
	http_cancel(x->feed);
	x->feed = NULL;
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
	if (x->chunk)
		source_done(&x->in);
	free(x->chunk);
	x->chunk = NULL;
}
