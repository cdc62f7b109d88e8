/* SPDX-License-Identifier: Apache-2.0 */
#include <cJSON.h>
#include <errno.h>

#include "host/agent/ask.h"
#include "host/cli/out.h"
#include "host/cmd/cmd.h"
#include "host/cmd/common.h"
#include "host/cmd/execid.h"
#include "lib/signame.h"
#include "lib/str.h"

static int send_signal(const struct cli *c, const struct core_named *n, const char *id, int sig,
		       struct err *e)
{
	char path[32 + EXECID_MAX], body[64];
	struct ask a = { .backend = n->backend,
			 .id = n->record.microvm_id,
			 .method = "POST",
			 .path = path,
			 .body = body };

	ignore_result(str_format(path, sizeof(path), "/v1/execs/%s/signal", id)); /* they fit */
	ignore_result(str_format(body, sizeof(body), "{\"signal\":%d,\"to\":\"%s\"}", sig,
				 c->val[OPT_TO].text));
	return agent_ask(&a, NULL, e);
}

static int told(const struct cli *c, const char *id, int sig)
{
	AUTO_JSN *j = NULL;
	cJSON *give;

	if (!out_json_wanted())
		return out_line("%s", id) < 0 ? c->cmd->failure : 0;
	j = cJSON_CreateObject();
	give = j;
	if (!j || !jsn_add_str(j, "id", id) || !jsn_add_u64(j, "signal", (uint64_t)sig) ||
	    !jsn_add_str(j, "name", signame(sig)) || !jsn_add_str(j, "to", c->val[OPT_TO].text))
		give = NULL;
	else
		j = NULL;
	return out_doc(give) < 0 ? c->cmd->failure : 0;
}

int cmd_kill(const struct cli *c)
{
	char id[EXECID_MAX + 1];
	struct core_named n;
	struct err e = ERR_INIT;
	int sig = cli_signal(c->names_len > 2 ? c->names[2] : c->val[OPT_SIGNAL].text);
	int r = core_reach(c->names[0], &n, &e);

	if (r < 0)
		return cmd_fail(c, &e, cmd_hint(&e, NULL));
	r = execid_find(&n, c->names[1], id, &e);
	if (r == 0)
		r = send_signal(c, &n, id, sig, &e);
	core_named_done(&n);
	if (r == -ESRCH)
		(void)err_set(&e, ERR_CONFLICT, 0, "command %s in '%s' has ended", id, c->names[0]);
	return r < 0 ? cmd_fail(c, &e, execid_hint(&e, r, c->names[0])) : told(c, id, sig);
}
