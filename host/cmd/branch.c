/* SPDX-License-Identifier: Apache-2.0 */
#include <cJSON.h>
#include <errno.h>
#include <stdlib.h>

#include "host/cli/out.h"
#include "host/cmd/cmd.h"
#include "host/cmd/common.h"

static int add_one(cJSON *list, const struct core_child *k, const struct backend *b)
{
	struct state_record r = { .name = NULL };
	struct sandbox_info i;
	cJSON *j = NULL;

	if (state_get(k->name, &r, NULL) == 0)
		j = cmd_sandbox_json(&r, b->info(k->id, &i, NULL) == 0 ? &i : NULL);
	state_record_done(&r);
	if (!j)
		return -ENOMEM;
	if (cJSON_AddItemToArray(list, j))
		return 0;
	cJSON_Delete(j);
	return -ENOMEM;
}

/* The failures on stderr, the others as the result. */
static int tell(const struct cli *c, const struct core_child *all, size_t n,
		const struct backend *b)
{
	cJSON *doc = cJSON_CreateObject(),
	      *list = doc ? cJSON_AddArrayToObject(doc, "sandboxes") : NULL;
	int status = 0, r = 0;

	for (size_t i = 0; i < n; i++) {
		const struct core_child *k = &all[i];

		if (k->child.result < 0) {
			status = cmd_fail(c, &k->child.err, NULL);
			continue;
		}
		r = !out_json_wanted() ? out_line("created %s (%s)", k->name, k->id)
		    : list	       ? add_one(list, k, b)
				       : -ENOMEM;
		if (r < 0)
			status = c->cmd->failure;
	}
	if (!out_json_wanted())
		cJSON_Delete(doc);
	else if (out_doc(doc) < 0)
		status = c->cmd->failure;
	return status;
}

int cmd_branch(const struct cli *c)
{
	const struct opt_value *names = &c->val[OPT_NEW_NAME];
	struct core_child *all = NULL;
	struct core_named src;
	struct progress p;
	struct err e = ERR_INIT;
	int r, status;

	if (!names->all_len) {
		(void)err_set(&e, ERR_USAGE, 0, "which name shall the copy have? (--name NAME)");
		return cmd_fail(c, &e, NULL);
	}
	r = core_find(c->names[0], &src, &e);
	if (r < 0)
		return cmd_fail(c, &e, cmd_hint(&e, c->names[0]));
	all = calloc(names->all_len, sizeof(*all));
	if (!all)
		r = err_set(&e, ERR_INTERNAL, ENOMEM, "the copies");
	else if (!src.backend->branch)
		r = cmd_unsupported(src.backend, "branch", &e);
	if (r == 0) {
		out_progress(&p, "copying the sandbox");
		r = core_branch(&src, names->all, names->all_len, &p, c->val[OPT_START_TIMEOUT].ns,
				all, &e);
		out_progress_end();
		if (r < 0 && core_cancelled())
			core_die_of(core_cancelled());
	}
	status = r < 0 ? cmd_fail(c, &e, e.code == ERR_EXISTS ? NULL : cmd_hint(&e, c->names[0]))
		       : tell(c, all, names->all_len, src.backend);
	core_named_done(&src);
	free(all);
	return status;
}
