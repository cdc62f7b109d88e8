/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_CORE_FORWARD_H
#define ASB_CORE_FORWARD_H

#include "host/cli/ports.h"
#include "host/core/core.h"

/*
 * TCP ports of this machine that lead into a sandbox, for as long as a process serves them: any bytes where the backend opens streams, HTTP with
 * WebSockets where it has a route (host/proxy/).
 */

#define FORWARD_MAX 64 /* ports at a time */

struct forward;

bool forward_possible(const struct backend *b);
bool forward_is_http(const struct forward *f);

/*
 * Listens for LEN PORTS, whose addresses are given, of N, which is resumed when it is suspended and borrowed until forward_close. Its
 * state is looked at each POLL_NS. SIGINT, SIGTERM, SIGHUP and SIGCHLD are blocked and taken from here on. 0 or a negative errno;
 * ERR_IO with the errnum of bind(2), ERR_DENIED for the hook port, ERR_USAGE for too many.
 */
int forward_open(struct core_named *n, const struct port_spec *ports, unsigned len, int64_t poll_ns,
		 struct forward **ret, struct err *e) MUST_CHECK;
/* Port I with the local port that was picked; NULL behind the last. */
const struct port_spec *forward_port(const struct forward *f, unsigned i);
/* Serves until a signal comes or the sandbox has ended; says on standard error which. 0 or a negative errno. */
int forward_run(struct forward *f, struct err *e) MUST_CHECK;
/* Ends the connections too. */
void forward_close(struct forward *f);

#endif
