/* SPDX-License-Identifier: Apache-2.0 */
#include "err.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#undef err_set /* what err.h puts before them for the static checker */
#undef err_wrap

static const struct {
	const char *name;
	int http;
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

/* A message may quote what a guest or a file said: it must not move the reader's terminal. */
static void strip_control(char *s)
{
	for (; *s; s++)
		if ((unsigned char)*s < 0x20 || *s == 0x7f)
			*s = '?';
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
	strip_control(e->msg);
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
	strip_control(e->msg);
	return e->errnum > 0 ? -e->errnum : -EIO;
}
