/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "host/cli/out.h"
#include "host/cmd/cmd.h"
#include "host/cmd/common.h"
#include "lib/loop.h"

/* stop, start and restart. What is the case already is no error: the caller wanted that state, not
 * the change. */

static int look(const char *name, struct core_named *n, struct sandbox_info *i, struct err *e)
{
	int r = core_find(name, n, e);

	if (r < 0)
		return r;
	r = n->backend->info(n->record.microvm_id, i, e);
	if (r == -ENOENT)
		(void)err_set(e, ERR_NOT_FOUND, 0, "there is no machine behind '%s' any more",
			      name);
	if (r < 0)
		core_named_done(n);
	return r;
}

static int stop_one(const struct cli *c, const char *name, const char **ret_word, struct err *e)
{
	struct core_named n;
	struct sandbox_info i;
	int r = look(name, &n, &i, e);

	(void)c;
	if (r < 0)
		return r;
	if (i.state == SANDBOX_SUSPENDED || i.state == SANDBOX_TERMINATED) {
		out_note("%s is %s already", name,
			 i.state == SANDBOX_SUSPENDED ? "suspended" : "off");
	} else {
		r = n.backend->suspend ? n.backend->suspend(n.record.microvm_id, e)
				       : cmd_unsupported(n.backend, "suspend", e);
		*ret_word = "suspended";
	}
	core_named_done(&n);
	return r;
}

int cmd_stop(const struct cli *c)
{
	return cmd_each(c, stop_one);
}

static int resume(const struct cli *c, const struct core_named *n, struct err *e)
{
	struct progress p;
	int r;

	if (!n->backend->resume)
		return cmd_unsupported(n->backend, "start a sandbox again", e);
	out_progress(&p, "starting the sandbox");
	core_cancel_begin(&p);
	r = n->backend->resume(n->record.microvm_id, &p, loop_now() + c->val[OPT_START_TIMEOUT].ns,
			       e);
	core_cancel_end();
	out_progress_end();
	if (r < 0 && core_cancelled())
		core_die_of(core_cancelled());
	return r;
}

static int start_one(const struct cli *c, const char *name, const char **ret_word, struct err *e)
{
	struct core_named n;
	struct sandbox_info i;
	int r = look(name, &n, &i, e);

	if (r < 0)
		return r;
	if (i.state == SANDBOX_RUNNING) {
		out_note("%s runs already", name);
	} else {
		*ret_word = i.state == SANDBOX_TERMINATED ? "started" : "resumed";
		r = resume(c, &n, e);
	}
	core_named_done(&n);
	return r;
}

int cmd_start(const struct cli *c)
{
	return cmd_each(c, start_one);
}

static int restart_one(const struct cli *c, const char *name, const char **ret_word, struct err *e)
{
	struct core_named n;
	struct sandbox_info i;
	int r = look(name, &n, &i, e);

	if (r < 0)
		return r;
	if (i.state == SANDBOX_SUSPENDED &&
	    resume(c, &n, e) < 0) /* so that it ends in good order */
		out_warn("%s: it is restarted without that", e->msg);
	if (i.state != SANDBOX_TERMINATED)
		r = n.backend->power_off
			    ? n.backend->power_off(n.record.microvm_id, c->val[OPT_GRACE].ns, e)
			    : cmd_unsupported(n.backend, "power a sandbox off", e);
	if (r == 0)
		r = resume(c, &n, e);
	*ret_word = "restarted";
	core_named_done(&n);
	return r;
}

int cmd_restart(const struct cli *c)
{
	return cmd_each(c, restart_one);
}
