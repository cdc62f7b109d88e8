/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_BUF_H
#define ASB_BUF_H

#include <stddef.h>

#include "compiler.h"

/*
 * A growable byte buffer with a mandatory cap. The bytes are always followed by a NUL that is not counted, so
 * text can be used as a C string. Growth is by doubling; nothing is allocated before the first byte.
 */
struct buf {
	char *p;    /* owned; NULL while empty and never grown */
	size_t len; /* bytes in use */
	size_t size;
	size_t cap; /* most bytes it may ever hold */
};

void buf_init(struct buf *b, size_t cap);
void buf_done(struct buf *b);  /* frees; B may be used again after buf_init */
void buf_clear(struct buf *b); /* len = 0, keeps the memory */

/* All return 0, -ENOSPC over the cap, -ENOMEM; on failure B is as it was. */
int buf_add(struct buf *b, const void *p, size_t n) MUST_CHECK;
int buf_adds(struct buf *b, const char *s) MUST_CHECK;
int buf_addf(struct buf *b, const char *fmt, ...) PRINTF(2, 3) MUST_CHECK;
int buf_reserve(struct buf *b, size_t more) MUST_CHECK; /* room for MORE bytes behind len */

/* Drops the first N bytes (all of them when N > len). */
void buf_drop(struct buf *b, size_t n);

/* Takes the memory out of B (never NULL unless allocation fails); the caller frees it. */
char *buf_take(struct buf *b) MUST_CHECK;

#define AUTO_BUF CLEANUP(buf_done) struct buf

#endif
