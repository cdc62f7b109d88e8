/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_PORTD_H
#define ASB_PORTD_H

#include "../lib/compiler.h"
#include "../lib/loop.h"

/* The guest's end of the VM channel: a CONNECT becomes a TCP connection to the guest's loopback. */
struct portd;

/* FD: the channel, non-blocking, borrowed. 0 or negative errno. */
int portd_start(struct loop *l, int fd, struct portd **ret) MUST_CHECK;
void portd_stop(struct portd *p);

#endif
