/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_FUZZ_H
#define ASB_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* The entry point that libFuzzer calls (LLVM, "libFuzzer – a library for coverage-guided fuzz testing"). Returns 0. */
int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

/* A copy of N bytes with a NUL behind them, in memory of exactly that size, so that ASan sees every over-read. */
static inline char *fuzz_text(const uint8_t *p, size_t n)
{
	char *s = malloc(n + 1);

	if (!s)
		abort();
	if (n)
		memcpy(s, p, n);
	s[n] = '\0';
	return s;
}

/* What START says, which is called for the first input only: false = nothing must be tried here. */
static inline bool fuzz_started(bool (*start)(void))
{
	static bool started, usable;

	if (!started)
		usable = start();
	started = true;
	return usable;
}

#endif
