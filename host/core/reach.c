/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <unistd.h>

#include "host/cli/out.h"
#include "host/core/core.h"
#include "lib/fd.h"
#include "lib/loop.h"

/*
 * The one place where a suspended sandbox is resumed because somebody wants something of its guest. What only looks at the sandbox or changes its
 * state (ls, inspect, the console's log, stop, rm, branch) does not come here, and neither does a client that lost its connection: after
 * `asb stop` that waits for `asb start`.
 */

#define WAKE_NS (120LL * 1000000000)

/* ls and the like are read while it is resumed: only a person is told. */
static void tell(const struct core_named *n, const struct sandbox_info *i)
{
	if (i->state == SANDBOX_SUSPENDED && isatty(STDERR_FILENO))
		out_note("%s is suspended: resuming it", n->record.name);
}

static int wake_slowly(struct core_named *n, struct err *e)
{
	struct progress p;
	int r;

	out_progress(&p, "resuming the sandbox");
	core_cancel_begin(&p);
	r = n->backend->wake(n->record.microvm_id, &p, loop_now() + WAKE_NS, &n->hold, e);
	core_cancel_undo();
	out_progress_end();
	if (core_cancelled())
		core_die_of(core_cancelled());
	return r;
}

int core_wake(struct core_named *n, struct err *e)
{
	struct sandbox_info i;
	int r;

	core_let_go(n);
	if (!n->backend->wake || n->backend->info(n->record.microvm_id, &i, NULL) < 0 ||
	    (i.state == SANDBOX_RUNNING && i.idle_timeout_ms == 0))
		return 0;
	tell(n, &i);
	r = wake_slowly(n, e);
	n->woken = r == 0 && i.state == SANDBOX_SUSPENDED;
	return r;
}

int core_reach(const char *name, struct core_named *ret, struct err *e)
{
	int r = core_find(name, ret, e);

	if (r < 0)
		return r;
	r = core_wake(ret, e);
	if (r < 0)
		core_named_done(ret);
	return r;
}

void core_let_go(struct core_named *n)
{
	fd_close(&n->hold);
}
