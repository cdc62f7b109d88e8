/* SPDX-License-Identifier: Apache-2.0 */
/* LINK: host/infra/yaml.c host/infra/config.c host/infra/load.c host/infra/template.c */
/* sandbox.yaml: whatever is read has every text and stays within the caps. */
#include "fuzz/fuzz.h"
#include "host/infra/config.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	char *s = fuzz_text(p, n);
	struct infra_configs c = { NULL, 0 };
	struct err e = ERR_INIT;

	if (infra_config_parse("f", s, n, NULL, &c, &e) == 0)
		for (size_t i = 0; i < c.len; i++)
			for (int t = 0; t < INFRA_TEXT_COUNT; t++)
				if (!c.all[i].text[t] || strlen(c.all[i].text[t]) > 1024)
					abort();
	infra_configs_done(&c);
	free(s);
	return 0;
}
