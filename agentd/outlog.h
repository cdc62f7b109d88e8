/* SPDX-License-Identifier: Apache-2.0 */
#ifndef AGENTD_OUTLOG_H
#define AGENTD_OUTLOG_H

#include <stddef.h>
#include <stdint.h>

#include "lib/compiler.h"

/*
 * The last bytes that a command wrote, in the order in which they were read, each with its stream.
 * Bytes are numbered from the command's start; the oldest go first. Pure but for a counter of the
 * memory of all logs.
 */
struct outlog_run {
	uint64_t from; /* offset of its first byte; it ends where the next begins */
	unsigned stream;
};

struct outlog {
	char *p;		 /* owned; byte N lies at N & (size - 1) */
	size_t size;		 /* 0 or a power of two */
	size_t cap;		 /* a power of two */
	uint64_t start, end;	 /* held: [start, end) */
	struct outlog_run *runs; /* owned ring of RUNS_SIZE, a power of two */
	size_t runs_size, run_first, run_count;
};

void outlog_init(struct outlog *l, size_t cap);
void outlog_done(struct outlog *l);

/*
 * Appends N bytes of STREAM. Never fails: where there is no room, no memory or no budget, the
 * oldest bytes are dropped (start moves). Returns the number of bytes that were dropped.
 */
uint64_t outlog_add(struct outlog *l, unsigned stream, const char *p, size_t n);

/* How many bytes can be added without dropping one at or behind OFFSET. */
size_t outlog_room(const struct outlog *l, uint64_t offset);

/* Bytes from OFFSET on that lie in one piece and belong to one stream; 0 at the end. OFFSET must
 * not be below start. */
size_t outlog_peek(const struct outlog *l, uint64_t offset, unsigned *ret_stream, const char **ret);

#endif
