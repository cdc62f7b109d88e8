/* SPDX-License-Identifier: Apache-2.0 */
#include <cJSON.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "host/cli/grid.h"
#include "host/cli/out.h"
#include "host/cmd/cmd.h"
#include "host/cmd/common.h"
#include "lib/buf.h"
#include "lib/jsn.h"

/*
 * The records in the order of the state file, each with what its backend says of the machine, then
 * the machines that nobody recorded. A backend is asked once for all of them; AWS only when a record is of it, or
 * with --all. When it cannot be asked, the local ones are listed all the same.
 */

#define LS_MAX	  65536
#define COLUMNS	  6
#define TABLE_MAX (64U << 20)

struct machine {
	struct sandbox_info info;
	bool recorded;
};

struct machines {
	struct machine *all;
	size_t len;
};

struct listing {
	struct machines machines;
	bool every;	  /* --all */
	bool on_aws;	  /* a record is */
	bool aws_unknown; /* it could not be asked */
	struct grid grid;
	cJSON *list; /* with --json */
	bool names_only;
	struct buf names;
};

static int on_machine(void *arg, const struct sandbox_info *i)
{
	struct machines *m = arg;
	struct machine *all;

	if (m->len >= LS_MAX)
		return -E2BIG;
	if ((m->len & (m->len - 1)) == 0) { /* room doubles at each power of two */
		all = realloc(m->all, (m->len ? m->len * 2 : 1) * sizeof(*all));
		if (!all)
			return -ENOMEM;
		m->all = all;
	}
	m->all[m->len++] = (struct machine){ .info = *i };
	return 0;
}

static const struct sandbox_info *find(struct machines *m, const char *id)
{
	for (size_t i = 0; i < m->len; i++)
		if (strcmp(m->all[i].info.id, id) == 0) {
			m->all[i].recorded = true;
			return &m->all[i].info;
		}
	return NULL;
}

/* "MISSING" is a word for those that were looked for. */
static const char *state_of(const struct listing *l, const struct state_record *r,
			    const struct sandbox_info *i)
{
	if (!i && l->aws_unknown && backend_of_id(r->microvm_id) == &backend_aws)
		return sandbox_state_name(SANDBOX_UNKNOWN);
	return cmd_state(i);
}

static int add_row(struct listing *l, const struct state_record *r, const struct sandbox_info *i)
{
	char when[32] = "-";
	time_t t = i ? (time_t)i->created_s : 0;
	const char *image = core_image_name(r, i);
	struct tm tm;

	if (t > 0 && gmtime_r(&t, &tm) && !strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%SZ", &tm))
		when[0] = '\0';
	const char *text[COLUMNS] = { r->name,
				      r->microvm_id,
				      state_of(l, r, i),
				      image ? image : "-",
				      backend_of_id(r->microvm_id)->name,
				      when };

	return grid_add(&l->grid, text);
}

static int on_record(void *arg, const struct state_record *r)
{
	struct listing *l = arg;
	const struct sandbox_info *i = l->names_only ? NULL : find(&l->machines, r->microvm_id);
	cJSON *j;

	if (l->names_only && !l->list)
		return buf_addf(&l->names, "%s\n", r->name);
	if (l->list) {
		j = cmd_sandbox_json(r, i);
		return j &&
				       cJSON_ReplaceItemInObjectCaseSensitive(
					       j, "state", cJSON_CreateString(state_of(l, r, i))) &&
				       cJSON_AddItemToArray(l->list, j)
			       ? 0
			       : -ENOMEM;
	}
	return add_row(l, r, i);
}

static int print(struct listing *l, cJSON **doc)
{
	cJSON *give = *doc;

	if (l->list) {
		*doc = NULL;
		return out_doc(give);
	}
	if (l->names_only)
		return l->names.len ? out_bytes(l->names.p, l->names.len) : 0;
	if (l->grid.rows)
		return grid_print(&l->grid);
	out_note("no sandboxes");
	return 0;
}

/* Machines that live although no record names them (the state file was lost or replaced): under
 * their id, by which the other commands take them too. */
static int add_unrecorded(struct listing *l)
{
	int r = 0;

	for (size_t k = 0; k < l->machines.len && r == 0; k++) {
		struct sandbox_info *i = &l->machines.all[k].info;
		struct state_record rec = { .name = i->id,
					    .microvm_id = i->id,
					    .image_arn = i->image,
					    .region = i->region[0] ? i->region : NULL };
		struct sandbox_info now;
		bool shown;

		if (l->machines.all[k].recorded)
			continue;
		/* asked again: a run may have ended meanwhile, and taken its record with it */
		if (backend_of_id(i->id) == &backend_local)
			shown = backend_local.info(i->id, &now, NULL) == 0 &&
				now.state != SANDBOX_TERMINATED;
		else
			shown = l->every && i->state != SANDBOX_TERMINATED;
		if (shown)
			r = on_record(l, &rec);
	}
	return r;
}

static int is_on_aws(void *arg, const struct state_record *r)
{
	struct listing *l = arg;

	l->on_aws = l->on_aws || backend_of_id(r->microvm_id) == &backend_aws;
	return 0;
}

static int ask_backends(struct listing *l, struct err *e)
{
	struct err why = ERR_INIT;
	int r = state_each(is_on_aws, l, e);

	if (r < 0)
		return r;
	backend_local.collect();
	r = backend_local.list(l->every, on_machine, &l->machines, &why);
	if (r < 0 && r != -ENOENT) {
		*e = why;
		return r;
	}
	if (r == -ENOENT) /* their disk is not there: they are MISSING */
		out_warn("%s", why.msg);
	if (!l->on_aws && !l->every)
		return 0;
	if (backend_aws.list(l->every, on_machine, &l->machines, &why) < 0) {
		l->aws_unknown = true;
		out_warn("%s", why.msg);
	}
	return 0;
}

int cmd_ls(const struct cli *c)
{
	static const char *const head[COLUMNS] = { "NAME",  "ID",      "STATE",
						   "IMAGE", "BACKEND", "CREATED" };
	struct listing l = { .names_only = c->val[OPT_NAMES].set,
			     .every = c->val[OPT_EVERY].set,
			     .grid = { .head = head, .columns = COLUMNS } };
	AUTO_JSN *doc = out_json_wanted() ? cJSON_CreateObject() : NULL;
	struct err e = ERR_INIT;
	int r = 0;

	buf_init(&l.names, TABLE_MAX);
	if (doc)
		l.list = cJSON_AddArrayToObject(doc, "sandboxes");
	if (!l.names_only || doc || l.every)
		r = ask_backends(&l, &e);
	if (r == 0)
		r = state_each(on_record, &l, &e);
	if (r == 0)
		r = add_unrecorded(&l);
	if (r < 0 && !e.code)
		(void)err_set(&e, ERR_INTERNAL, -r, "listing the sandboxes");
	r = r < 0 ? cmd_fail(c, &e, NULL) : print(&l, &doc) < 0 ? c->cmd->failure : 0;
	grid_done(&l.grid);
	free(l.machines.all);
	buf_done(&l.names);
	return r;
}
