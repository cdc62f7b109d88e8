/* SPDX-License-Identifier: Apache-2.0 */
#include <cJSON.h>
#include <errno.h>

#include "host/cli/out.h"
#include "host/cmd/cmd.h"
#include "host/cmd/common.h"
#include "host/core/core.h"

int cmd_ps(const struct cli *c)
{
	struct core_named n;
	const struct sandbox_info *known = NULL;
	struct sandbox_info i;
	struct err e = ERR_INIT;
	int rc;

	if (c->names_len == 0)
		return cmd_ls(c);
	rc = core_find(c->names[0], &n, &e);
	if (rc < 0)
		return cmd_fail(c, &e, cmd_hint(&e, NULL));
	rc = n.backend->info(n.record.microvm_id, &i, &e);
	if (rc == 0)
		known = &i;
	if (rc < 0 && rc != -ENOENT)
		rc = cmd_fail(c, &e, cmd_hint(&e, n.record.name));
	else if (out_json_wanted())
		rc = out_doc(cmd_sandbox_json(&n.record, known)) < 0 ? c->cmd->failure : 0;
	else if (c->val[OPT_NAMES].set)
		rc = out_line("%s", n.record.name) < 0 ? c->cmd->failure : 0;
	else
		rc = out_line("%s: %s (%s)", n.record.name, cmd_state(known), n.record.microvm_id) <
				     0
			     ? c->cmd->failure
			     : 0;
	core_named_done(&n);
	return rc;
}
