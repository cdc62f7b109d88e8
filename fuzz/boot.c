/* SPDX-License-Identifier: Apache-2.0 */
/* LINK: host/local/boot.c */
/* Boot lines and console bytes of a hostile guest, as the supervisor reads them. '\0' in the input changes between the two. */
#include "fuzz/fuzz.h"
#include "host/local/boot.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	char *s = fuzz_text(p, n);
	struct boot b;
	struct err e = ERR_INIT;
	bool console = false;

	memset(&b, 0, sizeof(b));
	for (size_t at = 0; at < n;) {
		size_t len = strlen(s + at);

		if (console)
			boot_console(&b, s + at, len);
		else if (boot_line(&b, s + at, len) < 0)
			(void)boot_fail(&b, "QEMU ended", ERR_UNAVAILABLE, &e);
		console = !console;
		at += len + 1;
	}
	(void)boot_fail(&b, "QEMU ended", ERR_UNAVAILABLE, &e);
	free(s);
	return 0;
}
