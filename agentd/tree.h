/* SPDX-License-Identifier: Apache-2.0 */
#ifndef AGENTD_TREE_H
#define AGENTD_TREE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "lib/compiler.h"
#include "lib/loop.h"

/* All processes that an exec has brought forth, whatever they did to get away: double forks,
 * setsid, closed pipes. */
struct tree {
	struct loop *loop;
	int cgroup_fd;	  /* owned; -1 without cgroups */
	pid_t leader;	  /* also the id of its session; 0 before tree_started */
	bool leader_gone; /* reaped: its number may be a stranger's */
	uint32_t tag;	  /* without cgroups: the timer slack that marks its processes, in ns */
	uint64_t born;	  /* clock ticks since boot; no member is older */
	struct loop_timer again;
	int rounds;
	void (*gone)(void *arg); /* of tree_kill */
	void *arg;
};

/* Before the start: makes the group, or picks a mark. */
void tree_prepare(struct tree *t, struct loop *l);
int tree_child(const struct tree *t) MUST_CHECK; /* in the child: takes the mark */
void tree_started(struct tree *t, pid_t leader);

/* As a terminal that is hung up does: HUP, and CONT so that stopped ones see it, to the members of the
 * leader's session. The leader must not have been reaped. */
void tree_hangup(const struct tree *t);

/* Sends SIG to every process. 0, or -ESRCH when there is none. */
int tree_signal(struct tree *t, int sig) MUST_CHECK;

/* Kills all of it, again and again until nothing is left or 5 s have passed; then GONE is called,
 * from the loop. */
void tree_kill(struct tree *t, void (*gone)(void *arg), void *arg);

/* Without cgroups, where one pass over /proc serves all trees: sends SIG to every descendant of
 * agentd. */
void tree_signal_all(int sig);

bool tree_oom(const struct tree *t); /* the OOM killer struck in it */
void tree_done(struct tree *t);	     /* forgets it; what still runs, runs on */

#endif
