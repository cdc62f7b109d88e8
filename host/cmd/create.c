/* SPDX-License-Identifier: Apache-2.0 */
#include <cJSON.h>
#include <errno.h>

#include "host/cli/out.h"
#include "host/cmd/cmd.h"
#include "host/cmd/common.h"

int cmd_create(const struct cli *c)
{
	struct sandbox_spec s = { .name = c->names[0],
				  .cpus = (uint32_t)c->val[OPT_CPUS].number,
				  .memory_mib = c->val[OPT_MEMORY].number,
				  .cold = c->val[OPT_NO_TEMPLATE].set,
				  .idle_timeout_ns = c->val[OPT_IDLE_TIMEOUT].ns,
				  .max_duration_ns = c->val[OPT_MAX_DURATION].ns,
				  .net = c->val[OPT_NET].text[0] == 'u' ? NET_USER : NET_NONE };
	const struct backend *b;
	struct core_made m;
	struct progress p;
	struct err e = ERR_INIT;
	char **env = NULL;
	int r = core_choose(c, c->val[OPT_IMAGE].set ? c->val[OPT_IMAGE].text : NULL, &b, &s.image,
			    &e);

	core_platform(c, &s);
	if (r == 0)
		r = core_env(c, &env, &e);
	if (r < 0)
		return cmd_fail(c, &e, NULL);
	s.env = env;
	out_progress(&p, "starting the sandbox");
	r = core_create(b, &s, &p, c->val[OPT_START_TIMEOUT].ns, &m, &e);
	if (r == 0)
		r = core_keep(&m, &e);
	out_progress_end();
	core_env_free(&env);
	if (r < 0 && core_cancelled())
		core_die_of(core_cancelled());
	if (r < 0)
		return cmd_fail(c, &e, cmd_create_hint(&e, s.name));
	if (!out_json_wanted())
		out_note("%s runs on the %s backend", m.name, m.backend->name);
	return cmd_tell_created(c, m.backend, m.name, m.id);
}
