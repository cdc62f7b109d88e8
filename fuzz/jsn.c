/* SPDX-License-Identifier: Apache-2.0 */
/* Every JSON document that comes from outside passes jsn_parse: what it accepts must print and parse again. */
#include "fuzz/fuzz.h"
#include "lib/jsn.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	struct err e = ERR_INIT;
	char *s = fuzz_text(p, n), *again;
	AUTO_JSN *j = jsn_parse(s, n, &e);

	free(s);
	if (!j)
		return 0;
	again = cJSON_PrintUnformatted(j);
	if (again) {
		AUTO_JSN *k = jsn_parse(again, strlen(again), &e);

		if (!k)
			abort();
	}
	free(again);
	return 0;
}
