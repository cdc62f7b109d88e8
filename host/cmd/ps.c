/* SPDX-License-Identifier: Apache-2.0 */
#include <cJSON.h>
#include <errno.h>

#include "host/cli/out.h"
#include "host/cmd/cmd.h"
#include "host/cmd/common.h"

int cmd_ps(const struct cli *c)
{
	struct state_record r = { .name = NULL };
	const struct backend *b;
	const struct sandbox_info *known = NULL;
	struct sandbox_info i;
	struct err e = ERR_INIT;
	int rc;

	if (c->names_len == 0)
		return cmd_ls(c);
	rc = state_get(c->names[0], &r, &e);
	if (rc < 0)
		return cmd_fail(c, &e, cmd_hint(&e, NULL));
	b = backend_of_id(r.microvm_id);
	rc = b->info(r.microvm_id, &i, &e);
	if (rc == 0)
		known = &i;
	if (rc < 0 && rc != -ENOENT)
		rc = cmd_fail(c, &e, cmd_hint(&e, r.name));
	else if (out_json_wanted())
		rc = out_doc(cmd_sandbox_json(&r, known)) < 0 ? c->cmd->failure : 0;
	else if (c->val[OPT_NAMES].set)
		rc = out_line("%s", r.name) < 0 ? c->cmd->failure : 0;
	else
		rc = out_line("%s: %s (%s)", r.name, cmd_state(known), r.microvm_id) < 0
			     ? c->cmd->failure
			     : 0;
	state_record_done(&r);
	return rc;
}
