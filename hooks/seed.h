/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HOOKS_SEED_H
#define HOOKS_SEED_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/compiler.h"

/*
 * Fresh randomness after a clone. Two clones of one memory image have the same kernel generator;
 * what differs is the clock, what the host sent, and the CPU's own generator. All of it is mixed by
 * HMAC-DRBG (SHA-256, NIST SP 800-90A, BearSSL).
 */
struct seed_part {
	const void *p;
	size_t n;
};

/* Pure: OUT depends on every byte of every part, and on where one ends and the next begins. */
void seed_mix(const struct seed_part *parts, size_t count, void *out, size_t n);

/* N bytes from all sources, and from HOST (what the host sent; may be empty). */
void seed_draw(const void *host, size_t host_len, void *out, size_t n);

/*
 * Gives N bytes to the kernel: written to /dev/urandom, which anybody may; and credited, with an
 * immediate reseed of what getrandom(2) gives, where we have CAP_SYS_ADMIN. *RET_RESEEDED tells of
 * the second. 0 or the negative errno of the first.
 */
int seed_kernel(const void *p, size_t n, bool *ret_reseeded) MUST_CHECK;

#endif
