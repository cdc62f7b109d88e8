/* SPDX-License-Identifier: Apache-2.0 */
#ifndef AGENTD_PORTS_H
#define AGENTD_PORTS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "lib/compiler.h"
#include "limits.h"

/* A socket that waits for others: TCP that listens, UDP without a peer. */
struct port {
	uint16_t port;
	bool udp, v6;
	unsigned char addr[16]; /* network order; the first 4 bytes for IPv4 */
	uint64_t inode;
	pid_t pid; /* 0: not found */
	char process[24];
};

struct ports {
	struct port list[LIMIT_PORTS];
	unsigned count;
	bool truncated; /* there are more, or not all could be looked at */
};

/* Fills P, sorted by port. Looks at a bounded part of /proc for a bounded time. */
void ports_collect(struct ports *p);

/* Pure: a line of /proc/net/{tcp,udp}[6]. True and *RET filled for a socket that waits; *RET_MORE false when no such
 * socket can follow (the kernel lists TCP listeners first). */
bool ports_read_line(const char *line, bool udp, bool v6, struct port *ret, bool *ret_more);

#endif
