/* SPDX-License-Identifier: Apache-2.0 */
#include "buf.h"

#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BUF_FIRST 256

void buf_init(struct buf *b, size_t cap)
{
	*b = (struct buf){ .cap = cap };
}

void buf_done(struct buf *b)
{
	int saved = errno;

	free(b->p);
	*b = (struct buf){ .cap = b->cap };
	errno = saved;
}

void buf_clear(struct buf *b)
{
	b->len = 0;
	if (b->p)
		b->p[0] = '\0';
}

int buf_reserve(struct buf *b, size_t more)
{
	size_t need, size;
	char *p;

	if (more > b->cap || b->len > b->cap - more)
		return -ENOSPC;
	if (b->cap >= SIZE_MAX / 2)
		return -ENOSPC;
	need = b->len + more + 1;
	if (need <= b->size)
		return 0;
	size = b->size ? b->size : BUF_FIRST;
	while (size < need)
		size *= 2;
	if (size > b->cap + 1)
		size = b->cap + 1;
	p = realloc(b->p, size);
	if (!p)
		return -ENOMEM;
	b->p = p;
	b->size = size;
	b->p[b->len] = '\0';
	return 0;
}

int buf_add(struct buf *b, const void *p, size_t n)
{
	int r = buf_reserve(b, n);

	if (r < 0)
		return r;
	if (n)
		memcpy(b->p + b->len, p, n);
	b->len += n;
	b->p[b->len] = '\0';
	return 0;
}

int buf_adds(struct buf *b, const char *s)
{
	return buf_add(b, s, strlen(s));
}

int buf_addf(struct buf *b, const char *fmt, ...)
{
	va_list ap, again;
	int n, r;

	va_start(ap, fmt);
	va_copy(again, ap);
	n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	r = n < 0 ? -EINVAL : buf_reserve(b, (size_t)n);
	if (r == 0) {
		(void)vsnprintf(b->p + b->len, (size_t)n + 1, fmt, again);
		b->len += (size_t)n;
	}
	va_end(again);
	return r;
}

void buf_drop(struct buf *b, size_t n)
{
	if (n >= b->len) {
		buf_clear(b);
		return;
	}
	memmove(b->p, b->p + n, b->len - n + 1);
	b->len -= n;
}

char *buf_take(struct buf *b)
{
	char *p;

	if (buf_reserve(b, 0) < 0)
		return NULL;
	p = b->p;
	*b = (struct buf){ .cap = b->cap };
	return p;
}
