/* SPDX-License-Identifier: Apache-2.0 */
#include "stats.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

int64_t stats_now(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

void stats_reset(struct stats *s, const char *what)
{
	s->what = what;
	s->n = 0;
}

void stats_add(struct stats *s, int64_t ns)
{
	if (s->n < STATS_MAX)
		s->ns[s->n++] = ns;
}

static int by_value(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return x < y ? -1 : x > y;
}

int64_t stats_percentile(struct stats *s, int percent)
{
	size_t at;

	if (!s->n)
		return 0;
	qsort(s->ns, s->n, sizeof(s->ns[0]), by_value);
	at = (s->n * (size_t)percent + 99) / 100;
	return s->ns[at ? at - 1 : 0];
}

void stats_title(const char *title)
{
	printf("\n%s\n%-58s %6s %10s %10s %10s %8s\n", title, "", "n", "p50 ms", "p95 ms", "p99 ms",
	       "ratio");
}

void stats_row(struct stats *s, struct stats *floor)
{
	double ms = 1e6, p50 = (double)stats_percentile(s, 50);

	printf("%-58s %6zu %10.3f %10.3f %10.3f ", s->what, s->n, p50 / ms,
	       (double)stats_percentile(s, 95) / ms, (double)stats_percentile(s, 99) / ms);
	if (floor && floor->n)
		printf("%8.2f\n", p50 / (double)stats_percentile(floor, 50));
	else
		printf("%8s\n", "floor");
	fflush(stdout);
}

void stats_figure(const char *what, double value, const char *unit, const char *goal)
{
	printf("%-58s %12.1f %-8s goal %s\n", what, value, unit, goal);
	fflush(stdout);
}
