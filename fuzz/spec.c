/* SPDX-License-Identifier: Apache-2.0 */
/* LINK: agentd/spec.c agentd/spec_more.c agentd/pyval.c agentd/envbase.c agentd/passwd.c agentd/confine*.c */
/* What is to be run, as a client describes it. */
#include "agentd/spec.h"
#include "fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	char path[] = "PATH=/usr/bin:/bin", home[] = "HOME=/root";
	char *const base[] = { path, home, NULL };
	char *s = fuzz_text(p, n);
	struct err e = ERR_INIT;
	struct spec spec = SPEC_INIT;

	if (spec_native(&spec, s, n, base, &e) == 0 && (!spec.argv || !spec.argv[0] || !spec.envp))
		abort();
	spec_done(&spec);
	free(s);
	return 0;
}
