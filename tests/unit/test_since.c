/* SPDX-License-Identifier: Apache-2.0 */
/* LINK: host/cli/since.c */
#include "host/cli/since.h"

#include <errno.h>
#include <string.h>

#include "lib/compiler.h"
#include "tap.h"

#define NOW 1800000000000000000LL
#define S   1000000000LL

int main(void)
{
	static const struct {
		const char *text;
		int64_t ns;
	} good[] = {
		{ "0", 0 },
		{ "1700000000", 1700000000 * S },
		{ "1700000000.25", 1700000000 * S + S / 4 },
		{ "10s", NOW - 10 * S },
		{ "1h30m", NOW - 5400 * S },
		{ "1.5h", NOW - 5400 * S },
		{ "250ms", NOW - S / 4 },
		{ "2d", NOW - 172800 * S },
		{ "0.5s", NOW - S / 2 },
		{ "1970-01-02", 86400 * S },
		{ "2026-11-29T18:32:23Z", 1795977143 * S },
		{ "2026-11-29 18:32:23.5", 1795977143 * S + S / 2 },
		{ "2026-11-29T18:32", 1795977120 * S },
		{ "2026-11-29T20:32:23+02:00", 1795977143 * S },
		{ "2026-11-29T13:02:23-0530", 1795977143 * S },
		{ "2028-02-29", 1835395200 * S },
	};
	static const char *const bad[] = { "",
					   "-5",
					   "5x",
					   "h",
					   "1h30",
					   "s5",
					   "10 s",
					   "2026-13-01",
					   "2026-02-30",
					   "2026-1-1",
					   "2026-11-29T",
					   "2026-11-29T25:00",
					   "2026-11-29T1:00",
					   "2026-11-29T10:00:00.",
					   "2026-11-29Q",
					   "2026-11-29T10:00+25:00",
					   "99999999999999999999s",
					   "99999999999d",
					   "36500d36500d1s",
					   "now" };
	int64_t ns;

	for (size_t i = 0; i < ARRAY_LEN(good); i++) {
		ns = -1;
		ok(since_parse(good[i].text, NOW, &ns) == 0 && ns == good[i].ns,
		   "'%s' is %lld (%lld)", good[i].text, (long long)good[i].ns, (long long)ns);
	}
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		ok(since_parse(bad[i], NOW, &ns) == -EINVAL, "'%s' is refused", bad[i]);
	ok(since_stamp("2026-11-29T18:32:23.500000Z text", 32, &ns) == 28 &&
		   ns == 1795977143 * S + S / 2,
	   "the time of a line");
	ok(since_stamp("2026-11-29T18:32:23.500000Z text", 27, &ns) == 0, "a cut one is none");
	ok(since_stamp("[    0.000000] Linux version 6.1.0 xx", 37, &ns) == 0, "a line without");
	return tap_done();
}
