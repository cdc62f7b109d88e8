/* SPDX-License-Identifier: Apache-2.0 */
#include "host/infra/plan.h"

#include <string.h>

/*
 * Whose something is decides what may happen to it. "managed" in the record means that we made it: we change, replace and delete it.
 * What was there before we looked is adopted, and what sandbox.yaml gives is reused: neither is ever changed or deleted. A record
 * with "creating" was written when the thing did not exist, right before making it; if it exists now, it is ours and half made.
 */

const char *const plan_verbs[PLAN_VERB_COUNT] = {
	[PLAN_KEEP] = "keep",	    [PLAN_REUSE] = "reuse",   [PLAN_ADOPT] = "adopt",
	[PLAN_CREATE] = "create",   [PLAN_UPLOAD] = "upload", [PLAN_UPDATE] = "update",
	[PLAN_REPLACE] = "replace", [PLAN_WAIT] = "wait",     [PLAN_DELETE] = "delete",
	[PLAN_LEAVE] = "leave",	    [PLAN_FORGET] = "forget", [PLAN_REFUSE] = "refuse",
};

static void add(struct plan *p, enum infra_res res, enum plan_verb verb, const char *name,
		const char *why)
{
	p->steps[p->len++] = (struct plan_step){ res, verb, name, why };
}

/* Of one that is there and works. */
static enum plan_verb when_ready(const struct plan_have *h, bool rebuild, const char **why)
{
	if (!h->recorded || !h->managed) {
		*why = h->recorded ? "it was there before this stack"
				   : "it is there already; destroy will not delete it";
		if (rebuild)
			*why = "--rebuild, although it was there before this stack";
		return rebuild ? PLAN_UPDATE : PLAN_ADOPT;
	}
	if (h->creating)
		*why = "the last run ended in the middle of making it";
	else if (h->differs)
		*why = h->differs;
	else if (rebuild)
		*why = "--rebuild";
	else
		*why = "as it should be";
	return h->creating || h->differs || rebuild ? PLAN_UPDATE : PLAN_KEEP;
}

static enum plan_verb when_there(const struct plan_have *h, bool rebuild, const char **why)
{
	switch (h->state) {
	case PLAN_NONE:
		*why = !h->recorded  ? "there is none"
		       : h->creating ? "the last run ended before it was made"
				     : "it is gone from AWS";
		return PLAN_CREATE;
	case PLAN_BUSY:
		*why = "it is being made";
		return PLAN_WAIT;
	case PLAN_DELETING:
		*why = "the old one is being deleted";
		return PLAN_REPLACE;
	case PLAN_FAILED:
		*why = h->recorded && h->managed
			       ? "making it has failed the last time"
			       : "it has failed, and is not this stack's: delete it, or use another name";
		return h->recorded && h->managed ? PLAN_REPLACE : PLAN_REFUSE;
	case PLAN_READY:
		break;
	}
	return when_ready(h, rebuild, why);
}

static void plan_one(struct plan *p, enum infra_res res, const struct plan_want *w,
		     const struct plan_have *have, bool rebuild)
{
	struct plan_have h = *have;
	const char *why = "";
	enum plan_verb verb;

	if (h.recorded && h.managed && (h.renamed || w->given)) {
		add(p, res, PLAN_REFUSE, w->name,
		    "this stack has made one of another name: asb infra destroy first, or keep the old name");
		return;
	}
	if (h.renamed) /* and not ours: it is forgotten by what is recorded now */
		h.recorded = h.creating = false;
	if (w->given) {
		add(p, res, h.state == PLAN_NONE ? PLAN_REFUSE : PLAN_REUSE, w->name,
		    h.state == PLAN_NONE ? "sandbox.yaml gives it, and it does not exist"
					 : "sandbox.yaml gives it");
		return;
	}
	verb = when_there(&h, rebuild, &why);
	add(p, res, verb, w->name, why);
}

