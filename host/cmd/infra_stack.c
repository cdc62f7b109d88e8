/* SPDX-License-Identifier: Apache-2.0 */
#include <cJSON.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host/cli/grid.h"
#include "host/cli/out.h"
#include "host/cmd/cmd.h"
#include "host/cmd/infra_each.h"
#include "lib/jsn.h"
#include "lib/str.h"

/* The commands that ask AWS about a stack, or change it. What is done is told on stderr, the result is on stdout. */

/* --- plans --- */

static int plan_grid(const struct plan *p)
{
	static const char *const head[] = { "RESOURCE", "NAME", "ACTION", "REASON" };
	struct grid g = { .head = head, .columns = 4 };
	int r = 0;

	for (size_t i = 0; r == 0 && i < p->len; i++) {
		const struct plan_step *s = &p->steps[i];
		const char *const cells[] = { infra_kinds[s->res].say, s->name ? s->name : "-",
					      plan_verbs[s->verb], s->why };

		r = grid_add(&g, cells);
	}
	if (r == 0)
		r = grid_print(&g);
	grid_done(&g);
	return r;
}

static int plan_doc(const struct plan *p, cJSON *doc)
{
	cJSON *all = cJSON_AddArrayToObject(doc, "actions");

	for (size_t i = 0; all && i < p->len; i++) {
		const struct plan_step *s = &p->steps[i];
		cJSON *j = cJSON_CreateObject();

		if (!j || !cJSON_AddItemToArray(all, j) ||
		    !jsn_add_str(j, "resource", infra_kinds[s->res].logical) ||
		    !jsn_add_str(j, "kind", infra_kinds[s->res].kind) ||
		    !jsn_add_str(j, "name", s->name) ||
		    !jsn_add_str(j, "action", plan_verbs[s->verb]) ||
		    !jsn_add_str(j, "reason", s->why))
			return -ENOMEM;
	}
	return all && jsn_add_u64(doc, "changes", plan_changes(p)) ? 0 : -ENOMEM;
}

static int tell_plan(const struct stack *s, cJSON *doc, struct err *e)
{
	int r = plan_doc(&s->plan, doc);

	if (r == 0 && !out_json_wanted()) {
		r = out_line("%s in %s:", s->key, s->c->text[INFRA_REGION]);
		if (r == 0)
			r = plan_grid(&s->plan);
		if (r == 0 && !plan_changes(&s->plan))
			r = out_line("nothing to do");
	}
	return r < 0 ? err_set(e, ERR_INTERNAL, -r, "printing the plan") : 0;
}

static int refusal(const struct stack *s, struct err *e)
{
	const struct plan_step *p = plan_refusal(&s->plan);

	return p ? err_set(e, ERR_CONFLICT, 0, "%s %s: %s", infra_kinds[p->res].say,
			   p->name ? p->name : "", p->why)
		 : 0;
}

/* What is known to fail is not sent to a build. Where nothing is built it does not matter. */
static int preflight(const struct cli *c, const struct stack *s, struct err *e)
{
	int r;

	if (c->val[OPT_NO_CHECK].set || !plan_builds(&s->plan))
		return 0;
	if (s->guest.note.code)
		out_warn("%s: %s", s->key, s->guest.note.msg);
	r = guestdir_refusal(&s->guest, e);
	return r < 0 ? err_wrap(e, "%s: image.guest_dir %s", s->c->file,
				s->c->text[INFRA_GUEST_DIR])
		     : 0;
}

static int preview(const struct cli *c, struct stack *s, cJSON *doc, struct err *e)
{
	int r = stack_plan_up(s, c->val[OPT_REBUILD].set, e);

	if (r == 0)
		r = tell_plan(s, doc, e);
	if (r == 0)
		r = refusal(s, e);
	return r < 0 ? r : preflight(c, s, e);
}

int cmd_infra_preview(const struct cli *c)
{
	return infra_each(c, 1, preview);
}

/* --- up --- */

static int tell_outputs(const struct stack *s, cJSON *doc, struct err *e)
{
	AUTO_JSN *outputs = NULL;
	const cJSON *o;
	int r = infra_outputs_get(s->key, &outputs, e);

	if (r < 0)
		return r;
	if (!out_json_wanted() && outputs->child)
		r = out_line("%s in %s:", s->key, s->c->text[INFRA_REGION]);
	cJSON_ArrayForEach(o, outputs) if (r == 0 && !out_json_wanted() && cJSON_IsString(o)) r =
		out_line("%s %s", o->string, o->valuestring);
	if (r == 0 && !cJSON_AddItemToObject(doc, "outputs", cJSON_Duplicate(outputs, true)))
		r = -ENOMEM;
	return r < 0 ? err_set(e, ERR_INTERNAL, -r, "printing the outputs") : 0;
}

static int up(const struct cli *c, struct stack *s, cJSON *doc, struct err *e)
{
	int r = stack_plan_up(s, c->val[OPT_REBUILD].set, e);

	if (r == 0)
		r = refusal(s, e);
	if (r == 0)
		r = preflight(c, s, e);
	if (r == 0 && plan_doc(&s->plan, doc) < 0)
		r = err_set(e, ERR_INTERNAL, ENOMEM, "the plan");
	if (r == 0)
		r = stack_up(s, e);
	return r < 0 ? r : tell_outputs(s, doc, e);
}

int cmd_infra_up(const struct cli *c)
{
	return infra_each(c, c->val[OPT_PARALLELISM].number, up);
}

/* --- refresh --- */

static void warn(const char *what, const struct err *e)
{
	out_warn("%s: %s", what, e->msg);
}

static int refresh(const struct cli *c, struct stack *s, cJSON *doc, struct err *e)
{
	int r = stack_refresh(s, warn, e);

	(void)c;
	return r < 0 ? r : tell_outputs(s, doc, e);
}

int cmd_infra_refresh(const struct cli *c)
{
	return infra_each(c, 1, refresh);
}

/* --- destroy --- */

static int sure(const struct stack *s, struct err *e)
{
	char answer[8] = "";

	if (!isatty(STDIN_FILENO) || !isatty(STDERR_FILENO))
		return err_set(e, ERR_CONFLICT, 0,
			       "nobody is here to ask whether %s is to go: --yes says so", s->key);
	(void)fprintf(stderr, "Delete %zu resources of %s? Type yes: ", plan_changes(&s->plan),
		      s->key);
	(void)fflush(stderr);
	if (fgets(answer, sizeof(answer), stdin) && strcmp(answer, "yes\n") == 0)
		return 0;
	return err_set(e, ERR_CONFLICT, 0, "%s stays as it is", s->key);
}

static int destroy(const struct cli *c, struct stack *s, cJSON *doc, struct err *e)
{
	bool force = c->val[OPT_FORCE_STACK].set, yes = c->val[OPT_YES].set;
	int r = stack_plan_destroy(s, force, e);

	if (r == 0)
		r = refusal(s, e);
	if (r == 0)
		r = yes ? (plan_doc(&s->plan, doc) < 0 ? -ENOMEM : 0) : tell_plan(s, doc, e);
	if (r == 0 && !yes && plan_changes(&s->plan))
		r = sure(s, e);
	if (r == 0)
		r = stack_destroy(s, force, e);
	if (r == 0 && !out_json_wanted())
		r = out_line("destroyed %s", s->key);
	return r;
}

int cmd_infra_destroy(const struct cli *c)
{
	/* questions are asked one after the other */
	return infra_each(c, c->val[OPT_YES].set ? c->val[OPT_PARALLELISM].number : 1, destroy);
}
