/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HOOKS_SERVER_H
#define HOOKS_SERVER_H

#include <stdint.h>

#include "job.h"
#include "lib/compiler.h"

/* The HTTP side: the six hooks, and POST /asb/v1/power-off in a local VM. H is borrowed for ever.
 * 0, or negative errno with a message. */
int server_start(struct hooks *h, uint16_t port, struct err *e) MUST_CHECK;

#endif