static bool builds(const struct plan_step *s)
{
	return s->res == RES_IMAGE &&
	       (s->verb == PLAN_CREATE || s->verb == PLAN_UPDATE || s->verb == PLAN_REPLACE);
}

/* The guest folder is uploaded for a build, unless the same bytes are there. Its step stands before the image's. */
static void plan_object(struct plan *p, const struct plan_want *w, const struct plan_have *h)
{
	struct plan_step image = p->steps[p->len - 1];

	if (!builds(&image))
		return;
	p->len--;
	if (h->state == PLAN_READY)
		add(p, RES_OBJECT, PLAN_KEEP, w->name, "the same bytes are there");
	else
		add(p, RES_OBJECT, PLAN_UPLOAD, w->name, "the build needs it");
	p->steps[p->len++] = image;
}

static void plan_unwanted(struct plan *p, const struct plan_have have[RES_COUNT],
			  const struct plan_want want[RES_COUNT])
{
	for (size_t i = RES_COUNT; i-- > 0;) {
		const struct plan_have *h = &have[i];

		if (i == RES_OBJECT || want[i].wanted || !h->recorded)
			continue;
		add(p, (enum infra_res)i, h->managed ? PLAN_DELETE : PLAN_FORGET, h->name,
		    "it is no longer in sandbox.yaml");
	}
}

void plan_up(const struct plan_want want[RES_COUNT], const struct plan_have have[RES_COUNT],
	     bool rebuild, struct plan *ret)
{
	ret->len = 0;
	for (size_t i = 0; i < RES_COUNT; i++) {
		if (i == RES_OBJECT || !want[i].wanted)
			continue;
		plan_one(ret, (enum infra_res)i, &want[i], &have[i], rebuild && i == RES_IMAGE);
		if (i == RES_IMAGE)
			plan_object(ret, &want[RES_OBJECT], &have[RES_OBJECT]);
	}
	plan_unwanted(ret, have, want);
}

void plan_destroy(const struct plan_have have[RES_COUNT], bool live, struct plan *ret)
{
	static const enum infra_res order[] = { RES_CONNECTOR,	RES_GROUP,  RES_OPERATOR,
						RES_IMAGE,	RES_OBJECT, RES_BUCKET,
						RES_BUILD_ROLE, RES_ROLE };

	_Static_assert(sizeof(order) / sizeof(order[0]) == RES_COUNT,
		       "every resource has its turn");
	ret->len = 0;
	for (size_t i = 0; i < RES_COUNT; i++) {
		const struct plan_have *h = &have[order[i]];

		if (!h->recorded)
			continue;
		if (!h->managed)
			add(ret, order[i], PLAN_LEAVE, h->name, "it was there before this stack");
		else if (order[i] == RES_IMAGE && live)
			add(ret, order[i], PLAN_REFUSE, h->name,
			    "sandboxes of it live: asb rm them, or give --force, which ends them");
		else
			add(ret, order[i], PLAN_DELETE, h->name, "this stack has made it");
	}
}

const struct plan_step *plan_refusal(const struct plan *p)
{
	for (size_t i = 0; i < p->len; i++)
		if (p->steps[i].verb == PLAN_REFUSE)
			return &p->steps[i];
	return NULL;
}

size_t plan_changes(const struct plan *p)
{
	size_t n = 0;

	for (size_t i = 0; i < p->len; i++) {
		enum plan_verb v = p->steps[i].verb;

		n += v == PLAN_CREATE || v == PLAN_UPLOAD || v == PLAN_UPDATE ||
		     v == PLAN_REPLACE || v == PLAN_DELETE;
	}
	return n;
}

bool plan_builds(const struct plan *p)
{
	for (size_t i = 0; i < p->len; i++) {
		enum plan_verb v = p->steps[i].verb;

		if (p->steps[i].res == RES_IMAGE &&
		    (v == PLAN_CREATE || v == PLAN_UPDATE || v == PLAN_REPLACE))
			return true;
	}
	return false;
}
