/* SPDX-License-Identifier: Apache-2.0 */
#ifndef INIT_SUP_H
#define INIT_SUP_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/compiler.h"
#include "lib/loop.h"
#include "lib/proc.h"

/*
 * Supervision of the few services that asb-init starts: a table of states and events (sup.c), a
 * restart with back-off, and the notify descriptor by which a service says that it listens. Lives
 * as long as the process.
 */
enum sup_state {
	SUP_DOWN,     /* not to run */
	SUP_STARTING, /* runs, has not said that it listens */
	SUP_UP,	      /* runs and listens */
	SUP_BACKOFF,  /* ended; a timer starts it again */
	SUP_STOPPING, /* told to end */
	SUP_STATE_COUNT
};

enum sup_event { SUP_START, SUP_NOTIFY, SUP_EXIT, SUP_TIMER, SUP_STOP, SUP_EVENT_COUNT };

#define SUP_MAX		   4
#define SUP_BACKOFF_MIN_NS (100 * 1000000LL)
#define SUP_BACKOFF_MAX_NS (5000 * 1000000LL)
#define SUP_GOOD_NS \
	(10000 * 1000000LL) /* up for that long: the next end begins anew at the minimum */
#define SUP_READY_NS (30000 * 1000000LL) /* to the first notification of every service */

struct sup;

struct sup_service {
	struct sup *sup;
	const char *name; /* borrowed */
	char path[PATH_MAX];
	enum sup_state state;
	struct proc_child child;
	int notify_fd; /* owned: our end; -1 when none */
	struct loop_watch notify_watch;
	struct loop_timer timer;
	int64_t started_ns, backoff_ns;
	bool was_up; /* has notified at least once */
};

struct sup {
	struct loop *loop;
	char *const *env; /* borrowed; ASB_NOTIFY_FD and ASB_INIT_ID are added to it */
	int cgroup_fd;	  /* borrowed; -1 = ours */
	struct sup_service service[SUP_MAX];
	int n;
	char init_id[48]; /* "ASB_INIT_ID=…": another in every run of asb-init, so that a service
			     knows a restart from a new start */
	struct loop_timer deadline;
	/* Called once: with NULL when every service has notified, or with the name of one that has
	 * not when SUP_READY_NS is over (then again with NULL if it still comes). */
	void (*ready)(void *arg, const char *late);
	void *arg;
	bool told;
};

/* Zeroed S except for what the caller set in env, cgroup_fd, ready and arg. */
void sup_init(struct sup *s, struct loop *l);
int sup_add(struct sup *s, const char *name, const char *path)
	MUST_CHECK; /* 0, -ENFILE, -ENAMETOOLONG */
void sup_start(struct sup *s);
void sup_stop(struct sup *s);			       /* TERM to each, and no restart */
bool sup_exited(struct sup *s, pid_t pid, int status); /* from the reaper: was it one of ours? */
bool sup_running(const struct sup *s);

/* How long to wait before the next start, after a life of RAN_NS with the last wait of BACKOFF_NS
 * (0: none yet). Pure. */
int64_t sup_next_backoff(int64_t backoff_ns, int64_t ran_ns);

#endif
