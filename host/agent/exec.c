/* SPDX-License-Identifier: Apache-2.0 */
#include "host/agent/exec.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "host/agent/compat.h"
#include "host/agent/exec_int.h"
#include "host/backend.h"
#include "lib/str.h"

/*
 * One command from start to end, as a small machine:
 *
 *	START --201--> FOLLOW --exit event--> EXITED --all written--> KILL --DELETE sent--> OVER
 *	  |  refused      |  ^ cut: resume       |                     ^
 *	  +----> OVER     +--+                   +---- signal, stdout --+
 *	                                               gone, deadline
 *
 * What ends it calls exec_over or exec_fail; the loop then stops, and everything is released in one
 *place, so no callback has to. Requests in order on one connection; a second one is opened only
 *when stdin or a signal is sent while the output is being followed.
 */

void exec_over(struct exec *x, int r)
{
	if (x->phase == PHASE_OVER)
		return;
	x->phase = PHASE_OVER;
	x->ret = r;
	loop_stop(&x->loop);
}

void exec_fail(struct exec *x, const struct err *e)
{
	if (x->phase == PHASE_OVER)
		return;
	if (x->err && x->err != e)
		*x->err = *e;
	exec_over(x, e->errnum > 0 ? -e->errnum : -EIO);
}

void exec_path(const struct exec *x, const char *rest, char out[static EXEC_PATH_MAX])
{
	ignore_result(str_format(out, EXEC_PATH_MAX, "/v1/execs/%s%s", x->id, rest)); /* it fits */
}

bool exec_machine_lives(struct exec *x, struct err *e)
{
	const struct exec_spec *s = x->spec;
	struct sandbox_info i;
	int r = s->backend->info(s->id, &i, NULL);

	if (r == -ENOENT) {
		(void)err_set(e, ERR_NOT_FOUND, 0, "the sandbox's machine is gone");
		return false;
	}
	if (r < 0)
		return true; /* not known: the limits on attempts decide */
	switch (i.state) {
	case SANDBOX_TERMINATING:
	case SANDBOX_TERMINATED:
		(void)err_set(e, ERR_UNAVAILABLE, 0, "the sandbox has ended%s%s",
			      i.reason[0] ? ": " : "", i.reason);
		return false;
	case SANDBOX_SUSPENDED:
	case SANDBOX_SUSPENDING:
		if (x->phase != PHASE_START)
			return true;
		(void)err_set(e, ERR_UNAVAILABLE, 0, "the sandbox is stopped");
		return false;
	case SANDBOX_UNKNOWN:
	case SANDBOX_PENDING:
	case SANDBOX_RUNNING:
	case SANDBOX_STATE_COUNT:
		break;
	}
	return true;
}

bool exec_suspended(struct exec *x)
{
	const struct exec_spec *s = x->spec;
	struct sandbox_info i;

	return s->backend->info(s->id, &i, NULL) == 0 &&
	       (i.state == SANDBOX_SUSPENDED || i.state == SANDBOX_SUSPENDING);
}

static void on_tick(struct loop_timer *t)
{
	struct exec *x = t->arg;

	x->spec->tick(x->spec->tick_arg, x->offset);
	loop_arm(&x->loop, t, EXEC_TICK_NS);
}

static int begin(struct exec *x, struct err *e)
{
	int r = follow_init(x);

	x->tick = (struct loop_timer)LOOP_TIMER_INIT;
	x->tick.fn = on_tick;
	x->tick.arg = x;
	if (x->spec->tick)
		loop_arm(&x->loop, &x->tick, EXEC_TICK_NS);
	if (r == 0)
		r = feed_init(x);
	if (r == 0)
		r = stop_init(x);
	if (r == 0)
		r = term_begin(x);
	if (r < 0)
		return err_set(e, ERR_INTERNAL, -r, "preparing the standard streams");
	r = http_open(&x->loop, x->spec->backend, x->spec->id, &x->http, e);
	return r < 0 ? r : start_begin(x, e);
}

static void release(struct exec *x)
{
	loop_disarm(&x->tick);
	start_done(x);
	follow_done(x);
	feed_done(x);
	stop_done(x);
	term_done(x);
	http_free(x->http);
	loop_done(&x->loop);
	free(x);
}

int exec_run(const struct exec_spec *s, struct exec_result *ret, struct err *e)
{
	struct exec *x = calloc(1, sizeof(*x));
	bool compat, had_input;
	sigset_t before;
	int r;

	*ret = (struct exec_result){ .end = EXEC_ENDED };
	for (int i = 0; i < 2; i++)
		buf_init(&ret->output[i], s->capture_max ? s->capture_max : EXEC_CAPTURE_MAX);
	if (!x)
		return err_set(e, ERR_INTERNAL, ENOMEM, "running the command");
	x->spec = s;
	x->res = ret;
	x->err = e;
	if (s->attach) {
		ignore_result(str_format(x->id, sizeof(x->id), "%s", s->attach)); /* it fits */
		memcpy(ret->id, x->id, sizeof(x->id));
		x->offset = s->offset;
		x->fed = s->fed;
		x->fresh = true;
	}
	(void)sigprocmask(SIG_BLOCK, NULL, &before);
	r = loop_init(&x->loop);
	if (r < 0) {
		free(x);
		return err_set(e, ERR_INTERNAL, -r, "running the command");
	}
	r = begin(x, e);
	if (r == 0 && x->phase != PHASE_OVER) {
		r = loop_run(&x->loop);
		if (r < 0)
			r = err_set(e, ERR_INTERNAL, -r, "waiting for the command");
	}
	if (r == 0)
		r = x->ret;
	compat = r == 0 && x->no_route;
	had_input = x->have > 0;
	release(x);
	if (!compat)
		return r;
	(void)sigprocmask(SIG_SETMASK, &before, NULL);
	return compat_exec(s, had_input, ret, e);
}

void exec_result_done(struct exec_result *r)
{
	buf_done(&r->output[0]);
	buf_done(&r->output[1]);
}
