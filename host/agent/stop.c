/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>

#include "host/agent/exec_int.h"
#include "lib/signame.h"
#include "lib/str.h"

/*
 * Ends: signals that we get, our own deadline, and what is sent to the guest last.
 *
 * The first SIGINT, SIGTERM or SIGHUP goes to the command, as the terminal or a supervisor would
 * have sent it there. If the command is still there after GRACE_NS, a second signal comes, or the
 * guest does not answer, the whole tree is killed. A signal that was ignored when we were started
 * (nohup, a job in the background) stays ignored.
 *
 * With a terminal it is as with ssh: keys are the command's, and what ends us (SIGHUP, SIGTERM,
 * SIGQUIT, a terminal that fails) hangs up the command's terminal too. Its foreground
 * job and then its leader get HUP, as from a terminal that is closed, and HANG_NS to end; what has not ended then wanted to live on (nohup, tmux) and is left running.
 *
 * A command that we have attached to was there before us: it gets the first signal, but nothing
 * here kills or forgets it, and hanging up leaves it as it is.
 *
 * The timeout is the agent's to enforce, by the time that the machine ran; ours comes MARGIN_NS
 * later and only for an agent that does not.
 */

#define GRACE_NS  (10LL * 1000000000)
#define HANG_NS	  (2LL * 1000000000)
#define MARGIN_NS (10LL * 1000000000)
#define ASK_NS	  (3LL * 1000000000) /* for the guest to take a signal; it is stuck when it does not */
#define LAST_NS	  (2LL * 1000000000) /* for the last request to be answered */

static const int forwarded[] = { SIGINT, SIGTERM, SIGHUP };
static const int of_terminal[] = { SIGQUIT, SIGTSTP, SIGCONT, SIGWINCH };

/* Nobody waits any longer: what began with us ends with us, unless it had its hang-up. */
static void give_up(struct exec *x)
{
	if (x->hung_up || x->spec->attach) {
		x->res->end = EXEC_INTERRUPTED;
		exec_over(x, x->ret);
	} else {
		stop_kill(x, EXEC_INTERRUPTED);
	}
}

static void forward(struct exec *x, int sig, const char *to, int64_t grace_ns);

static void on_signal_sent(void *arg, int status, const struct buf *body, const struct err *e)
{
	struct exec *x = arg;

	(void)body;
	(void)e;
	x->signal_call = NULL;
	if (status <= 0) /* the guest does not answer: there is nothing to wait for */
		give_up(x);
	else if (x->hung_up && !strcmp(x->signal_to, "group"))
		forward(x, SIGHUP, "leader", HANG_NS);
}

static void forward(struct exec *x, int sig, const char *to, int64_t grace_ns)
{
	char path[EXEC_PATH_MAX];
	struct http_spec s = { .method = "POST",
			       .path = path,
			       .body = x->signal_body,
			       .limit_ns = ASK_NS,
			       .done = on_signal_sent,
			       .arg = x };
	struct err e = ERR_INIT;

	exec_path(x, "/signal", path);
	ignore_result(str_format(x->signal_body, sizeof(x->signal_body),
				 "{\"signal\":\"%s\",\"to\":\"%s\"}", signame(sig),
				 to)); /* it fits */
	x->signal_to = to;
	s.body_len = strlen(x->signal_body);
	loop_arm(&x->loop, &x->grace, grace_ns);
	http_cancel(x->signal_call);
	if (http_start(x->http, &s, &x->signal_call, &e) < 0)
		give_up(x);
}

void stop_hang_up(struct exec *x, int sig)
{
	if (x->hung_up || x->phase == PHASE_KILL || x->phase == PHASE_OVER)
		return;
	x->hung_up = true;
	x->res->own_signal = sig;
	feed_stop(x);
	if (x->phase == PHASE_START)
		stop_kill(x, EXEC_INTERRUPTED);
	else if (x->phase == PHASE_EXITED || x->spec->attach)
		give_up(x);
	else
		forward(x, SIGHUP, "group", HANG_NS); /* then the leader */
}

/* True when SIG is dealt with: those of a command with a terminal. */
static bool terminal_signal(struct exec *x, int sig)
{
	if (!x->spec->tty)
		return false;
	if (sig == SIGWINCH)
		term_resized(x);
	else if (sig == SIGTSTP)
		term_stop(x);
	else if (sig == SIGCONT)
		term_resumed(x);
	else if (sig != SIGINT)
		stop_hang_up(x, sig);
	return sig != SIGINT;
}

