/* SPDX-License-Identifier: Apache-2.0 */
/* LINK: host/aws/ini.c */
/* AWS's shared files, as both kinds. */
#include "fuzz/fuzz.h"
#include "host/aws/ini.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	struct ini i;

	for (int kind = INI_CONFIG; kind <= INI_CREDENTIALS; kind++) {
		if (ini_parse(&i, (enum ini_kind)kind, (const char *)p, n) == 0)
			for (size_t k = 0; k < i.len; k++)
				(void)ini_get(&i, i.all[k].section.what, i.all[k].section.name,
					      i.all[k].key, i.all[k].sub);
		ini_done(&i);
	}
	return 0;
}
