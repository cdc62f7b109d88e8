/* SPDX-License-Identifier: Apache-2.0 */
/* LINK: host/agent/keys.c */
#include "host/agent/keys.h"

#include <errno.h>
#include <string.h>

#include "lib/compiler.h"
#include "tap.h"

static void test_parse(void)
{
	static const struct {
		const char *text, *seq;
		size_t len;
	} good[] = {
		{ "ctrl-p,ctrl-q", "\x10\x11", 2 },
		{ "CTRL-P,Ctrl-Q", "\x10\x11", 2 },
		{ "a", "a", 1 },
		{ "~,.", "~.", 2 },
		{ "ctrl-@", "\0", 1 },
		{ "ctrl-],ctrl-\\,ctrl-^,ctrl-_,ctrl-[", "\x1d\x1c\x1e\x1f\x1b", 5 },
		{ "", "", 0 },
	};
	static const char *const bad[] = {
		"ctrl-",    "ctrl-pp", "ab", "ctrl-1", "a,",	"ctrl p",
		"\xc3\xa4", "ctrl-p,", ",",  "a,,b",   "alt-x", "ctrl-`"
	};
	struct keys k;
	char many[2 * KEYS_MAX + 4];

	for (size_t i = 0; i < ARRAY_LEN(good); i++)
		ok(keys_parse(&k, good[i].text) == 0 && k.len == good[i].len &&
			   memcmp(k.seq, good[i].seq, k.len) == 0,
		   "'%s' is read", good[i].text);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		ok(keys_parse(&k, bad[i]) == -EINVAL, "'%s' is refused", bad[i]);
	for (size_t i = 0; i <= KEYS_MAX; i++)
		memcpy(many + 2 * i, "x,", 3);
	many[2 * KEYS_MAX + 1] = '\0';
	ok(keys_parse(&k, many) == -EINVAL, "a row that is too long is refused");
}

/* Types IN; what comes out is compared, and where the row is whole (-1: nowhere). */
static void type(const char *row, const char *in, const char *want, int want_at)
{
	struct keys k;
	unsigned char out[KEYS_MAX];
	char got[64];
	size_t n, len = 0;
	int at = -1;

	if (keys_parse(&k, row) < 0)
		at = -2;
	for (int i = 0; in[i] && at == -1; i++) {
		if (keys_feed(&k, (unsigned char)in[i], out, &n))
			at = i;
		memcpy(got + len, out, n);
		len += n;
	}
	got[len] = '\0';
	ok(at == want_at && strcmp(got, want) == 0, "row %s: %zu bytes typed, %zu come out, at %d",
	   row, strlen(in), len, at);
}

int main(void)
{
	test_parse();
	type("ctrl-p,ctrl-q", "ab\x10\x11", "ab", 3);
	type("ctrl-p,ctrl-q", "\x10x\x10\x10y", "\x10x\x10\x10y", -1);
	type("ctrl-p,ctrl-q", "\x10\x10\x11", "\x10", 2);
	type("ctrl-p,ctrl-q", "a\x10", "a", -1);
	type("a,a,b", "aaab", "a", 3);
	type("a,b,a,c", "ababac", "ab", 5);
	type("", "\x10\x11", "\x10\x11", -1);
	return tap_done();
}
