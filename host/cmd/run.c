/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "host/cli/out.h"
#include "host/cmd/cmd.h"
#include "host/cmd/common.h"
#include "lib/str.h"

/*
 * The sandbox is never kept: it lives on our owner socket, so it ends with us however we end. What
 * is printed last (the document, an error) comes after it is gone.
 */

/* Ended by --max-duration: its command ends of the power-off, and cannot say why. */
static bool timed_out(const struct core_made *m, struct sandbox_info *i)
{
	return m->backend->info(m->id, i, NULL) == 0 && i->state >= SANDBOX_TERMINATING &&
	       i->reason[0];
}

static int run_in(const struct cli *c, struct core_made *m, char *const *env)
{
	struct core_named n = { .record = { .name = m->name, .microvm_id = m->id },
				.backend = m->backend,
				.hold = -1 };
	struct exec_result res = { .end = EXEC_ENDED };
	struct err e = ERR_INIT, gone = ERR_INIT;
	struct sandbox_info i;
	int r = cmd_exec_in(c, &n, env, true, &res, &e), status;
	bool late = c->val[OPT_MAX_DURATION].ns > 0 && timed_out(m, &i);

	if (core_drop(m, &gone) < 0)
		out_warn("%s", gone.msg);
	if (late)
		out_warn("the sandbox was ended: %s", i.reason);
	status = cmd_report(c, m->name, m->id, r, &res, &e);
	exec_result_done(&res);
	return status;
}

static int start_and_run(const struct cli *c, const struct backend *b, const struct sandbox_spec *s,
			 char *const *env)
{
	struct core_made m;
	struct progress p;
	struct err e = ERR_INIT;
	int r;

	out_progress(&p, "starting a sandbox");
	r = core_create(b, s, &p, c->val[OPT_START_TIMEOUT].ns, &m, &e);
	out_progress_end();
	if (r < 0 && core_cancelled())
		core_die_of(core_cancelled());
	if (r < 0) {
		struct exec_result none = { .end = EXEC_ENDED };

		return out_json_wanted() ? cmd_report(c, s->name, NULL, r, &none, &e)
					 : cmd_fail(c, &e, cmd_create_hint(&e, s->name));
	}
	return run_in(c, &m, env);
}

int cmd_run(const struct cli *c)
{
	struct sandbox_spec s = { .cpus = (uint32_t)c->val[OPT_CPUS].number,
				  .memory_mib = c->val[OPT_MEMORY].number,
				  .cold = c->val[OPT_NO_TEMPLATE].set,
				  .max_duration_ns = c->val[OPT_MAX_DURATION].ns,
				  .net = c->val[OPT_NET].text[0] == 'u' ? NET_USER : NET_NONE,
				  .ephemeral = true };
	char name[SANDBOX_NAME_MAX + 1];
	const struct backend *b;
	struct err e = ERR_INIT;
	char **env = NULL;
	int r = core_choose(c, c->names_len ? c->names[0] : NULL, &b, &s.image, &e);

	if (r == 0)
		r = c->val[OPT_NAME].set
			    ? str_format(name, sizeof(name), "%s", c->val[OPT_NAME].text)
			    : core_run_name(name, &e);
	core_platform(c, &s);
	if (r == 0)
		r = core_env(c, &env, &e);
	if (r < 0)
		return cmd_fail(c, &e, NULL);
	s.name = name;
	r = start_and_run(c, b, &s, env);
	core_env_free(&env);
	return r;
}