static void on_signal(void *arg, const void *siginfo)
{
	const struct signalfd_siginfo *si = siginfo;
	struct exec *x = arg;
	int sig = (int)si->ssi_signo;
	bool first = x->res->own_signal == 0;

	if (x->phase == PHASE_KILL || x->phase == PHASE_OVER) {
		if (!first)
			exec_over(x, x->ret);
		return;
	}
	if (terminal_signal(x, sig))
		return;
	x->res->own_signal = sig;
	if (first && x->phase == PHASE_FOLLOW && x->spec->watch == EXEC_TAKE_PART && !x->spec->kill)
		forward(x, sig, "group", GRACE_NS);
	else
		give_up(x);
}

static void on_grace(struct loop_timer *t)
{
	struct exec *x = t->arg;

	if (x->phase == PHASE_FOLLOW || x->phase == PHASE_EXITED)
		give_up(x);
}

static void on_deadline(struct loop_timer *t)
{
	struct exec *x = t->arg;

	if (x->phase != PHASE_START && x->phase != PHASE_FOLLOW)
		return;
	if (exec_suspended(x))
		loop_arm(&x->loop, &x->deadline, MARGIN_NS);
	else
		stop_kill(x, EXEC_TIMED_OUT);
}

/* --- the last request --- */

static void on_last(struct loop_timer *t)
{
	struct exec *x = t->arg;

	exec_over(x, x->ret);
}

static void on_deleted(void *arg, int status, const struct buf *body, const struct err *e)
{
	struct exec *x = arg;

	(void)status; /* the agent forgets by itself in the end */
	(void)body;
	(void)e;
	x->delete_call = NULL;
	exec_over(x, x->ret);
}

/* Without WAIT it is only sent. */
static void forget(struct exec *x, bool wait)
{
	char path[EXEC_PATH_MAX];
	struct http_spec s = {
		.method = "DELETE", .path = path, .limit_ns = LAST_NS, .done = on_deleted, .arg = x
	};
	struct err e = ERR_INIT;

	x->phase = PHASE_KILL;
	loop_disarm(&x->grace);
	loop_disarm(&x->deadline);
	feed_stop(x);
	exec_path(x, "", path);
	if (x->spec->leave || x->spec->attach || http_start(x->http, &s, &x->delete_call, &e) < 0)
		exec_over(x, x->ret);
	else
		loop_arm(&x->loop, &x->last, wait ? LAST_NS : 0);
}

void stop_kill(struct exec *x, enum exec_end end)
{
	if (x->phase == PHASE_KILL || x->phase == PHASE_OVER)
		return;
	x->res->end = end;
	follow_stop(x); /* it may have the request, when its answer is the output */
	start_done(x);
	forget(x, true);
}

void stop_detach(struct exec *x)
{
	x->res->end = EXEC_DETACHED;
	follow_stop(x);
	start_done(x);
	exec_over(x, 0);
}

/* An agent that forgets by itself is told, on the connection that stands, that it need not wait; libcurl's timer, which sends
 * it, is before ours. */
void stop_tidy(struct exec *x)
{
	follow_stop(x);
	forget(x, !x->streamed);
}

/* A signal that was ignored when we were started stays so. */
static void want(sigset_t *set, int sig)
{
	struct sigaction sa;

	if (sigaction(sig, NULL, &sa) == 0 && sa.sa_handler != SIG_IGN)
		(void)sigaddset(set, sig);
}

void stop_signals(sigset_t *set)
{
	(void)sigemptyset(set);
	for (size_t i = 0; i < ARRAY_LEN(forwarded); i++)
		want(set, forwarded[i]);
}

int stop_init(struct exec *x)
{
	sigset_t set;

	x->grace = x->deadline = x->last = (struct loop_timer)LOOP_TIMER_INIT;
	x->grace.fn = on_grace;
	x->deadline.fn = on_deadline;
	x->last.fn = on_last;
	x->grace.arg = x->deadline.arg = x->last.arg = x;
	if (x->spec->timeout_ns)
		loop_arm(&x->loop, &x->deadline, x->spec->timeout_ns + MARGIN_NS);
	stop_signals(&set);
	for (size_t i = 0; i < ARRAY_LEN(of_terminal) && x->spec->tty; i++)
		want(&set, of_terminal[i]);
	return loop_signals(&x->loop, &set, on_signal, x);
}

void stop_done(struct exec *x)
{
	loop_disarm(&x->grace);
	loop_disarm(&x->deadline);
	loop_disarm(&x->last);
	http_cancel(x->signal_call);
	http_cancel(x->delete_call);
	x->signal_call = x->delete_call = NULL;
}
