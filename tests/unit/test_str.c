/* SPDX-License-Identifier: Apache-2.0 */
#include "../../lib/str.h"

#include <errno.h>

#include "../lib/tap.h"

static void test_u64(void)
{
	static const struct {
		const char *in;
		uint64_t min, max;
		int ret;
		uint64_t value;
	} t[] = {
		{ "", 0, 9, -EINVAL, 0 },
		{ " 1", 0, 9, -EINVAL, 0 },
		{ "+1", 0, 9, -EINVAL, 0 },
		{ "-1", 0, 9, -EINVAL, 0 },
		{ "1 ", 0, 9, -EINVAL, 0 },
		{ "0x1", 0, 9, -EINVAL, 0 },
		{ "1e3", 0, 9999, -EINVAL, 0 },
		{ "10", 0, 9, -ERANGE, 0 },
		{ "0", 1, 9, -ERANGE, 0 },
		{ "18446744073709551616", 0, UINT64_MAX, -ERANGE, 0 },
		{ "99999999999999999999999", 0, UINT64_MAX, -ERANGE, 0 },
		{ "18446744073709551615", 0, UINT64_MAX, 0, UINT64_MAX },
		{ "0", 0, 9, 0, 0 },
		{ "007", 0, 9, 0, 7 },
	};

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		uint64_t v = 12345;
		int r = str_to_u64(t[i].in, t[i].min, t[i].max, &v);

		ok(r == t[i].ret && v == (r ? 12345 : t[i].value), "str_to_u64(\"%s\")", t[i].in);
	}
}

static void test_ns(void)
{
	static const struct {
		const char *in;
		int ret;
		int64_t ns;
	} t[] = {
		{ "", -EINVAL, 0 },
		{ ".5", -EINVAL, 0 },
		{ "1.", -EINVAL, 0 },
		{ "-1", -EINVAL, 0 },
		{ "nan", -EINVAL, 0 },
		{ "1e9", -EINVAL, 0 },
		{ "1m", -EINVAL, 0 },
		{ "3601", -ERANGE, 0 },
		{ "99999999999999999999", -ERANGE, 0 },
		{ "2", 0, 2000000000 },
		{ "0.25", 0, 250000000 },
		{ "2s", 0, 2000000000 },
		{ "0.0000000009", 0, 0 },
		{ "1.123456789123", 0, 1123456789 },
	};

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		int64_t v = -7;
		int r = str_to_ns(t[i].in, 3600, &v);

		ok(r == t[i].ret && v == (r ? -7 : t[i].ns), "str_to_ns(\"%s\")", t[i].in);
	}
}

static void test_bytes(void)
{
	static const struct {
		const char *in;
		int ret;
		uint64_t bytes;
	} t[] = {
		{ "512", 0, 512ULL << 20 },  { "2g", 0, 2ULL << 30 },
		{ "2GiB", 0, 2ULL << 30 },   { "64k", 0, 64ULL << 10 },
		{ "1T", 0, 1ULL << 40 },     { "1MB", 0, 1ULL << 20 },
		{ "", -EINVAL, 0 },	     { "g", -EINVAL, 0 },
		{ "1x", -EINVAL, 0 },	     { "1gg", -EINVAL, 0 },
		{ "-1g", -EINVAL, 0 },	     { "17592186044416", -ERANGE, 0 },
		{ "16777216t", -ERANGE, 0 },
	};

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		uint64_t v = 7;
		int r = str_to_bytes(t[i].in, 1 << 20, &v);

		ok(r == t[i].ret && v == (r ? 7 : t[i].bytes), "str_to_bytes(\"%s\")", t[i].in);
	}
}

static void test_utf8(void)
{
	static const struct {
		const char *in;
		bool valid;
	} t[] = {
		{ "", true },
		{ "abc", true },
		{ "\xc3\xa4", true },
		{ "\xe2\x82\xac", true },
		{ "\xf0\x9f\x98\x80", true },
		{ "\xf4\x8f\xbf\xbf", true },
		{ "\x80", false },
		{ "\xc3", false },
		{ "\xc0\xaf", false },
		{ "\xe0\x80\xaf", false },
		{ "\xed\xa0\x80", false },
		{ "\xf4\x90\x80\x80", false },
		{ "\xff", false },
		{ "a\xe2\x82", false },
	};

	for (size_t i = 0; i < ARRAY_LEN(t); i++)
		ok(str_is_utf8(t[i].in, strlen(t[i].in)) == t[i].valid, "str_is_utf8, case %zu", i);
}

static void test_clean(void)
{
	static const struct {
		const char *in, *out;
	} t[] = {
		{ "", "" },
		{ "plain \xc3\xa4", "plain \xc3\xa4" },
		{ "\033[2Ja\nb\177", "?[2Ja?b?" },
		{ "x\xc2\x9b"
		  "1m",
		  "x??1m" }, /* CSI as one character */
		{ "\xc3\xa4\x9b", "???" },
	};
	char s[32];

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		ignore_result(str_format(s, sizeof(s), "%s", t[i].in));
		str_clean(s);
		ok_str(s, t[i].out, "str_clean");
	}
}

int main(void)
{
	char hex[9], small[4];

	test_u64();
	test_ns();
	test_bytes();
	test_utf8();
	test_clean();
	str_hex("\x00\x9f\xff\x10", 4, hex);
	ok_str(hex, "009fff10", "str_hex");
	ok_int(str_format(small, sizeof(small), "%d", 123), 0, "str_format that just fits");
	ok_int(str_format(small, sizeof(small), "%d", 1234), -ENAMETOOLONG,
	       "str_format that does not");
	ok(str_starts("abc", "ab") && !str_starts("ab", "abc"), "str_starts");
	return tap_done();
}
