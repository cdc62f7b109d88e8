/* SPDX-License-Identifier: Apache-2.0 */
#include "b64.h"

#include <endian.h>
#include <errno.h>
#include <stdint.h>
#include <string.h>

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/* The two characters of each 12 bits; made at the first use. */
static char pairs[4096][2];

static void make_pairs(void)
{
	for (size_t i = 0; i < ARRAY_LEN(pairs); i++) {
		pairs[i][0] = alphabet[i >> 6];
		pairs[i][1] = alphabet[i & 63];
	}
}

/* Six bytes at a time, as long as eight can be read. Returns how many it took. */
static size_t encode_fast(const unsigned char *u, size_t n, char *out)
{
	size_t done = 0;

	if (!pairs[0][0])
		make_pairs();
	for (; n - done >= 8; done += 6, out += 8) {
		uint64_t v;

		memcpy(&v, u + done, sizeof(v));
		v = be64toh(v);
		memcpy(out, pairs[v >> 52], 2);
		memcpy(out + 2, pairs[v >> 40 & 4095], 2);
		memcpy(out + 4, pairs[v >> 28 & 4095], 2);
		memcpy(out + 6, pairs[v >> 16 & 4095], 2);
	}
	return done;
}

void b64_encode(const void *p, size_t n, char *out)
{
	const unsigned char *u = p;
	size_t fast = encode_fast(u, n, out);

	u += fast;
	n -= fast;
	out += fast / 3 * 4;
	for (; n >= 3; n -= 3, u += 3) {
		uint32_t v = (uint32_t)u[0] << 16 | (uint32_t)u[1] << 8 | u[2];

		*out++ = alphabet[v >> 18];
		*out++ = alphabet[v >> 12 & 63];
		*out++ = alphabet[v >> 6 & 63];
		*out++ = alphabet[v & 63];
	}
	if (n) {
		uint32_t v = (uint32_t)u[0] << 16 | (n > 1 ? (uint32_t)u[1] << 8 : 0);

		*out++ = alphabet[v >> 18];
		*out++ = alphabet[v >> 12 & 63];
		*out++ = n > 1 ? alphabet[v >> 6 & 63] : '=';
		*out++ = '=';
	}
	*out = '\0';
}

int b64_append(struct buf *b, const void *p, size_t n)
{
	int r;

	if (n > SIZE_MAX / 2)
		return -ENOSPC;
	r = buf_reserve(b, B64_LEN(n));
	if (r < 0)
		return r;
	b64_encode(p, n, b->p + b->len);
	b->len += B64_LEN(n);
	return 0;
}

/* Value of a character, -1 outside the alphabet. */
static int value(unsigned char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	return c == '+' ? 62 : c == '/' ? 63 : -1;
}

int b64_decode(const char *p, size_t n, void *out, size_t *ret_len)
{
	unsigned char *w = out;
	uint32_t acc = 0;
	unsigned quad = 0, pads = 0;

	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)p[i];
		int v;

		if (c > 127)
			return -EINVAL;
		if (c == '=') {
			if (quad >= 2 && quad + ++pads >= 4) {
				quad = 0; /* complete; what follows is ignored, but for bytes that
					     are no ASCII */
				for (; i < n; i++)
					if ((unsigned char)p[i] > 127)
						return -EINVAL;
				break;
			}
			continue;
		}
		v = value(c);
		if (v < 0)
			continue;
		pads = 0;
		acc = acc << 6 | (uint32_t)v;
		if (quad == 1)
			*w++ = (unsigned char)(acc >> 4);
		else if (quad == 2)
			*w++ = (unsigned char)(acc >> 2);
		else if (quad == 3)
			*w++ = (unsigned char)acc;
		quad = (quad + 1) & 3;
	}
	if (quad)
		return -EINVAL;
	*ret_len = (size_t)(w - (unsigned char *)out);
	return 0;
}
