/* SPDX-License-Identifier: Apache-2.0 */
#include "host/mcp/tool.h"

size_t mcp_cut(const char *p, size_t n, uint64_t cap)
{
	size_t k;

	if (cap == 0 || n <= cap)
		return n;
	k = (size_t)cap;
	/* Back to the begin of a character, but not far: what is no UTF-8 is cut anywhere. */
	for (size_t back = 0; back < 4 && back <= k; back++)
		if (((unsigned char)p[k - back] & 0xc0) != 0x80)
			return k - back;
	return k;
}
