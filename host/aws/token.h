/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_AWS_TOKEN_H
#define ASB_AWS_TOKEN_H

#include <stdbool.h>
#include <stdint.h>

#include "host/aws/aws.h"
#include "host/backend.h"
#include "lib/compiler.h"
#include "lib/err.h"

/*
 * Tokens that let requests into a VM: made by CreateMicrovmAuthToken for a set of ports and 60 minutes, kept in
 * <state>/aws/tokens/<hash of id>-<hash of ports>.json (0600) so that the next asb needs no call of AWS.
 */

/*
 * A token for PORTS of the VM ID into RET, with the URL of its ENDPOINT (a host, as RunMicrovm tells it): the kept one while it is good
 * for TOKEN_SPARE_S more, unless FRESH. ERR_INVALID for an endpoint that no token may be sent to.
 */
int token_route(struct aws *a, const char *id, const char *endpoint,
		const struct backend_ports *ports, bool fresh, struct backend_route *ret,
		struct err *e) MUST_CHECK;
#define TOKEN_MINUTES 60
#define TOKEN_SPARE_S 300

/* Forgets what is kept for the VM, and of others what has expired. */
void token_forget(const char *id);

/*
 * "https://HOST" for an endpoint, which must be a host with an optional port. OWN: AWS's own service is used, so it must be one
 * of AWS's hosts. ERR_INVALID otherwise.
 */
int token_url(const char *endpoint, bool own, char ret[static BACKEND_URL_MAX], struct err *e)
	MUST_CHECK;

#endif
