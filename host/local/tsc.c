/* SPDX-License-Identifier: Apache-2.0 */
#include "host/local/tsc.h"

#if defined(__x86_64__)
#include <time.h>
#include <x86intrin.h>

#define MEASURE_NS 10000000LL

/* One reading of both clocks. The one of several whose two clock readings lie closest together is
 * taken, so that being scheduled away in between does not count. */
static void sample(uint64_t *ret_tsc, int64_t *ret_ns)
{
	int64_t best = INT64_MAX;

	for (int i = 0; i < 5; i++) {
		struct timespec a, b;
		uint64_t tsc;
		int64_t from, gap;

		(void)clock_gettime(CLOCK_MONOTONIC_RAW, &a);
		tsc = __rdtsc();
		(void)clock_gettime(CLOCK_MONOTONIC_RAW, &b);
		from = (int64_t)a.tv_sec * 1000000000 + a.tv_nsec;
		gap = (int64_t)b.tv_sec * 1000000000 + b.tv_nsec - from;
		if (gap < best) {
			best = gap;
			*ret_tsc = tsc;
			*ret_ns = from + gap / 2;
		}
	}
}

uint32_t tsc_khz(void)
{
	const struct timespec pause = { .tv_nsec = MEASURE_NS };
	uint64_t tsc0 = 0, tsc1 = 0, khz;
	int64_t ns0 = 0, ns1 = 0;

	sample(&tsc0, &ns0);
	(void)nanosleep(&pause, 0);
	sample(&tsc1, &ns1);
	if (ns1 <= ns0 || tsc1 <= tsc0)
		return 0;
	khz = (tsc1 - tsc0) * 1000000 / (uint64_t)(ns1 - ns0);
	return khz > UINT32_MAX ? 0 : (uint32_t)khz;
}
#else
uint32_t tsc_khz(void)
{
	return 0;
}
#endif
