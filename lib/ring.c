/* SPDX-License-Identifier: Apache-2.0 */
#include "ring.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define RING_FIRST 4096

void ring_init(struct ring *r, size_t cap)
{
	*r = (struct ring){ .cap = cap };
}

void ring_done(struct ring *r)
{
	free(r->p);
	*r = (struct ring){ .cap = r->cap };
}

size_t ring_peek(const struct ring *r, const char **ret)
{
	size_t straight = r->size - r->head;

	if (r->len == 0)
		return 0;
	*ret = r->p + r->head;
	return r->len < straight ? r->len : straight;
}

void ring_drop(struct ring *r, size_t n)
{
	if (n >= r->len) {
		r->head = r->len = 0;
		return;
	}
	r->head = (r->head + n) & (r->size - 1);
	r->len -= n;
}

size_t ring_get(struct ring *r, void *p, size_t n)
{
	size_t done = 0;

	while (done < n) {
		const char *from;
		size_t k = ring_peek(r, &from);

		if (k == 0)
			break;
		if (k > n - done)
			k = n - done;
		memcpy((char *)p + done, from, k);
		ring_drop(r, k);
		done += k;
	}
	return done;
}

static int grow(struct ring *r, size_t need)
{
	size_t size = r->size ? r->size : RING_FIRST, len = r->len;
	char *p;

	while (size < need)
		size *= 2;
	p = malloc(size);
	if (!p)
		return -ENOMEM;
	len = ring_get(r, p, len);
	free(r->p);
	*r = (struct ring){ .p = p, .len = len, .size = size, .cap = r->cap };
	return 0;
}

int ring_put(struct ring *r, const void *p, size_t n)
{
	size_t tail, straight;
	int ret;

	if (n > ring_room(r))
		return -ENOSPC;
	if (n == 0)
		return 0;
	if (r->len + n > r->size) {
		ret = grow(r, r->len + n);
		if (ret < 0)
			return ret;
	}
	tail = (r->head + r->len) & (r->size - 1);
	straight = r->size - tail;
	if (straight > n)
		straight = n;
	memcpy(r->p + tail, p, straight);
	memcpy(r->p, (const char *)p + straight, n - straight);
	r->len += n;
	return 0;
}
