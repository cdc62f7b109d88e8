/* SPDX-License-Identifier: Apache-2.0 */
#ifndef AGENTD_CONFINE_INT_H
#define AGENTD_CONFINE_INT_H

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdint.h>

#include "confine.h"

/* A call that a profile denies. */
struct call {
	int16_t native, compat; /* its numbers; -1: that ABI has no such call */
	uint8_t errnum;
	char name[19];
};

/* Made from seccomp/rules.h when agentd is built. */
#if defined(__x86_64__)
#include "gen/seccomp_x86_64.h"
#elif defined(__aarch64__)
#include "gen/seccomp_aarch64.h"
#else
#error "no seccomp filters for this architecture"
#endif

/* confine_deny.c: FD (taken) is the listener of a filter of PROFILE. */
void deny_init(struct loop *l);
void deny_listen(int fd, enum confine_profile profile);
bool deny_room(void); /* for one more listener */
void deny_stop(void);

/* confine_caps.c: each 0 or a negative errno. */
int caps_drop_bounding(void) MUST_CHECK;   /* to what restricted commands keep */
int caps_drop_restricted(void) MUST_CHECK; /* the other sets */
int caps_drop_worker(void) MUST_CHECK;

#endif
