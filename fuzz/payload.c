/* SPDX-License-Identifier: Apache-2.0 */
/* LINK: hooks/payload.c */
/* The body of the run hook: any process in the guest can send one. */
#include "fuzz/fuzz.h"
#include "hooks/payload.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	char *s = fuzz_text(p, n);
	struct err e = ERR_INIT;
	struct payload pl;

	if (payload_parse(s, n, &pl, &e) == 0) {
		free(payload_public(&pl));
		payload_done(&pl);
	}
	free(s);
	return 0;
}
