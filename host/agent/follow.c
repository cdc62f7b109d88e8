/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "host/agent/exec_int.h"
#include "lib/jsn.h"
#include "lib/str.h"

/*
 * Output. The answer to PUT (start.c), or one GET that follows the command; when it is cut it is asked again from the byte that was
 * received last, and nothing but an exit event ends the command. The agent says "alive" every 15
 * seconds when it has nothing else to say, so silence of SILENCE_NS is a dead connection (or a
 * suspended sandbox: then we wait on).
 *
 * Output is asked for in pieces of FOLLOW_PIECE bytes: what an answer carries may be lost on the way when
 * its connection breaks, and the agent keeps it until we have asked for the next one.
 *
 * Back-pressure: while a sink has bytes left over, libcurl is told to pause, so the guest's ring
 * fills and the command waits, as it would for a pipe.
 */

#define SILENCE_NS   (45LL * 1000000000)
#define END_NS	     (1LL * 1000000000)	 /* from the exit event to the end of the answer */
#define GIVE_UP_NS   (60LL * 1000000000) /* of attempts that bring nothing */
#define AGAIN_NS     (50LL * 1000000)
#define AGAIN_MAX_NS (2LL * 1000000000)

static void try_again(struct exec *x, const struct err *why)
{
	struct err e = *why;
	int64_t wait = x->attempts < 6 ? AGAIN_NS << x->attempts : AGAIN_MAX_NS;

	if (e.code == ERR_DENIED || !exec_machine_lives(x, &e)) {
		exec_fail(x, &e);
		return;
	}
	if (loop_now() - x->good_at > GIVE_UP_NS && !exec_suspended(x)) {
		exec_fail(x, &e);
		return;
	}
	x->attempts++;
	feed_restart(x);
	loop_arm(&x->loop, &x->follow_again, wait);
}

/* --- what comes --- */

static int keep(struct exec *x, int i, const void *p, size_t n)
{
	struct buf *b = &x->res->output[i];
	size_t room = b->cap - b->len;

	x->res->total[i] += n;
	if (n > room) {
		x->res->truncated = true;
		n = room;
	}
	return buf_add(b, p, n);
}

static int on_data(void *arg, int stream, const void *p, size_t n)
{
	struct exec *x = arg;
	int i = stream == PROTO_STREAM_STDOUT ? 0 : 1, r;

	x->offset += n;
	x->fresh = false;
	if (x->spec->tty && n)
		x->res->mid_line = ((const char *)p)[n - 1] != '\n';
	if (x->spec->capture)
		return keep(x, i, p, n);
	r = sink_write(&x->out[i], p, n);
	return i == 1 ? 0 : r; /* a stderr that nobody reads ends nothing */
}

static int on_gap(struct exec *x, const cJSON *j)
{
	uint64_t from = 0, to = 0;

	if (jsn_u64(j, "from", 0, 1ULL << 53, &from, NULL) != 1 ||
	    jsn_u64(j, "to", from, 1ULL << 53, &to, NULL) != 1 || to < x->offset)
		return -EPROTO;
	if (x->fresh) {
		x->res->skipped += to - x->offset;
	} else {
		x->res->lost += to - x->offset;
		x->res->truncated = true;
	}
	x->offset = to;
	return 0;
}

static int on_exit_event(struct exec *x, const cJSON *j)
{
	struct exec_result *res = x->res;
	uint64_t code = 0, sig = 0, ms = 0;
	bool timed_out = false, truncated = false;

	if (jsn_u64(j, "exit_code", 0, 255, &code, NULL) < 0 ||
	    jsn_u64(j, "signal", 1, 127, &sig, NULL) < 0 ||
	    jsn_bool(j, "timed_out", &timed_out, NULL) < 0 ||
	    jsn_bool(j, "oom", &res->oom, NULL) < 0 ||
	    jsn_bool(j, "truncated", &truncated, NULL) < 0 ||
	    jsn_u64(j, "duration_ms", 0, 1ULL << 53, &ms, NULL) < 0)
		return -EPROTO;
	res->exit_code = (int)code;
	res->signal = (int)sig;
	res->duration_ms = (int64_t)ms;
	res->truncated |= truncated;
	res->end = timed_out ? EXEC_TIMED_OUT : EXEC_ENDED;
	x->phase = PHASE_EXITED;
	loop_arm(&x->loop, &x->silence, END_NS);
	return 0;
}

static int on_event(void *arg, const char *json, size_t n)
{
	struct exec *x = arg;
	AUTO_JSN *j = jsn_parse(json, n, NULL);
	const char *what = "";

	if (!j || jsn_str(j, "event", &what, NULL) != 1)
		return -EPROTO;
	if (!strcmp(what, "gap"))
		return on_gap(x, j);
	if (!strcmp(what, "exit"))
		return on_exit_event(x, j);
	return 0; /* alive, and what a later agent may say */
}

static const struct frames_ops frames_ops = { .data = on_data, .event = on_event };

/* --- the request --- */

int follow_data(void *arg, const void *p, size_t n)
{
	struct exec *x = arg;

	if (x->phase != PHASE_FOLLOW)
		return 0;
	if (!sink_idle(&x->out[0]) || !sink_idle(&x->out[1])) {
		x->paused = true;
		return -EAGAIN;
	}
	x->good_at = loop_now();
	x->attempts = 0;
	loop_arm(&x->loop, &x->silence, SILENCE_NS);
	return frames_feed(&x->frames, p, n);
}

static void written(struct exec *x)
{
	if (x->phase == PHASE_EXITED && !x->follow && sink_idle(&x->out[0]) &&
	    sink_idle(&x->out[1]))
		stop_tidy(x);
}

