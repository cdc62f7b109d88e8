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
		r = core_wake(&n, &e);
	if (r == 0)
		r = cmd_exec_in(c, &n, env, false, &res, &e);
	core_env_free(&env);
	status = cmd_report(c, name, n.record.microvm_id, r, &res, &e);
	exec_result_done(&res);
	core_named_done(&n);
	return status;
}

/* The user's own shell, else bash, else sh: not as a login shell, so that PATH and the other
 * variables of the image and of --env stay. */
int cmd_shell(const struct cli *c)
{
	static char sh[] = "/bin/sh", dash_c[] = "-c",
		    script[] = "for s in \"$SHELL\" /bin/bash; do case $s in *nologin|*false) ;; "
			       "*) [ -x \"$s\" ] && exec \"$s\" ;; esac; done; exec /bin/sh";
	char *const words[] = { sh, dash_c, script, NULL };
	struct cli shell = *c;

	shell.argv = words;
	shell.argc = 3;
	return cmd_exec(&shell);
}
