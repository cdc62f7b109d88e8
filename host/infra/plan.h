/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_INFRA_PLAN_H
#define ASB_INFRA_PLAN_H

#include <stdbool.h>
#include <stddef.h>

#include "host/infra/record.h"

/*
 * What to do, as a pure function of what is wanted (sandbox.yaml), recorded (infra-state.json) and there (AWS). Both `preview` and
 * `up` are this and the same plan.
 */
enum plan_verb {
	PLAN_KEEP,  /* as it should be */
	PLAN_REUSE, /* sandbox.yaml gives one; only used */
	PLAN_ADOPT, /* it was there before us: used, never deleted */
	PLAN_CREATE,
	PLAN_UPLOAD,
	PLAN_UPDATE,
	PLAN_REPLACE, /* deleted (or waited for its deletion), and made anew */
	PLAN_WAIT,    /* somebody is making it; waited for */
	PLAN_DELETE,
	PLAN_LEAVE,  /* destroy: not ours */
	PLAN_FORGET, /* the record goes, the thing stays */
	PLAN_REFUSE, /* nothing at all is done, for the reason of this step */
	PLAN_VERB_COUNT
};
extern const char *const plan_verbs[PLAN_VERB_COUNT]; /* "keep", … */

enum plan_state { PLAN_NONE, PLAN_READY, PLAN_BUSY, PLAN_FAILED, PLAN_DELETING };

struct plan_want { /* borrowed */
	bool wanted, given;
	const char *name;
};

struct plan_have { /* borrowed */
	bool recorded, managed, creating;
	bool renamed;	       /* what is recorded has another name than is wanted */
	const char *name;      /* of what is recorded */
	enum plan_state state; /* of the one that is wanted */
	const char *differs;   /* what of it is not as wanted; NULL = nothing */
};

struct plan_step {
	enum infra_res res;
	enum plan_verb verb;
	const char *name; /* borrowed */
	const char *why;  /* static, or HAVE's differs */
};
struct plan {
	struct plan_step steps[2 * RES_COUNT];
	size_t len;
};

/* In the order in which it is to be done: what goes away comes last, first what hangs on the others. */
void plan_up(const struct plan_want want[RES_COUNT], const struct plan_have have[RES_COUNT],
	     bool rebuild, struct plan *ret);
/* LIVE: sandboxes of the image live. */
void plan_destroy(const struct plan_have have[RES_COUNT], bool live, struct plan *ret);

const struct plan_step *plan_refusal(const struct plan *p); /* NULL = none */
size_t plan_changes(const struct plan *p);		    /* steps that do something to AWS */
bool plan_builds(const struct plan *p);			    /* the image, from the guest folder */

#endif
