/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_CLI_SINCE_H
#define ASB_CLI_SINCE_H

#include <stdint.h>

#include "lib/compiler.h"

/*
 * A moment, as docker logs --since takes it: how long ago ("90s", "1h30m", with units d h m s and
 * ms), a Unix time ("1700000000.5"), or a date with an optional time and zone ("2026-11-29",
 * "2026-11-29T18:00", "2026-11-29T18:00:00.25Z", "…+02:00"); without a zone it is UTC. NOW_NS and
 * *RET_NS: Unix time. 0 or -EINVAL.
 */
int since_parse(const char *s, int64_t now_ns, int64_t *ret_ns) MUST_CHECK;

/* The time at the begin of a line of a sandbox's log (backend.h, open_log): its length with the
 * space behind it, and *RET_NS; 0 when there is none. N bytes of S may be looked at. */
unsigned since_stamp(const char *s, uint64_t n, int64_t *ret_ns);

#endif
