/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <time.h>

#include "host/local/client.h"
#include "host/local/expiry.h"
#include "host/local/start.h"
#include "host/local/wake.h"
#include "lib/fd.h"
#include "lib/loop.h"

/*
 * Whatever state the sandbox is in, until it is RUNNING or has ended: nothing is remembered between two looks, so that a stop, a
 * start or an idle suspension by others may come at any moment. Of several that find it suspended one gets the lock and starts it;
 * the others see it PENDING and wait.
 *
 * The hold is a connection to ctl.sock: while it is open the supervisor does not suspend the sandbox for being idle. So
 * nothing can come between this look and the client's first connection but what a person types.
 */

#define STEP_LEAST_NS 5000000L
#define STEP_MOST_NS  100000000L
#define HOLD_NS	      5000000000LL

enum step { AGAIN, AT_ONCE, DONE };

/* By the one that gets the lock. */
static int start_it(const char *id, int dirfd, const struct progress *p, int64_t deadline_ns,
		    enum step *ret, struct err *e)
{
	int lock, r = vmdir_lock(dirfd, 0, &lock);

	*ret = AGAIN;
	if (r == -EWOULDBLOCK)
		return 0;
	if (r < 0)
		return err_set(e, ERR_IO, -r, "the lock of the sandbox");
	*ret = AT_ONCE;
	return start_locked(id, lock, p, deadline_ns, e);
}

/* One that stands still in its QEMU. That it does not go on now may have passed at the next look. */
static enum step let_go_on(int dirfd, int64_t deadline_ns)
{
	struct err e = ERR_INIT;

	return client_ask(dirfd, "{\"op\":\"resume\"}", deadline_ns, NULL, &e) < 0 ? AGAIN
										   : AT_ONCE;
}

static enum step hold(int dirfd, bool needed, int *ret_hold)
{
	struct err e = ERR_INIT;

	if (!needed)
		return DONE;
	return client_hold(dirfd, loop_now() + HOLD_NS, ret_hold, &e) < 0 ? AGAIN : DONE;
}

static int look(const char *id, int dirfd, const struct progress *p, int64_t deadline_ns,
		enum step *ret, int *ret_hold, struct err *e)
{
	struct sandbox_info i;
	int r;

	expiry_enforce(dirfd);
	r = vmdir_info(id, &i, e);
	if (r < 0)
		return r;
	*ret = AGAIN;
	switch (i.state) {
	case SANDBOX_RUNNING:
		*ret = hold(dirfd, i.idle_timeout_ms > 0, ret_hold);
		break;
	case SANDBOX_SUSPENDED:
		if (!vmdir_is_locked(dirfd))
			return start_it(id, dirfd, p, deadline_ns, ret, e);
		*ret = let_go_on(dirfd, deadline_ns);
		break;
	case SANDBOX_SUSPENDING: /* tells that somebody is here, which may end it */
		if (i.idle_timeout_ms > 0)
			*ret = hold(dirfd, true, ret_hold);
		break;
	case SANDBOX_TERMINATED:
	case SANDBOX_STATE_COUNT:
		*ret = DONE;
		break;
	case SANDBOX_UNKNOWN:
	case SANDBOX_PENDING:
	case SANDBOX_TERMINATING:
		break;
	}
	return 0;
}

int wake(const char *id, const struct progress *p, int64_t deadline_ns, int *ret_hold,
	 struct err *e)
{
	struct timespec nap = { .tv_nsec = STEP_LEAST_NS };
	AUTO_FD dirfd = -1;
	enum step step = AGAIN;
	int r = vmdir_open(id, &dirfd, e);

	*ret_hold = -1;
	while (r == 0) {
		r = look(id, dirfd, p, deadline_ns, &step, ret_hold, e);
		if (r < 0 || step == DONE)
			return r;
		if (p && p->cancel && *p->cancel)
			return err_set(e, ERR_UNAVAILABLE, EINTR, "resuming the sandbox");
		if (loop_now() >= deadline_ns)
			return err_set(e, ERR_TIMEOUT, ETIMEDOUT,
				       "waiting for the sandbox to be resumed");
		if (step == AT_ONCE)
			continue;
		(void)nanosleep(&nap, NULL);
		nap.tv_nsec = nap.tv_nsec * 2 > STEP_MOST_NS ? STEP_MOST_NS : nap.tv_nsec * 2;
	}
	return r;
}
