/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "host/cmd/cmd.h"
#include "host/cmd/common.h"

int cmd_exec(const struct cli *c)
{
	const char *name = c->names[0];
	struct core_named n;
	struct exec_result res = { .end = EXEC_ENDED };
	struct err e = ERR_INIT;
	char **env = NULL;
	int r = core_find(name, &n, &e), status;

	if (r < 0)
		return cmd_report(c, name, NULL, r, &res, &e);
	r = core_env(c, &env, &e);
	if (r == 0)
		r = cmd_exec_in(c, n.backend, n.record.microvm_id, env, false, &res, &e);
	core_env_free(&env);
	status = cmd_report(c, name, n.record.microvm_id, r, &res, &e);
	exec_result_done(&res);
	core_named_done(&n);
	return status;
}
