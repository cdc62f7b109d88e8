/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HOOKS_PORTRANGE_H
#define HOOKS_PORTRANGE_H

#include <stdint.h>

#include "lib/compiler.h"

struct portrange {
	unsigned low, high; /* both are in it */
};

/* A part of ALL for who has this RANDOM: it begins in the first quarter and ends in the last, and each end keeps its parity
 * (the kernel wants two different ones). ALL itself when that is small (below 1024). Pure. */
struct portrange portrange_choose(struct portrange all, uint32_t random);

/* Gives connections to come other local ports than a clone of this guest draws. 0 or negative errno. */
int portrange_renew(uint32_t random) MUST_CHECK;

#endif
