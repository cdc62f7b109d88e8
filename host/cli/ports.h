/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_CLI_PORTS_H
#define ASB_CLI_PORTS_H

#include <stdint.h>

#include "lib/compiler.h"

/* What asb forward connects: [[ADDRESS:]LOCAL:]REMOTE, an IPv6 address in brackets. An empty LOCAL,
 * or 0, is a port that the kernel picks; without LOCAL it is the same number as REMOTE. */
struct port_spec {
	char address[48]; /* IPv4 or IPv6, numeric; "" = not given */
	uint16_t local;	  /* 0 = any */
	uint16_t remote;  /* never 0 */
};

int ports_parse(const char *s, struct port_spec *ret) MUST_CHECK; /* 0 or -EINVAL */

/* Whether S is a numeric address ("127.0.0.1", "::1"); "localhost" is not. */
int ports_check_address(const char *s) MUST_CHECK; /* 0 or -EINVAL */

#endif
