/* SPDX-License-Identifier: Apache-2.0 */
#ifndef INIT_POWER_H
#define INIT_POWER_H

#include <stdint.h>

#include "lib/compiler.h"
#include "lib/loop.h"
#include "reap.h"
#include "sup.h"

/*
 * The orderly end of a VM: TERM to the workload, grace, KILL, the services, everything else, file
 * systems, reboot(2). Asked for by a signal or by a line on PROTO_INIT_SOCKET.
 */
#define POWER_GRACE_DEFAULT_MS 5000
#define POWER_GRACE_MAX_MS     60000

void power_init(struct loop *l, struct sup *s); /* borrowed */
void power_off(int grace_ms); /* begins; when it has begun, a shorter grace counts */

/* The reaper's news, which may be what power-off waits for. */
void power_reaped(enum reap_result r);

/* File systems, then off. At once: for a boot that failed. */
NORETURN void power_off_now(void);

/* "power-off" or "power-off <ms>" to the grace: 0 or -EINVAL. Pure. */
int power_parse(const char *line, int *ret_grace_ms) MUST_CHECK;

/* Listens at PROTO_INIT_SOCKET. 0 or negative errno. */
int power_listen(struct loop *l) MUST_CHECK;

#endif
