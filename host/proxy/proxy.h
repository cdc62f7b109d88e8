/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_PROXY_PROXY_H
#define ASB_PROXY_PROXY_H

#include <stdbool.h>
#include <sys/types.h>

#include "host/backend.h"
#include "host/cli/ports.h"
#include "lib/compiler.h"
#include "lib/err.h"
#include "lib/loop.h"

/*
 * Ports of this machine that lead into a sandbox whose backend has a route: a streaming HTTP/1.1 reverse proxy, with WebSockets, that
 * adds what lets requests in. Inside a loop; what may take the platform a while is asked by child processes.
 */
struct proxy;

struct proxy_config { /* borrowed until proxy_close */
	struct loop *loop;
	const struct backend *backend;
	const char *id, *name; /* of the sandbox */
};

/* PORTS (LEN, at most BACKEND_PORTS_MAX - 1) are those that will be listened for. Asks for the first route, which may take a call of the
 * platform. 0 or negative errno. */
int proxy_open(const struct proxy_config *c, const struct port_spec *ports, unsigned len,
	       struct proxy **ret, struct err *e) MUST_CHECK;
/* Serves FD (a listening socket, owned from here on), for port SPEC. 0 or negative errno. */
int proxy_listen(struct proxy *p, int fd, const struct port_spec *spec, struct err *e) MUST_CHECK;
/* A child has ended: true when it was one of P's. */
bool proxy_reaped(struct proxy *p, pid_t pid, int status);
/* Whether the sandbox runs, as far as is known: while it does not, a refusal may be a matter of time. */
void proxy_told(struct proxy *p, bool running);
/* What is under way is reset. NULL is fine. */
void proxy_close(struct proxy *p);

#endif
