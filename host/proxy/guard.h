/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_PROXY_GUARD_H
#define ASB_PROXY_GUARD_H

#include <stdbool.h>

#include "lib/buf.h"
#include "lib/compiler.h"

/* What a reverse proxy on this machine lets in, hands on and hands back. Pure. */

/*
 * May a request for HOST (the Host field; NULL = none was sent) come in at the listening ADDRESS? Loopback names and addresses may, and ADDRESS
 * itself; where ADDRESS is a wildcard, any address. Another name is what a web page uses that had its own name pointed here
 * (DNS rebinding).
 */
bool guard_host(const char *host, const char *address);
/* The same for ORIGIN (RFC 6454; NULL = none was sent). "null" is anybody. */
bool guard_origin(const char *origin, const char *address);

/* A request target that is a path: no absolute form, which names a host, no byte that a request line cannot have. */
bool guard_target(const char *target);

/* NAME concerns one connection alone (RFC 9110 §7.6.1), or is named by the Connection field CONNECTION (NULL = none). */
bool guard_hop_by_hop(const char *name, const char *connection);
/* LIST, "a, B", has TOKEN, whatever its case. NULL has none. */
bool guard_has_token(const char *list, const char *token);

/*
 * URL (a Location) into OUT, with the authority HERE ("localhost:8080") when it points at THERE, a host with an optional port, by http, https or without a
 * scheme; otherwise as it is. 0 or negative errno of OUT.
 */
int guard_location(const char *url, const char *there, const char *here, struct buf *out)
	MUST_CHECK;

/*
 * The subprotocols that a client has offered (NULL = none), without those that begin with PREFIX, then OURS (NULL = none), into OUT as
 * "a, b". 0 or negative errno of OUT.
 */
int guard_offer(const char *client, const char *prefix, const char *ours, struct buf *out)
	MUST_CHECK;

#endif
