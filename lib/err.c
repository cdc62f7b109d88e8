/* SPDX-License-Identifier: Apache-2.0 */
#include "err.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "str.h"

#undef err_set /* what err.h puts before them for the static checker */
#undef err_wrap

static const struct {
	char name[12]; /* not pointed to: a pointer in a constant costs 32 bytes of the program */
	short http;
} codes[] = {
	[ERR_NONE] = { "none", 200 },
	[ERR_USAGE] = { "usage", 400 },
	[ERR_INVALID] = { "invalid", 400 },
	[ERR_NOT_FOUND] = { "not_found", 404 },
	[ERR_EXISTS] = { "exists", 409 },
	[ERR_CONFLICT] = { "conflict", 409 },
	[ERR_FULL] = { "full", 429 },
	[ERR_TOO_BIG] = { "too_big", 413 },
	[ERR_TIMEOUT] = { "timeout", 504 },
	[ERR_DENIED] = { "denied", 403 },
	[ERR_UNSUPPORTED] = { "unsupported", 501 },
	[ERR_UNAVAILABLE] = { "unavailable", 503 },
	[ERR_IO] = { "io", 500 },
	[ERR_INTERNAL] = { "internal", 500 },
};
static_assert(ARRAY_LEN(codes) == ERR_CODE_COUNT, "every code has a name and a status");

const char *err_code_name(enum err_code code)
{
	return (unsigned)code < ERR_CODE_COUNT ? codes[code].name : "unknown";
}

int err_http_status(enum err_code code)
{
	return (unsigned)code < ERR_CODE_COUNT ? codes[code].http : 500;
}

/* Bytes of the character beyond ASCII at S, of which N bytes are left; 0 when it is not UTF-8. No
 * shorter one than its first byte tells is ever valid. */
static size_t utf8_len(const char *s, size_t n)
{
	for (size_t len = 2; len <= 4 && len <= n; len++)
		if (str_is_utf8(s, len))
			return len;
	return 0;
}

static bool is_c1(const char *s)
{
	return (unsigned char)s[0] == 0xc2 && (unsigned char)s[1] < 0xa0; /* U+0080 to U+009F */
}

/*
 * A message may quote what a guest or a file said: it must not move the reader's terminal, and must
 * fit into a JSON document. A terminal may also obey C1 controls, and those as bare bytes.
 */
static void defuse(char *s)
{
	for (size_t n = strlen(s), step; n > 0; s += step, n -= step) {
		bool ascii = (unsigned char)*s < 0x80;

		step = ascii ? 1 : utf8_len(s, n);
		if (ascii ? (unsigned char)*s < 0x20 || *s == 0x7f : step == 0) {
			*s = '?';
			step = 1;
		} else if (!ascii && is_c1(s)) {
			memset(s, '?', step);
		}
	}
}

int err_set(struct err *e, enum err_code code, int errnum, const char *fmt, ...)
{
	int ret = errnum > 0 ? -errnum : -EIO;
	va_list ap;
	size_t n;

	if (!e)
		return ret;
	e->code = code;
	e->errnum = errnum;
	va_start(ap, fmt);
	(void)vsnprintf(e->msg, sizeof(e->msg), fmt, ap);
	va_end(ap);
	n = strlen(e->msg);
	if (errnum > 0 && n < sizeof(e->msg) - 1)
		(void)snprintf(e->msg + n, sizeof(e->msg) - n, ": %s", strerror(errnum));
	defuse(e->msg);
	return ret;
}

int err_wrap(struct err *e, const char *fmt, ...)
{
	char old[ERR_MSG_MAX];
	va_list ap;
	size_t n;

	if (!e)
		return -EIO;
	memcpy(old, e->msg, sizeof(old));
	va_start(ap, fmt);
	(void)vsnprintf(e->msg, sizeof(e->msg), fmt, ap);
	va_end(ap);
	n = strlen(e->msg);
	if (n < sizeof(e->msg) - 1)
		(void)snprintf(e->msg + n, sizeof(e->msg) - n, ": %.*s",
			       (int)(sizeof(e->msg) - n - 3), old);
	defuse(e->msg);
	return e->errnum > 0 ? -e->errnum : -EIO;
}
