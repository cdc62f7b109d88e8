/* SPDX-License-Identifier: Apache-2.0 */
#include "host/mcp/mcp.h"

#include "host/cli/opts.h"
#include "host/cmd/cmd.h"
#include "host/cmd/common.h"

int cmd_mcp(const struct cli *c)
{
	struct mcp_config m = { .cli = c,
				.read_only = c->val[OPT_READ_ONLY].set,
				.no_network = c->val[OPT_NO_NETWORK].set };
	struct err e = ERR_INIT;
	int r, status;

	if (c->val[OPT_PRINT_CONFIG].set)
		return mcp_print_config(c->val[OPT_PRINT_CONFIG].text) < 0 ? c->cmd->failure : 0;
	r = mcp_config_read(&m, &e);
	status = r < 0 ? cmd_fail(c, &e, NULL) : mcp_serve(&m);
	mcp_config_done(&m);
	return status;
}
