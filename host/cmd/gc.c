/* SPDX-License-Identifier: Apache-2.0 */
#include <cJSON.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "host/cli/out.h"
#include "host/cmd/cmd.h"
#include "host/cmd/common.h"
#include "lib/jsn.h"
#include "lib/str.h"

/*
 * asb gc: the records against what lives on AWS. A MicroVM that no record names bills until it ends; a record whose MicroVM is gone is
 * only a name. What was started within FRESH_S is left alone: an `asb create` that runs now records the id when it has it. So is a
 * record without an id, whose create may run still. AWS does not tell who started a MicroVM (RunMicrovm takes no tags), so what is
 * to be ended is shown and asked about first.
 */

#define FRESH_S 180
#define GC_MAX	65536
#define LINE	600

struct thing {
	struct sandbox_info vm;		 /* its id is that of the record, when it is one */
	char name[SANDBOX_NAME_MAX + 1]; /* "" = a MicroVM without a record */
	bool recorded;
};

struct gc {
	struct thing *all; /* what lives; what goes, once plan() is done */
	size_t len;
	size_t vms, fresh, failed;
	bool dry;
	cJSON *ended, *forgotten; /* with --json */
};

static bool lives(const struct sandbox_info *i)
{
	return i->state != SANDBOX_TERMINATED && i->state != SANDBOX_TERMINATING;
}

static int add(struct gc *g, const struct thing *t)
{
	if (g->len >= GC_MAX)
		return -E2BIG;
	if ((g->len & (g->len - 1)) == 0) { /* room doubles at each power of two */
		struct thing *all = realloc(g->all, (g->len ? g->len * 2 : 1) * sizeof(*all));
		if (!all)
			return -ENOMEM;
		g->all = all;
	}
	g->all[g->len++] = *t;
	return 0;
}

static int on_machine(void *arg, const struct sandbox_info *i)
{
	const struct thing t = { .vm = *i };

	return lives(i) ? add(arg, &t) : 0;
}

/* One whose MicroVM is certainly gone joins what goes: a list may lag behind, so AWS is asked for that one. */
static int on_record(void *arg, const struct state_record *r)
{
	struct gc *g = arg;
	struct thing t = { .recorded = false };
	int rc;

	if (backend_of_id(r->microvm_id) != &backend_aws)
		return 0;
	for (size_t k = 0; k < g->len; k++)
		if (!g->all[k].name[0] && strcmp(g->all[k].vm.id, r->microvm_id) == 0) {
			g->all[k].recorded = true;
			return 0;
		}
	if (!backend_is_id(r->microvm_id)) /* the create may run still */
		return 0;
	rc = backend_aws.info(r->microvm_id, &t.vm, NULL);
	if ((rc < 0 && rc != -ENOENT) || (rc == 0 && lives(&t.vm)))
		return 0;
	rc = str_format(t.name, sizeof(t.name), "%s", r->name);
	if (rc == 0)
		rc = str_format(t.vm.id, sizeof(t.vm.id), "%s", r->microvm_id);
	return rc < 0 ? rc : add(g, &t);
}

/* Leaves in G->all what is to go. */
static int plan(struct gc *g, struct err *e)
{
	const int64_t now = (int64_t)time(NULL);
	size_t n = 0;
	int r = backend_aws.list(true, on_machine, g, e);

	if (r == 0)
		r = state_each(on_record, g, e);
	if (r < 0)
		return r;
	for (size_t k = 0; k < g->len; k++) {
		const struct thing *t = &g->all[k];

		if (t->recorded)
			continue;
		if (!t->name[0] && t->vm.created_s + FRESH_S > now) {
			g->fresh++;
			continue;
		}
		g->vms += !t->name[0];
		g->all[n++] = *t;
	}
	g->len = n;
	return 0;
}

/* --- telling --- */

static int tell_json(struct gc *g, const struct thing *t)
{
	cJSON *j = cJSON_CreateObject(), *list = t->name[0] ? g->forgotten : g->ended;

	if (!j || !cJSON_AddItemToArray(list, j)) {
		cJSON_Delete(j);
		return -ENOMEM;
	}
	return jsn_add_str(j, "id", t->vm.id) &&
			       (t->name[0] ? jsn_add_str(j, "name", t->name)
					   : jsn_add_str(j, "image", t->vm.image) &&
						     jsn_add_str(j, "region", t->vm.region))
		       ? 0
		       : -ENOMEM;
}

