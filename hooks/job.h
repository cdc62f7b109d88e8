/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HOOKS_JOB_H
#define HOOKS_JOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent.h"
#include "child.h"
#include "lib/compiler.h"
#include "lib/httpd.h"
#include "lib/loop.h"
#include "once.h"
#include "payload.h"
#include "scripts.h"

/*
 * A hook that is being worked on: the steps of its phase, one after another, then one answer to
 * everybody who asked for it meanwhile. There is one job for each phase, so the same hook never
 * runs twice at a time.
 */
struct hooks {
	struct loop *loop;
	const char *bind_addr; /* all borrowed, for ever; NULL: every address */
	const char *agent_socket;
	const char *identity_path;
	const char *etc; /* /etc/asb */
	int64_t drain_ns;
	bool machine; /* host name, machine-id and clock are ours to set */
	struct once once;
};

#define JOB_WAITERS 64
#define JOB_MARGIN_NS \
	(200 * 1000000LL) /* for agentd's answer to a drain to arrive before we give up on it */

struct job;

enum step_result { STEP_DONE = 0, STEP_WAIT = 1 }; /* or a negative errno */

struct step {
	const char *name;
	/* Does something within LIMIT_NS. STEP_WAIT: job_go_on is called later, from the loop. */
	int (*fn)(struct job *j, int64_t limit_ns);
	int64_t limit_ns; /* 0: h->drain_ns and JOB_MARGIN_NS */
	bool must;	  /* its failure ends the job with 503; else it is logged */
};

#define STEPS_MAX 6

struct phase {
	const char *name;
	int64_t limit_ns; /* for all steps, to stay inside what the platform allows */
	bool drains;	  /* the drain time comes on top */
	bool once;	  /* one body for ever */
	bool payload; /* the body is read; where it is not `once`, a bad one is as good as none */
	struct step steps[STEPS_MAX + 1]; /* terminated by fn == NULL */
};

enum { JOB_PHASES = 7 };
extern const struct phase phases[JOB_PHASES];

struct waiter {
	struct httpd_req *r; /* NULL: free, or its client has gone */
};

struct job {
	struct hooks *h;
	const struct phase *phase;
	bool active;
	size_t step;
	int64_t end_ns;
	struct waiter waiter[JOB_WAITERS];
	struct payload payload;
	struct once_digest digest; /* of the body, phases with `once` */
	char generation[33];
	struct agent_call call;
	struct child child;
	size_t warm; /* the next program to run beforehand */
	int64_t warm_end_ns;
	struct scripts scripts;
	char env_words[4][256];
	char *env[8];
};

void job_init(struct job *j, struct hooks *h, const struct phase *phase);

/* R asks for the hook with BODY: starts the job, joins it, or is answered at once. */
void job_ask(struct job *j, struct httpd_req *r, const char *body, size_t n);

/* The step that waited is over: 0 or a negative errno. */
void job_go_on(struct job *j, int result);

#endif
