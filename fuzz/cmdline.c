/* SPDX-License-Identifier: Apache-2.0 */
/* LINK: init/cmdline.c */
/* The kernel command line, before anything else runs. */
#include "fuzz/fuzz.h"
#include "init/cmdline.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	char *s = fuzz_text(p, n);
	struct cmdline c;
	struct err e = ERR_INIT;

	if (cmdline_parse(s, &c, &e) == 0 && strlen(c.hostname) > CMDLINE_HOSTNAME_MAX)
		abort();
	free(s);
	return 0;
}
