/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>
#include <sys/random.h>

#include "host/agent/ask.h"
#include "host/agent/exec_int.h"
#include "lib/jsn.h"
#include "lib/str.h"

/*
 * PUT /v1/execs/{id} is idempotent under an id that we chose, so it is simply sent again when the
 * connection fails before the answer: a command is never started twice.
 *
 * With ?follow=1 the answer is the output, and with ?forget the agent forgets the exec some time after it has told the end: one round trip
 * for all. An agent that knows neither ignores them and answers with JSON; then GET and DELETE follow, each a round trip more.
 * What it does not know in the body is 400: then the input goes by itself.
 */

#define START_NS       (30LL * 1000000000) /* for the answer, all attempts together */
#define START_AGAIN_NS (100LL * 1000000)
#define FORGET_S \
	86400U /* after its end: whoever has not heard of it may sleep, while our clock stands and that of the guest does not */

static void without_input(struct exec *x);

/* The agent's "detail" and "step" of a refusal. */
static void read_refusal(const struct buf *body, char *detail, size_t size, bool *ret_at_exec)
{
	AUTO_JSN *j = body->len ? jsn_parse(body->p, body->len, NULL) : NULL;
	const char *s = NULL;

	ignore_result(str_format(detail, size, "no reason given"));
	if (!j)
		return;
	if (jsn_str(j, "detail", &s, NULL) == 1)
		ignore_result(str_format(detail, size, "%s", s)); /* cut is fine */
	*ret_at_exec = jsn_str(j, "step", &s, NULL) == 1 && strcmp(s, "exec") == 0;
}

static void refused(struct exec *x, int status, const struct buf *body)
{
	char detail[400];
	bool at_exec = false;
	struct err e = ERR_INIT;

	read_refusal(body, detail, sizeof(detail), &at_exec);
	if (at_exec && (status == 404 || status == 403)) {
		x->res->end = status == 404 ? EXEC_NO_COMMAND : EXEC_NOT_EXECUTABLE;
		(void)err_set(x->err, status == 404 ? ERR_NOT_FOUND : ERR_DENIED, 0, "%s", detail);
		exec_over(x, 0);
		return;
	}
	(void)err_set(&e,
		      status == 400   ? ERR_INVALID
		      : status == 429 ? ERR_FULL
				      : ERR_UNAVAILABLE,
		      0, "the sandbox cannot start '%.100s': %s", x->spec->argv[0], detail);
	exec_fail(x, &e);
}

static void send_again(struct exec *x, const struct err *why)
{
	struct err e = *why;

	if (e.code == ERR_DENIED || loop_now() > x->start_until || !exec_machine_lives(x, &e))
		exec_fail(x, &e);
	else
		loop_arm(&x->loop, &x->start_again, START_AGAIN_NS);
}

/* It runs. */
static void started(struct exec *x)
{
	x->phase = PHASE_FOLLOW;
	if (x->spec->detach) {
		stop_detach(x);
		return;
	}
	follow_begin(x);
	feed_begin(x);
	if (x->spec->attach)
		term_resized(x);
}

/* The first bytes of an answer that is the output: it runs. */
static void stream_begun(struct exec *x)
{
	loop_disarm(&x->start_again);
	x->follow = x->start;
	x->start = NULL;
	x->streamed = true;
	x->phase = PHASE_FOLLOW;
	follow_taken(x);
	feed_begin(x);
}

static int on_data(void *arg, const void *p, size_t n)
{
	struct exec *x = arg;

	if (x->start)
		stream_begun(x);
	return follow_data(x, p, n);
}

static void on_answer(void *arg, int status, const struct buf *body, const struct err *e)
{
	struct exec *x = arg;
	struct err busy = ERR_INIT;

	if (!x->start) { /* it was the output */
		follow_ended(x, status ? 200 : 0, body, e);
		return;
	}
	x->start = NULL;
	loop_disarm(&x->start_again);
	if (status == 200 || status == 201) {
		started(x);
	} else if (status == 0) {
		send_again(x, e);
	} else if (status == 400 && x->whole) {
		without_input(x);
	} else if (status == 503) { /* it drains for a suspension, and admits again soon */
		(void)err_set(&busy, ERR_UNAVAILABLE, 0,
			      "the agent in the sandbox does not admit commands now");
		send_again(x, &busy);
	} else if (ask_no_route(status, body)) {
		x->no_route = true;
		exec_over(x, 0);
	} else {
		refused(x, status, body);
	}
}

static int send_request(struct exec *x, struct err *e)
{
	char path[EXEC_PATH_MAX], rest[64] = "";
	struct http_spec s = { .method = "PUT",
			       .path = path,
			       .body = x->request.p,
			       .body_len = x->request.len,
			       .data = on_data,
			       .data_type = "application/vnd.docker.multiplexed-stream",
			       .done = on_answer,
			       .arg = x };

	if (!x->spec->detach)
		ignore_result(str_format(rest, sizeof(rest), "?follow=1&max=%u&forget=%u",
					 FOLLOW_PIECE, FORGET_S)); /* it fits */
	exec_path(x, rest, path);
	loop_arm(&x->loop, &x->start_again, START_NS);
	return http_start(x->http, &s, &x->start, e);
}

static void send_or_fail(struct exec *x)
{
	struct err e = ERR_INIT;

	if (send_request(x, &e) < 0)
		exec_fail(x, &e);
}

static void without_input(struct exec *x)
{
	x->whole = false;
	buf_done(&x->request);
	if (request_build(x->spec, NULL, 0, &x->request) == 0) {
		send_or_fail(x);
		return;
	}
	ignore_result(err_set(x->err, ERR_INTERNAL, ENOMEM, "the request"));
	exec_over(x, -ENOMEM);
}

static void on_again(struct loop_timer *t)
{
	struct exec *x = t->arg;
	struct err e = ERR_INIT;

	if (!x->start) {
		send_or_fail(x);
		return;
	}
	http_cancel(x->start);
	x->start = NULL;
	(void)err_set(&e, ERR_TIMEOUT, ETIMEDOUT, "the agent in the sandbox does not answer");
	send_again(x, &e);
}

int start_begin(struct exec *x, struct err *e)
{
	unsigned char random[16];
	int r;

	if (x->spec->attach) {
		started(x);
		return 0;
	}
	if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random))
		return err_set(e, ERR_INTERNAL, errno, "getrandom");
	str_hex(random, sizeof(random), x->id);
	memcpy(x->res->id, x->id, sizeof(x->id));
	x->start_again = (struct loop_timer)LOOP_TIMER_INIT;
	x->start_again.fn = on_again;
	x->start_again.arg = x;
	x->start_until = loop_now() + START_NS;
	x->whole = feed_early(x);
	r = request_build(x->spec, x->whole ? x->input : NULL, x->have, &x->request);
	return r < 0 ? err_set(e, ERR_TOO_BIG, -r, "the command and its variables")
		     : send_request(x, e);
}

void start_done(struct exec *x)
{
	loop_disarm(&x->start_again);
	http_cancel(x->start);
	x->start = NULL;
	buf_done(&x->request);
}
