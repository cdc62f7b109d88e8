/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <linux/capability.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "confine_int.h"

/*
 * Three sets. A restricted command that runs as root keeps what a package manager needs for files and for its unprivileged helpers,
 * and loses what changes the guest. A worker keeps what opening and writing anybody's file needs. agentd keeps in force what it uses
 * itself; it holds the rest without having it in force, because what a command gets is bounded by what its parent holds.
 */
#define BIT(cap) (1ULL << (cap))

#define FILES (BIT(CAP_CHOWN) | BIT(CAP_DAC_OVERRIDE) | BIT(CAP_FOWNER) | BIT(CAP_FSETID))
#define RESTRICTED \
	(FILES | BIT(CAP_KILL) | BIT(CAP_SETGID) | BIT(CAP_SETUID) | BIT(CAP_NET_BIND_SERVICE))
#define WORKER (FILES | BIT(CAP_DAC_READ_SEARCH))
#define OWN                                                                              \
	(RESTRICTED | BIT(CAP_DAC_READ_SEARCH) | BIT(CAP_SETPCAP) | BIT(CAP_SYS_ADMIN) | \
	 BIT(CAP_SYS_PTRACE) | BIT(CAP_SYS_NICE) | BIT(CAP_SYS_RESOURCE))

struct caps {
	struct __user_cap_header_struct h;
	struct __user_cap_data_struct d[2];
};

static int caps_get(struct caps *c)
{
	memset(c, 0, sizeof(*c));
	c->h.version = _LINUX_CAPABILITY_VERSION_3;
	return syscall(SYS_capget, &c->h, c->d) < 0 ? -errno : 0;
}

/* Permitted and effective become what they have in common with KEEP, inheritable nothing. */
static int keep_only(uint64_t keep)
{
	struct caps c;
	int r = caps_get(&c);

	if (r < 0)
		return r;
	for (int i = 0; i < 2; i++) {
		c.d[i].permitted &= (uint32_t)(keep >> (32 * i));
		c.d[i].effective &= c.d[i].permitted;
		c.d[i].inheritable = 0;
	}
	if (syscall(SYS_capset, &c.h, c.d) < 0)
		return -errno;
	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0 && errno != EINVAL)
		return -errno;
	return 0;
}

/* EPERM is fine: who may not drop cannot gain either, under the no_new_privs that follows. */
static int bound_by(uint64_t keep)
{
	for (int cap = 0; cap < 64; cap++)
		if (!(keep & BIT(cap)) && prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0) {
			if (errno == EINVAL)
				return 0; /* behind the last that this kernel knows */
			if (errno != EPERM)
				return -errno;
		}
	return 0;
}

int caps_drop_bounding(void)
{
	return bound_by(RESTRICTED);
}

int caps_drop_restricted(void)
{
	return keep_only(RESTRICTED);
}

int caps_drop_worker(void)
{
	int r = bound_by(WORKER);

	return r < 0 ? r : keep_only(WORKER);
}

void confine_self(void)
{
	struct caps c;

	if (caps_get(&c) < 0)
		return;
	for (int i = 0; i < 2; i++)
		c.d[i].effective &= (uint32_t)(OWN >> (32 * i));
	(void)syscall(SYS_capset, &c.h, c.d); /* giving up is always allowed */
}
