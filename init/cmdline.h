/* SPDX-License-Identifier: Apache-2.0 */
#ifndef INIT_CMDLINE_H
#define INIT_CMDLINE_H

#include <stdbool.h>
#include <stddef.h>
#include <time.h>

#include "lib/compiler.h"
#include "lib/err.h"

/* The `asb.` words of the kernel command line (docs/architecture.md, "Boot of a local VM"). Pure.
 */

#define CMDLINE_HOSTNAME_MAX 64

enum cmdline_net { CMDLINE_NET_NONE, CMDLINE_NET_USER };

struct cmdline {
	bool ours;				 /* there was a word that begins with "asb." */
	char hostname[CMDLINE_HOSTNAME_MAX + 1]; /* "" = as it is */
	enum cmdline_net net;
	struct timespec time; /* 0 = as it is */
};

/*
 * Reads TEXT, the content of /proc/cmdline. Words of others are passed over, so are unknown asb.
 * words, which a newer asb may send; a known one with a bad value is -EINVAL with a message. Words
 * behind "--" are for init's argv and not read.
 */
int cmdline_parse(const char *text, struct cmdline *ret, struct err *e) MUST_CHECK;

#endif
