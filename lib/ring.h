/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_RING_H
#define ASB_RING_H

#include <stddef.h>

#include "compiler.h"

/*
 * A byte queue with a mandatory cap: bytes go in at one end and out at the other without being
 * moved in between. Nothing is allocated before the first byte; the memory grows by doubling and
 * stays until ring_done.
 */
struct ring {
	char *p;     /* owned */
	size_t head; /* where the oldest byte is */
	size_t len;  /* bytes queued */
	size_t size; /* of the memory: 0 or a power of two */
	size_t cap;  /* most bytes it may ever hold: a power of two */
};

void ring_init(struct ring *r, size_t cap);
void ring_done(struct ring *r);

static inline size_t ring_room(const struct ring *r)
{
	return r->cap - r->len;
}

/* Queues all N bytes: 0, -ENOSPC when they do not fit, -ENOMEM. On failure R is as it was. */
int ring_put(struct ring *r, const void *p, size_t n) MUST_CHECK;

/* The oldest bytes that lie in one piece: their number, 0 when empty. *RET is valid until the next
 * ring_put. */
size_t ring_peek(const struct ring *r, const char **ret) MUST_CHECK;

void ring_drop(struct ring *r, size_t n); /* the N oldest, all when N > len */

/* Moves up to N bytes to P; returns how many. */
size_t ring_get(struct ring *r, void *p, size_t n) MUST_CHECK;

#endif
