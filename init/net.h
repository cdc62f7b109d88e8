/* SPDX-License-Identifier: Apache-2.0 */
#ifndef INIT_NET_H
#define INIT_NET_H

#include "cmdline.h"
#include "lib/compiler.h"
#include "lib/err.h"

/*
 * lo up; with CMDLINE_NET_USER also eth0 as QEMU's user-mode network wants it (10.0.2.15/24,
 * gateway 10.0.2.2), and a resolv.conf (10.0.2.3) where the image has none or an empty one. 0, or a
 * negative errno with a message.
 */
int net_setup(enum cmdline_net net, struct err *e) MUST_CHECK;

#endif
