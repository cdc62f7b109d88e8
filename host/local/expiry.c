/* SPDX-License-Identifier: Apache-2.0 */
#include "host/local/expiry.h"

#include <time.h>

#include "host/local/saved.h"
#include "lib/fd.h"
#include "lib/str.h"

int64_t expiry_now(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_REALTIME, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

int64_t expiry_of(const struct vm_config *c, const struct vm_status *s)
{
	int64_t began = s->started_ms ? s->started_ms : c->created_s * 1000;

	return c->max_duration_ms ? began + (int64_t)c->max_duration_ms : 0;
}

static bool has_passed(int dirfd, struct vm_status *s)
{
	struct vm_config c = { .env = NULL };
	int64_t end;

	if (!saved_is_there(dirfd) || vmdir_read_config(dirfd, &c, NULL) < 0)
		return false;
	vmdir_read_status(dirfd, s);
	end = expiry_of(&c, s);
	vm_config_done(&c);
	return end && end <= expiry_now();
}

void expiry_enforce(int dirfd)
{
	AUTO_FD lock = -1;
	struct vm_status s;

	/* Looked at again under the lock: it may be started meanwhile. */
	if (!has_passed(dirfd, &s) || vmdir_lock(dirfd, 0, &lock) < 0 || !has_passed(dirfd, &s))
		return;
	if (saved_drop(dirfd, NULL) < 0) /* then the next look tries again */
		return;
	s.state = SANDBOX_TERMINATED;
	ignore_result(str_format(s.reason, sizeof(s.reason), EXPIRY_REASON)); /* fits */
	ignore_result(
		vmdir_write_status(dirfd, &s)); /* without saved/ it is TERMINATED in any case */
}
