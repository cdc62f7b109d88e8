/* SPDX-License-Identifier: Apache-2.0 */
#include "host/aws/poll.h"

#include <errno.h>

#include "host/aws/fetch.h"
#include "lib/loop.h"

#define PAUSE_FIRST_NS (250LL * 1000000)
#define PAUSE_LAST_NS  (10LL * 1000000000)

int aws_poll(struct aws *a, int (*fn)(void *arg, struct err *e), void *arg, int64_t limit_ns,
	     const char *what, struct err *e)
{
	int64_t until = loop_now() + limit_ns, pause = PAUSE_FIRST_NS;
	struct err why = ERR_INIT;
	int r;

	while ((r = fn(arg, &why)) == 0) {
		if (loop_now() + pause > until)
			return err_set(e, ERR_TIMEOUT, 0,
				       "waited %lld seconds until %s; the same command goes on%s%s",
				       (long long)(limit_ns / 1000000000), what,
				       why.code == ERR_NONE ? "" : ". The last answer: ", why.msg);
		if (fetch_sleep(a->fetch, pause) < 0)
			return err_set(e, ERR_UNAVAILABLE, EINTR, "waiting until %s", what);
		pause = pause * 2 < PAUSE_LAST_NS ? pause * 2 : PAUSE_LAST_NS;
		why = (struct err)ERR_INIT;
	}
	if (r < 0 && e)
		*e = why;
	return r < 0 ? r : 0;
}
