/* SPDX-License-Identifier: Apache-2.0 */
/* LINK: agentd/ports.c */
/* Lines of /proc/net/{tcp,udp}[6], of a kernel that is none of ours (gVisor, a file mounted over it). The first byte: which. */
#include "agentd/ports.h"
#include "fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	bool udp = n && p[0] & 1, v6 = n && p[0] & 2, more;
	char *s = n ? fuzz_text(p + 1, n - 1) : NULL, *line = s;
	struct port one;

	while (line) {
		char *nl = strchr(line, '\n');

		if (ports_read_line(line, udp, v6, &one, &more) && (one.udp != udp || one.v6 != v6))
			abort();
		line = nl ? nl + 1 : NULL;
	}
	free(s);
	return 0;
}
