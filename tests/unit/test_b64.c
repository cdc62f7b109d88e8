/* SPDX-License-Identifier: Apache-2.0 */
#include "../../lib/b64.h"

#include <errno.h>
#include <stdbool.h>

#include "../lib/tap.h"

static void test_vectors(void)
{
	/* RFC 4648 §10 */
	static const char *const t[][2] = {
		{ "", "" },
		{ "f", "Zg==" },
		{ "fo", "Zm8=" },
		{ "foo", "Zm9v" },
		{ "foob", "Zm9vYg==" },
		{ "fooba", "Zm9vYmE=" },
		{ "foobar", "Zm9vYmFy" },
		{ "\xff\xfe", "//4=" },
	};
	char out[32], back[32];
	size_t n;

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		b64_encode(t[i][0], strlen(t[i][0]), out);
		ok_str(out, t[i][1], t[i][1]);
		ok(b64_decode(t[i][1], strlen(t[i][1]), back, &n) == 0 && n == strlen(t[i][0]) &&
			   !memcmp(back, t[i][0], n),
		   "and back");
	}
}

/* What Python's binascii.a2b_base64 says. LEN < 0: an error. */
static void test_lenient(void)
{
	static const struct {
		const char *in;
		int len;
		const char *out;
	} t[] = {
		{ "A", -1, "" },	{ "AB", -1, "" },	   { "ABC", -1, "" },
		{ "AB=", -1, "" },	{ "ABCDE", -1, "" },	   { "ABCDEF=", -1, "" },
		{ "=", 0, "" },		{ "====", 0, "" },	   { "A=", -1, "" },
		{ "A==", -1, "" },	{ "A===", -1, "" },	   { "YQ\xc3\xa9==", -1, "" },
		{ "YQ==\xff", -1, "" }, { "!!!!", 0, "" },	   { "Y Q = =", 1, "a" },
		{ "YQ==YQ==", 1, "a" }, { "YQ==garbage", 1, "a" }, { "Y=Q==", 1, "a" },
		{ "YWI=\n", 2, "ab" },	{ "YWJj\r\n", 3, "abc" },  { "YWI==", 2, "ab" },
		{ "-_-_", 0, "" },
	};

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		char out[32];
		size_t n = 999;
		int r = b64_decode(t[i].in, strlen(t[i].in), out, &n);

		if (t[i].len < 0)
			ok(r == -EINVAL && n == 999, "\"%s\" is refused", t[i].in);
		else
			ok(r == 0 && n == (size_t)t[i].len && !memcmp(out, t[i].out, n),
			   "\"%s\" is %d bytes", t[i].in, t[i].len);
	}
}

static void test_lengths(void)
{
	unsigned char in[300], back[300];
	char out[B64_LEN(300) + 1];
	size_t n;
	bool good = true;

	for (size_t i = 0; i < sizeof(in); i++)
		in[i] = (unsigned char)(i * 7);
	for (size_t len = 0; len <= sizeof(in); len++) {
		b64_encode(in, len, out);
		good &= strlen(out) == B64_LEN(len);
		good &= b64_decode(out, strlen(out), out, &n) == 0 && n == len; /* in place */
		memcpy(back, out, n);
		good &= !memcmp(back, in, len);
	}
	ok(good, "every length up to 300 goes there and back, also in place");
}

static void test_append(void)
{
	struct buf b;

	buf_init(&b, 10);
	ok_int(buf_adds(&b, "x:"), 0, "a buffer with 8 bytes of room");
	ok_int(b64_append(&b, "1234567", 7), -ENOSPC, "does not take 12");
	ok_str(b.p, "x:", "and is as it was");
	ok_int(b64_append(&b, "123456", 6), 0, "takes 8");
	ok_str(b.p, "x:MTIzNDU2", "behind what it had");
	buf_done(&b);
}

int main(void)
{
	test_vectors();
	test_lenient();
	test_lengths();
	test_append();
	return tap_done();
}
