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
 */

#define START_NS       (30LL * 1000000000) /* for the answer, all attempts together */
#define START_AGAIN_NS (100LL * 1000000)

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

static void on_answer(void *arg, int status, const struct buf *body, const struct err *e)
{
	struct exec *x = arg;
	struct err busy = ERR_INIT;

	x->start = NULL;
	if (status == 200 || status == 201) {
		started(x);
	} else if (status == 0) {
		send_again(x, e);
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
	char path[EXEC_PATH_MAX];
	struct http_spec s = { .method = "PUT",
			       .path = path,
			       .body = x->request.p,
			       .body_len = x->request.len,
			       .limit_ns = START_NS,
			       .done = on_answer,
			       .arg = x };

	exec_path(x, "", path);
	return http_start(x->http, &s, &x->start, e);
}

static void on_again(struct loop_timer *t)
{
	struct exec *x = t->arg;
	struct err e = ERR_INIT;

	if (send_request(x, &e) < 0)
		exec_fail(x, &e);
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
	r = request_build(x->spec, &x->request);
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
