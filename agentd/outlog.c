/* SPDX-License-Identifier: Apache-2.0 */
#include "outlog.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "limits.h"

/*
 * Two rings: the bytes, and the runs that say which stream they belong to. Both grow by doubling up
 * to their caps. A command that changes its stream with every byte fills the runs long before the
 * bytes; then a whole run is dropped for a new one, which is the same as having had fewer bytes of
 * room.
 */

#define FIRST_SIZE 4096
#define FIRST_RUNS 16

static size_t total; /* bytes of all logs */

void outlog_init(struct outlog *l, size_t cap)
{
	*l = (struct outlog){ .cap = cap };
}

void outlog_done(struct outlog *l)
{
	total -= l->size;
	free(l->p);
	free(l->runs);
	outlog_init(l, l->cap);
}

static size_t held(const struct outlog *l)
{
	return (size_t)(l->end - l->start);
}

static struct outlog_run *run_at(const struct outlog *l, size_t i)
{
	return &l->runs[(l->run_first + i) & (l->runs_size - 1)];
}

/* Copies between the ring and a plain piece of memory. */
static void ring_store(char *ring, size_t size, uint64_t at, const char *p, size_t n)
{
	size_t pos = (size_t)at & (size - 1), first = size - pos < n ? size - pos : n;

	memcpy(ring + pos, p, first);
	memcpy(ring, p + first, n - first);
}

static void grow_bytes(struct outlog *l, size_t want)
{
	size_t size = l->size ? l->size : FIRST_SIZE;
	char *p;

	while (size < want && size < l->cap)
		size *= 2;
	if (size > l->cap)
		size = l->cap;
	if (size <= l->size || total + size - l->size > LIMIT_LOG_TOTAL)
		return;
	p = malloc(size);
	if (!p)
		return;
	for (uint64_t at = l->start; at < l->end;) {
		size_t pos = (size_t)at & (l->size - 1), n = l->size - pos;

		if (n > l->end - at)
			n = (size_t)(l->end - at);
		ring_store(p, size, at, l->p + pos, n);
		at += n;
	}
	total += size - l->size;
	free(l->p);
	l->p = p;
	l->size = size;
}

static void grow_runs(struct outlog *l)
{
	size_t size = l->runs_size ? l->runs_size * 2 : FIRST_RUNS;
	struct outlog_run *r = size <= LIMIT_LOG_RUNS ? calloc(size, sizeof(*r)) : NULL;

	if (!r)
		return;
	for (size_t i = 0; i < l->run_count; i++)
		r[i] = *run_at(l, i);
	free(l->runs);
	l->runs = r;
	l->runs_size = size;
	l->run_first = 0;
}

/* Forgets the bytes below OFFSET, and the runs that held nothing else. */
static void drop_below(struct outlog *l, uint64_t offset)
{
	l->start = offset;
	while (l->run_count > 1 && run_at(l, 1)->from <= offset) {
		l->run_first = (l->run_first + 1) & (l->runs_size - 1);
		l->run_count--;
	}
	if (l->run_count && run_at(l, 0)->from < offset)
		run_at(l, 0)->from = offset;
}

/* Makes the last run one of STREAM. False when there is no memory for a single run. */
static bool continue_run(struct outlog *l, unsigned stream)
{
	if (l->run_count && run_at(l, l->run_count - 1)->stream == stream)
		return true;
	if (l->run_count == l->runs_size)
		grow_runs(l);
	if (l->runs_size == 0)
		return false;
	if (l->run_count == l->runs_size)
		drop_below(l, run_at(l, 1)->from);
	*run_at(l, l->run_count++) = (struct outlog_run){ l->end, stream };
	return true;
}

uint64_t outlog_add(struct outlog *l, unsigned stream, const char *p, size_t n)
{
	uint64_t before = l->start;
	size_t skip = 0;

	if (n == 0)
		return 0;
	if (held(l) + n > l->size)
		grow_bytes(l, held(l) + n);
	if (l->size == 0 || !continue_run(l, stream)) {
		l->start = l->end =
			l->end + n; /* no memory at all: as if it had been dropped at once */
		l->run_count = 0;
		return l->start - before;
	}
	if (n > l->size)
		skip = n - l->size;
	l->end += n;
	if (held(l) > l->size)
		drop_below(l, l->end - l->size);
	ring_store(l->p, l->size, l->end - n + skip, p + skip, n - skip);
	return l->start - before;
}

/* The size that the log could grow to now. */
static size_t reachable(const struct outlog *l)
{
	size_t size = l->cap;

	while (size > l->size && total + size - l->size > LIMIT_LOG_TOTAL)
		size /= 2;
	return size > l->size ? size : l->size;
}

size_t outlog_room(const struct outlog *l, uint64_t offset)
{
	size_t size = reachable(l);
	uint64_t keep = offset > l->start ? (offset < l->end ? l->end - offset : 0) : held(l);

	if (l->run_count == LIMIT_LOG_RUNS && run_at(l, 1)->from > offset)
		return 0;
	return keep < size ? size - (size_t)keep : 0;
}

/* Index of the run that holds OFFSET. */
static size_t find_run(const struct outlog *l, uint64_t offset)
{
	size_t lo = 0, hi = l->run_count;

	while (hi - lo > 1) {
		size_t mid = lo + (hi - lo) / 2;

		if (run_at(l, mid)->from <= offset)
			lo = mid;
		else
			hi = mid;
	}
	return lo;
}

size_t outlog_peek(const struct outlog *l, uint64_t offset, unsigned *ret_stream, const char **ret)
{
	size_t i, pos;
	uint64_t end;

	if (offset < l->start || offset >= l->end)
		return 0;
	i = find_run(l, offset);
	end = i + 1 < l->run_count ? run_at(l, i + 1)->from : l->end;
	pos = (size_t)offset & (l->size - 1);
	*ret_stream = run_at(l, i)->stream;
	*ret = l->p + pos;
	return end - offset < l->size - pos ? (size_t)(end - offset) : l->size - pos;
}
