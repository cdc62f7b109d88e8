/* SPDX-License-Identifier: Apache-2.0 */
#include "str.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define NS_PER_S 1000000000LL

/* Consumes digits at *S; -EINVAL when there is none, -ERANGE on overflow. */
static int take_digits(const char **s, uint64_t *ret)
{
	uint64_t v = 0;
	const char *p = *s;

	if (*p < '0' || *p > '9')
		return -EINVAL;
	for (; *p >= '0' && *p <= '9'; p++) {
		uint64_t d = (uint64_t)(*p - '0');

		if (v > (UINT64_MAX - d) / 10)
			return -ERANGE;
		v = v * 10 + d;
	}
	*s = p;
	*ret = v;
	return 0;
}

int str_to_u64(const char *s, uint64_t min, uint64_t max, uint64_t *ret)
{
	uint64_t v;
	int r = take_digits(&s, &v);

	if (r < 0)
		return r;
	if (*s)
		return -EINVAL;
	if (v < min || v > max)
		return -ERANGE;
	*ret = v;
	return 0;
}

int str_to_ns(const char *s, uint64_t max_s, int64_t *ret_ns)
{
	uint64_t whole;
	int64_t frac = 0, scale = NS_PER_S / 10;
	int r = take_digits(&s, &whole);

	if (r < 0)
		return r;
	if (*s == '.') {
		if (s[1] < '0' || s[1] > '9')
			return -EINVAL;
		for (s++; *s >= '0' && *s <= '9'; s++, scale /= 10)
			frac += (*s - '0') * scale;
	}
	if (*s == 's' && s[1] == '\0')
		s++;
	if (*s)
		return -EINVAL;
	if (whole > max_s || whole > INT64_MAX / NS_PER_S - 1)
		return -ERANGE;
	*ret_ns = (int64_t)whole * NS_PER_S + frac;
	return 0;
}

static int suffix_shift(char c)
{
	switch (c | 0x20) {
	case 'k':
		return 10;
	case 'm':
		return 20;
	case 'g':
		return 30;
	case 't':
		return 40;
	default:
		return -1;
	}
}

int str_to_bytes(const char *s, uint64_t unit, uint64_t *ret)
{
	uint64_t v, mult = unit;
	int r = take_digits(&s, &v);

	if (r < 0)
		return r;
	if (*s) {
		int shift = suffix_shift(*s);

		if (shift < 0)
			return -EINVAL;
		mult = 1ULL << shift;
		s++;
		if (*s == 'i')
			s++;
		if (*s == 'b' || *s == 'B')
			s++;
	}
	if (*s)
		return -EINVAL;
	if (mult && v > UINT64_MAX / mult)
		return -ERANGE;
	*ret = v * mult;
	return 0;
}

bool str_starts(const char *s, const char *prefix)
{
	return strncmp(s, prefix, strlen(prefix)) == 0;
}

/* Length of the sequence that C begins and the smallest code point it may encode; 0 for a bad first byte. */
static size_t utf8_first(unsigned char c, uint32_t *ret_bits, uint32_t *ret_least)
{
	if (c < 0x80) {
		*ret_bits = c;
		*ret_least = 0;
		return 1;
	}
	if ((c & 0xe0) == 0xc0) {
		*ret_bits = c & 0x1fU;
		*ret_least = 0x80;
		return 2;
	}
	if ((c & 0xf0) == 0xe0) {
		*ret_bits = c & 0x0fU;
		*ret_least = 0x800;
		return 3;
	}
	if ((c & 0xf8) == 0xf0) {
		*ret_bits = c & 0x07U;
		*ret_least = 0x10000;
		return 4;
	}
	return 0;
}

bool str_is_utf8(const char *p, size_t n)
{
	const unsigned char *u = (const unsigned char *)p;

	for (size_t i = 0; i < n;) {
		uint32_t cp, least;
		size_t len = utf8_first(u[i], &cp, &least);

		if (len == 0 || len > n - i)
			return false;
		for (size_t k = 1; k < len; k++) {
			if ((u[i + k] & 0xc0) != 0x80)
				return false;
			cp = cp << 6 | (u[i + k] & 0x3fU);
		}
		if (cp < least || cp > 0x10ffff || (cp >= 0xd800 && cp <= 0xdfff))
			return false;
		i += len;
	}
	return true;
}

void str_clean(char *s)
{
	bool text = str_is_utf8(s, strlen(s));

	for (; *s; s++) {
		unsigned char b = (unsigned char)*s;

		if (b < 0x20 || b == 0x7f || (b >= 0x80 && !text))
			*s = '?';
		else if (b == 0xc2 && (unsigned char)s[1] < 0xa0) /* U+0080 to 9F */
			s[0] = s[1] = '?';
	}
}

void str_hex(const void *p, size_t n, char *out)
{
	static const char digits[] = "0123456789abcdef";
	const unsigned char *u = p;

	for (size_t i = 0; i < n; i++) {
		*out++ = digits[u[i] >> 4];
		*out++ = digits[u[i] & 15];
	}
	*out = '\0';
}

int str_format(char *out, size_t size, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(out, size, fmt, ap);
	va_end(ap);
	return n < 0 || (size_t)n >= size ? -ENAMETOOLONG : 0;
}