static int tell(struct gc *g, const struct thing *t, bool done)
{
	char when[32] = "an unknown time", line[LINE];
	const char *image = strrchr(t->vm.image, ':');
	time_t at = (time_t)t->vm.created_s;
	struct tm tm;

	if (g->ended)
		return done || g->dry ? tell_json(g, t) : 0;
	if (t->name[0])
		return out_line("%s %s (%s has ended)", done ? "forgot" : "would forget", t->name,
				t->vm.id);
	if (at > 0 && gmtime_r(&at, &tm) &&
	    !strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%SZ", &tm))
		when[0] = '\0';
	ignore_result(str_format(line, sizeof(line), "%s %s (%s, %s, since %s)",
				 done ? "ended" : "would end", t->vm.id,
				 image ? image + 1 : t->vm.image, t->vm.region,
				 when)); /* a cut name of an image is fine */
	return out_line("%s", line);
}

/* --- doing --- */

static int match(void *arg, const struct state_record *r)
{
	return strcmp(r->microvm_id, arg) == 0;
}

/* Somebody may have recorded it while the question was asked. */
static int do_one(struct gc *g, struct thing *t)
{
	struct err e = ERR_INIT;
	int r;

	if (t->name[0]) { /* as asb rm */
		r = backend_aws.remove(t->vm.id, &e);
		if (r == 0)
			r = state_remove(t->name, t->vm.id, &e);
	} else {
		r = state_each(match, t->vm.id, &e);
		if (r == 1)
			return 0;
		if (r == 0)
			r = backend_aws.remove_listed(&t->vm, &e);
	}
	if (r == 0)
		return tell(g, t, true);
	g->failed++;
	out_warn("%s: %s", t->vm.id, e.msg);
	return 0;
}

static int ask(const struct gc *g, struct err *e)
{
	char text[240];

	if (!g->vms)
		return 1; /* names of what is gone are nobody's loss */
	ignore_result(str_format(
		text, sizeof(text),
		"No record of yours has these %zu; others who use the account may. End %s? [y/N] ",
		g->vms, g->vms == 1 ? "it" : "them")); /* it fits */
	return cmd_ask(text, "-y says so", e);
}

static int collect(const struct cli *c, struct gc *g, struct err *e)
{
	bool asks = !g->dry && !c->val[OPT_YES].set;
	int r = plan(g, e);

	for (size_t k = 0; k < g->len && r == 0 && (g->dry || (asks && g->vms)); k++)
		r = tell(g, &g->all[k], false);
	if (r == 0 && g->fresh)
		out_note("%zu started within the last %d minutes and left alone", g->fresh,
			 FRESH_S / 60);
	if (r == 0 && asks)
		r = ask(g, e);
	if (r == 0 && asks)
		return 0; /* no */
	for (size_t k = 0; k < g->len && r >= 0 && !g->dry; k++)
		r = do_one(g, &g->all[k]);
	return r < 0 ? r : 0;
}

int cmd_gc(const struct cli *c)
{
	struct gc g = { .dry = c->val[OPT_DRY_RUN].set };
	AUTO_JSN *doc = out_json_wanted() ? cJSON_CreateObject() : NULL;
	struct err e = ERR_INIT;
	cJSON *give = doc;
	int r;

	if (doc) {
		g.ended = cJSON_AddArrayToObject(doc, "ended");
		g.forgotten = cJSON_AddArrayToObject(doc, "forgotten");
	}
	r = collect(c, &g, &e);
	if (r < 0 && !e.code)
		(void)err_set(&e, ERR_INTERNAL, -r, "comparing the records with AWS");
	if (r < 0) {
		r = cmd_fail(c, &e, NULL);
	} else if (doc && g.forgotten && jsn_add_bool(doc, "dry_run", g.dry)) {
		doc = NULL;
		r = out_doc(give) < 0 || g.failed ? c->cmd->failure : 0;
	} else {
		if (!doc && !g.len)
			out_note("there is nothing to collect");
		r = doc || g.failed ? c->cmd->failure : 0;
	}
	free(g.all);
	return r;
}
