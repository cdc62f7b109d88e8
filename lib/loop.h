/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_LOOP_H
#define ASB_LOOP_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "compiler.h"

/*
 * One epoll loop, single-threaded. Watches, timers and preparers are embedded in the caller's objects and never
 * owned by the loop. A callback may remove or free any watch or timer, its own too: events that were already
 * fetched for a removed watch are dropped.
 */
struct loop;
struct loop_watch;
struct loop_timer;

typedef void loop_watch_fn(struct loop_watch *w,
			   uint32_t events); /* EPOLLIN, EPOLLOUT, EPOLLHUP, EPOLLERR */
typedef void loop_timer_fn(struct loop_timer *t);

struct loop_watch {
	int fd;		 /* borrowed; -1 while not in a loop */
	uint32_t events; /* as set last */
	loop_watch_fn *fn;
	void *arg;	   /* the caller's */
	struct loop *loop; /* points to the loop while added */
};

struct loop_timer {
	int64_t at_ns; /* CLOCK_MONOTONIC */
	loop_timer_fn *fn;
	void *arg;
	struct loop *loop; /* NULL while not armed */
	struct loop_timer *next, *prev;
};

/* Asked before every wait. Returns the longest wait it allows in ms, or -1 for no limit. */
struct loop_prepare {
	int (*fn)(void *arg);
	void *arg;
	struct loop_prepare *next;
};

#define LOOP_BATCH 64

struct loop {
	int epfd;
	bool stop;
	struct loop_timer *timers; /* soonest first */
	struct loop_prepare *prepares;
	void *batch[LOOP_BATCH]; /* watches whose events are being delivered */
	int batch_len, batch_at;
	/* signals */
	struct loop_watch sigwatch;
	void (*on_signal)(void *arg, const void *siginfo); /* struct signalfd_siginfo */
	void *signal_arg;
};

#define LOOP_WATCH_INIT                 \
	{                               \
		-1, 0, NULL, NULL, NULL \
	}
#define LOOP_TIMER_INIT                         \
	{                                       \
		0, NULL, NULL, NULL, NULL, NULL \
	}

int loop_init(struct loop *l) MUST_CHECK; /* 0 or negative errno */
void loop_done(struct loop *l);

/* CLOCK_MONOTONIC in ns. Stands still while the VM is stopped, as timeouts of commands want. */
int64_t loop_now(void);

/* Adds FD; EVENTS 0 is allowed (only EPOLLHUP and EPOLLERR are told then). Set w->fn and w->arg before. */
int loop_add(struct loop *l, struct loop_watch *w, int fd, uint32_t events) MUST_CHECK;
int loop_set(struct loop_watch *w, uint32_t events) MUST_CHECK;
void loop_del(struct loop_watch *w); /* fine when not added; does not close the descriptor */

/* (Re)arms T to fire once in AFTER_NS (at once when <= 0). */
void loop_arm(struct loop *l, struct loop_timer *t, int64_t after_ns);
void loop_disarm(struct loop_timer *t); /* fine when not armed */

void loop_add_prepare(struct loop *l, struct loop_prepare *p);
void loop_del_prepare(struct loop *l,
		      struct loop_prepare *p); /* not from inside a preparer; fine when not added */

/*
 * Blocks the signals of SET for the process and delivers them to FN from the loop. Once per loop. With SIGCHLD in SET
 * children can be waited for (proc_keep_children).
 */
int loop_signals(struct loop *l, const sigset_t *set, void (*fn)(void *arg, const void *siginfo),
		 void *arg) MUST_CHECK;

/* Runs until loop_stop. 0 or a negative errno of epoll_wait(2). */
int loop_run(struct loop *l) MUST_CHECK;

/* One wait of at most MAX_MS (-1: as long as timers allow) and its callbacks. */
int loop_once(struct loop *l, int max_ms) MUST_CHECK;
void loop_stop(struct loop *l);

#endif
