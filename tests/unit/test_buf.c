/* SPDX-License-Identifier: Apache-2.0 */
#include "../../lib/buf.h"

#include <errno.h>
#include <stdint.h>

#include "../lib/tap.h"

static void test_growth(void)
{
	AUTO_BUF b;
	int bad = 0;

	buf_init(&b, 10000);
	ok(!b.p, "nothing is allocated before the first byte");
	for (int i = 0; i < 10000; i++) {
		char c = (char)('a' + i % 26);

		bad += buf_add(&b, &c, 1) != 0 || b.p[b.len] != '\0';
	}
	ok_int(bad, 0, "10,000 single bytes fit, each followed by NUL");
	ok_int(buf_add(&b, "x", 1), -ENOSPC, "one more is over the cap");
	ok_int(b.len, 10000, "and changes nothing");
	ok_int(b.p[9999], 'a' + 9999 % 26, "the last byte is right");
	buf_drop(&b, 9990);
	ok_int(b.len, 10, "dropping keeps the rest");
	ok_int(b.p[0], 'a' + 9990 % 26, "moved to the front");
	buf_drop(&b, 99);
	ok_int(b.len, 0, "dropping more than there is empties it");
}

static void test_edges(void)
{
	AUTO_BUF b;
	char *p;

	buf_init(&b, 0);
	ok_int(buf_add(&b, "", 0), 0, "nothing fits into a cap of 0");
	ok_int(buf_add(&b, "x", 1), -ENOSPC, "a byte does not");
	ok_int(buf_reserve(&b, SIZE_MAX), -ENOSPC, "a size that would wrap is refused");
	buf_done(&b);
	buf_init(&b, SIZE_MAX);
	ok_int(buf_reserve(&b, SIZE_MAX - 1), -ENOSPC, "with no sane cap too");
	buf_init(&b, 100);
	ok_int(buf_addf(&b, "%s-%d", "ab", 7), 0, "formatting");
	ok_str(b.p, "ab-7", "gives the text");
	ok_int(buf_addf(&b, "%0200d", 1), -ENOSPC, "formatting over the cap is refused");
	ok_str(b.p, "ab-7", "and leaves the text alone");
	p = buf_take(&b);
	ok_str(p, "ab-7", "taking gives the memory");
	free(p);
	ok(b.p == NULL && b.len == 0, "and leaves an empty buffer");
	p = buf_take(&b);
	ok_str(p, "", "taking from an empty one gives an empty string");
	free(p);
}

int main(void)
{
	test_growth();
	test_edges();
	return tap_done();
}
