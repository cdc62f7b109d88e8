/* SPDX-License-Identifier: Apache-2.0 */
/* Lines cut from a stream: any split of the input must give the same lines. The first byte is the length of the pieces. */
#include "fuzz/fuzz.h"
#include "lib/line.h"

#define LONGEST 64

/* A sum over the lines that come out; pieces of STEP bytes. */
static uint32_t cut(const uint8_t *p, size_t n, size_t step)
{
	struct line_cutter c;
	uint32_t sum = 0;

	line_cutter_init(&c, LONGEST);
	for (size_t at = 0; at < n; at += step) {
		size_t len, take = n - at < step ? n - at : step;
		int r = line_feed(&c, (const char *)p + at, take);
		char *s;

		while ((s = line_next(&c, &len))) {
			for (size_t i = 0; i < len; i++)
				sum = sum * 31 + (unsigned char)s[i];
			sum = sum * 31 + 257;
		}
		if (r < 0)
			break;
	}
	line_cutter_done(&c);
	return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	size_t step = n ? p[0] % LONGEST + 1 : 1;
	const uint8_t *nl = n ? memchr(p + 1, '\n', n - 1) : NULL;

	if (!nl)
		return 0;
	for (size_t i = 1, len = 0; i < n; i++) {
		len = p[i] == '\n' ? 0 : len + 1;
		if (len >
		    LONGEST) { /* where it is refused depends on the pieces: only that it survives */
			(void)cut(p + 1, n - 1, step);
			return 0;
		}
	}
	if (cut(p + 1, n - 1, step) != cut(p + 1, n - 1, 1))
		abort();
	return 0;
}
