/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_BENCH_STATS_H
#define ASB_BENCH_STATS_H

#include <stddef.h>
#include <stdint.h>

/* Samples in ns and the one table that all benchmarks print. */
#define STATS_MAX 20000

struct stats {
	const char *what;
	size_t n;
	int64_t ns[STATS_MAX];
};

int64_t stats_now(void); /* CLOCK_MONOTONIC in ns */
void stats_reset(struct stats *s, const char *what);
void stats_add(struct stats *s, int64_t ns);
int64_t stats_percentile(struct stats *s, int percent); /* sorts; 0 when there is no sample */

void stats_title(const char *title);
/* One row: n, p50, p95, p99 in ms, and the ratio of the medians to FLOOR (NULL: none). */
void stats_row(struct stats *s, struct stats *floor);
/* A row for a figure that is not a time. */
void stats_figure(const char *what, double value, const char *unit, const char *goal);

#endif