static void write_failed(struct exec *x)
{
	if (x->phase == PHASE_KILL || x->phase == PHASE_OVER)
		return;
	if (x->spec->tty && x->out[0].error == -EIO) { /* a terminal that is gone */
		stop_hang_up(x, SIGHUP);
		return;
	}
	if (x->out[0].error == -EPIPE) {
		stop_kill(x, EXEC_READER_GONE);
		return;
	}
	x->ret = err_set(x->err, ERR_IO, -x->out[0].error, "cannot write to standard output");
	stop_kill(x, EXEC_INTERRUPTED);
}

void follow_ended(void *arg, int status, const struct buf *body, const struct err *e)
{
	struct exec *x = arg;
	struct err why = ERR_INIT;

	(void)body;
	x->follow = NULL;
	x->paused = false;
	loop_disarm(&x->silence);
	if (x->out[0].error) {
		write_failed(x);
	} else if (x->phase == PHASE_EXITED) {
		written(x);
	} else if (x->phase == PHASE_FOLLOW && status == 200 && x->offset >= x->piece_end) {
		follow_begin(x);
	} else if (x->phase == PHASE_FOLLOW && status == 200 && x->spec->watch == EXEC_WATCH_NOW) {
		x->phase = PHASE_EXITED; /* it runs, but this is what was asked for */
		written(x);
	} else if (x->phase != PHASE_FOLLOW) {
		return;
	} else if (status == 0 &&
		   e->code == ERR_INTERNAL) { /* no frames of ours: asking again gives no better */
		exec_fail(x, e);
	} else if (status == 404) {
		(void)err_set(
			&why, ERR_INTERNAL, 0,
			x->spec->attach
				? "the command is not there any more: it was removed, or its "
				  "end was told to whoever started it; its status is not known"
				: "the agent in the sandbox was restarted: what became of the "
				  "command is not known");
		exec_fail(x, &why);
	} else if (status == 416) {
		(void)err_set(&why, ERR_INVALID, 0, "the command has not written %llu bytes yet",
			      (unsigned long long)x->offset);
		exec_fail(x, &why);
	} else if (status != 0 && status != 200 && status != 503) {
		(void)err_set(&why, ERR_INTERNAL, 0,
			      "the agent answered %d when asked for the output", status);
		exec_fail(x, &why);
	} else {
		(void)err_set(&why, ERR_UNAVAILABLE, 0, "the output ended before the command did");
		try_again(x, status ? &why : e);
	}
}

void follow_begin(struct exec *x)
{
	char path[EXEC_PATH_MAX], rest[64];
	struct http_spec s = {
		.method = "GET", .path = path, .data = follow_data, .done = follow_ended, .arg = x
	};
	struct err e = ERR_INIT;

	frames_done(&x->frames);
	frames_init(&x->frames, &frames_ops, x);
	ignore_result(str_format(rest, sizeof(rest), "/output?offset=%llu%s&max=%u",
				 (unsigned long long)x->offset,
				 x->spec->watch == EXEC_WATCH_NOW ? "" : "&follow=1",
				 FOLLOW_PIECE)); /* it fits */
	exec_path(x, rest, path);
	x->piece_end = x->offset + FOLLOW_PIECE;
	if (!x->attempts)
		x->good_at = loop_now();
	loop_arm(&x->loop, &x->silence, SILENCE_NS);
	if (http_start(x->http, &s, &x->follow, &e) < 0)
		exec_fail(x, &e);
}

void follow_taken(struct exec *x)
{
	x->piece_end = x->offset + FOLLOW_PIECE;
	x->good_at = loop_now();
	loop_arm(&x->loop, &x->silence, SILENCE_NS);
}

static void on_again(struct loop_timer *t)
{
	follow_begin(t->arg);
}

static void on_silence(struct loop_timer *t)
{
	struct exec *x = t->arg;
	struct err e = ERR_INIT;

	if (x->phase == PHASE_EXITED) {
		http_cancel(x->follow);
		x->follow = NULL;
		x->streamed = false; /* the connection went with it: who forgets is waited for */
		written(x);
		return;
	}
	if (x->paused || exec_suspended(x)) {
		loop_arm(&x->loop, &x->silence, SILENCE_NS);
		return;
	}
	http_cancel(x->follow);
	x->follow = NULL;
	(void)err_set(&e, ERR_TIMEOUT, 0, "the agent in the sandbox has gone silent");
	try_again(x, &e);
}

/* A sink has written what it had, or failed. */
static void on_sink(void *arg)
{
	struct exec *x = arg;

	if (x->out[0].error) {
		write_failed(x);
		return;
	}
	if (x->paused && x->follow && sink_idle(&x->out[0]) && sink_idle(&x->out[1])) {
		x->paused = false;
		http_resume(x->follow);
	}
	written(x);
}

int follow_init(struct exec *x)
{
	int r = sink_init(&x->out[0], &x->loop, STDOUT_FILENO, on_sink, x);

	frames_init(&x->frames, &frames_ops, x);
	x->follow_again = x->silence = (struct loop_timer)LOOP_TIMER_INIT;
	x->follow_again.fn = on_again;
	x->silence.fn = on_silence;
	x->follow_again.arg = x->silence.arg = x;
	return r < 0 ? r : sink_init(&x->out[1], &x->loop, STDERR_FILENO, on_sink, x);
}

void follow_stop(struct exec *x)
{
	loop_disarm(&x->follow_again);
	loop_disarm(&x->silence);
	http_cancel(x->follow);
	x->follow = NULL;
}

void follow_done(struct exec *x)
{
	follow_stop(x);
	frames_done(&x->frames);
	sink_done(&x->out[0]);
	sink_done(&x->out[1]);
}
