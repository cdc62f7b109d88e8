/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_AGENT_EXEC_INT_H
#define ASB_AGENT_EXEC_INT_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "host/agent/exec.h"
#include "host/agent/frames.h"
#include "host/agent/http.h"
#include "host/agent/keys.h"
#include "host/agent/stdio.h"
#include "host/agent/term.h"
#include "lib/compiler.h"
#include "lib/err.h"
#include "lib/loop.h"

/* Shared by the files of the exec client: exec.c (the whole), start.c, follow.c (output), feed.c
 * (input), stop.c. */

enum exec_phase {
	PHASE_START,  /* PUT is under way or tried again */
	PHASE_FOLLOW, /* it runs */
	PHASE_EXITED, /* its exit event is here: the rest of the output is being written */
	PHASE_KILL,   /* DELETE is under way, then the end */
	PHASE_OVER
};

#define FEED_CHUNK (256U << 10)

#define EXEC_PATH_MAX (EXEC_ID_MAX + 80) /* of any request below /v1/execs/{id} */

struct exec {
	const struct exec_spec *spec;
	struct exec_result *res;
	struct err *err;
	int ret; /* what exec_run returns */
	enum exec_phase phase;
	bool no_route; /* the agent is not ours: compat.h */
	struct loop loop;
	struct http *http;
	char id[EXEC_ID_MAX + 1];
	struct loop_timer tick;

	/* start.c */
	struct buf request;
	struct http_call *start;
	struct loop_timer start_again; /* after a failure; while START is under way: its limit */
	int64_t start_until;
	bool streamed; /* the answer is the output, so that the agent forgets the exec by itself too */
	bool whole;    /* the request has all of our input */

	/* follow.c */
	struct frames frames;
	struct http_call *follow;
	struct loop_timer follow_again, silence;
	struct sink out[2];
	uint64_t offset; /* output bytes received */
	uint64_t piece_end;
	int64_t good_at; /* when something came last */
	unsigned attempts;
	bool paused;
	bool fresh; /* nothing has come since we attached */

	/* feed.c */
	struct source in;
	bool feeding;
	struct http_call *feed;
	struct loop_timer feed_again;
	struct keys keys;
	char *input; /* owned, FEED_CHUNK bytes */
	size_t have; /* bytes of it */
	size_t sent; /* of those, what waits for its answer */
	bool eof, sent_eof;
	bool repeat;  /* it is sent for a second time, so its offset matters */
	uint64_t fed; /* bytes that the agent has taken */

	/* term.c */
	struct term term; /* our own terminal */
	struct http_call *resize;
	struct loop_timer resize_again;
	char resize_body[64];
	bool resized; /* since the last request */

	/* stop.c */
	struct http_call *signal_call, *delete_call;
	struct loop_timer grace, deadline, last;
	const char *signal_to;
	bool hung_up; /* our terminal has gone, or we were asked to go */
	char signal_body[64];
};

/* What is below /v1/execs/{id} of X, into OUT. */
void exec_path(const struct exec *x, const char *rest, char out[static EXEC_PATH_MAX]);
/* Ends the run: R is what exec_run returns. */
void exec_over(struct exec *x, int r);
/* Ends it with a failure that err_set has described in E (copied). */
void exec_fail(struct exec *x, const struct err *e);
/*
 * The state of the machine when the agent cannot be reached: true when it is worth trying again.
 * Else *E tells in plain words what became of the sandbox.
 */
bool exec_machine_lives(struct exec *x, struct err *e);
bool exec_suspended(struct exec *x);

int start_begin(struct exec *x, struct err *e) MUST_CHECK;
void start_done(struct exec *x);

#define FOLLOW_PIECE (512U << 10) /* bytes of output in one answer */

int follow_init(struct exec *x) MUST_CHECK;
/* The answer to PUT is the output: http_spec.data and .done of it, then. */
int follow_data(void *arg, const void *p, size_t n);
void follow_ended(void *arg, int status, const struct buf *body, const struct err *e);
void follow_taken(struct exec *x); /* X->follow is such a call, and its first bytes are here */
void follow_begin(struct exec *x);
void follow_stop(struct exec *x); /* no more output is wanted */
void follow_done(struct exec *x);

int feed_init(struct exec *x) MUST_CHECK;
/* Reads what is there already. True when that is all of the input. */
bool feed_early(struct exec *x);
void feed_begin(struct exec *x);
void feed_restart(struct exec *x); /* the connection was lost: the chunk is sent again */
void feed_stop(struct exec *x);
void feed_done(struct exec *x);

/* The body of PUT for S; INPUT: all of its input, N bytes, or NULL: that comes later. 0, -ENOMEM, -ENOSPC. */
int request_build(const struct exec_spec *s, const void *input, size_t n, struct buf *b) MUST_CHECK;

/* Our terminal, for a command that has one. */
int term_begin(struct exec *x) MUST_CHECK; /* raw from here on */
void term_resized(struct exec *x);	   /* tells the command our size */
void term_stop(struct exec *x);		   /* SIGTSTP: stops us, and goes on in raw mode */
void term_resumed(struct exec *x);	   /* SIGCONT */
void term_done(struct exec *x);

void stop_signals(
	sigset_t *set); /* that end us, but for those that were ignored when we were started */
int stop_init(struct exec *x) MUST_CHECK;
void stop_done(struct exec *x);
/* Our terminal is gone, or SIG asks us to go: the command's gets HUP, unless it was there before us. */
void stop_hang_up(struct exec *x, int sig);
/* Leaves the command running and ends the run. */
void stop_detach(struct exec *x);
/* Kills the tree, forgets the exec, then ends the run with END. */
void stop_kill(struct exec *x, enum exec_end end);
/* The command has ended and all is written: forgets the exec in the guest, then ends the run. */
void stop_tidy(struct exec *x);

#endif
