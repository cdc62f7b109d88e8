/* SPDX-License-Identifier: Apache-2.0 */
#include <cJSON.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "host/cli/out.h"
#include "host/cmd/cmd.h"
#include "host/cmd/common.h"
#include "lib/jsn.h"

int cmd_inspect(const struct cli *c)
{
	struct core_named n;
	struct err e = ERR_INIT;
	char *text = NULL;
	cJSON *j = NULL;
	int r = core_find(c->names[0], &n, &e);

	if (r < 0)
		return cmd_fail(c, &e, cmd_hint(&e, NULL));
	r = n.backend->inspect ? n.backend->inspect(n.record.microvm_id, &text, &e)
			       : cmd_unsupported(n.backend, "inspect", &e);
	core_named_done(&n);
	if (r == -ENOENT)
		(void)err_set(&e, ERR_NOT_FOUND, 0, "there is no machine behind '%s' any more",
			      c->names[0]);
	if (r < 0)
		return cmd_fail(c, &e, cmd_hint(&e, c->names[0]));
	j = jsn_parse(text, strlen(text), &e);
	free(text);
	if (!j)
		return cmd_fail(c, &e, NULL);
	return out_doc(j) < 0 ? c->cmd->failure : 0;
}
