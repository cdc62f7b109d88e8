/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "host/cli/out.h"
#include "host/cmd/cmd.h"
#include "host/cmd/common.h"

static int rm_one(const struct cli *c, const char *name, const char **ret_word, struct err *e)
{
	bool force = c->val[OPT_FORCE].set;
	struct core_named n;
	struct err why = ERR_INIT;
	int r = core_find(name, &n, e);

	if (r < 0)
		return r == -ENOENT && force ? 0 : r;
	*ret_word = "removed";
	r = core_remove(&n, &why);
	if (r < 0 && force) {
		out_warn("%s; the name is forgotten all the same", why.msg);
		r = state_remove(name, n.record.microvm_id, e);
	} else if (r < 0) {
		*e = why;
	}
	core_named_done(&n);
	return r;
}

int cmd_rm(const struct cli *c)
{
	return cmd_each(c, rm_one);
}
