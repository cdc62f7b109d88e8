/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_ERR_H
#define ASB_ERR_H

#include "compiler.h"

/*
 * Why something failed, in words that a user can act on. Lives on the caller's stack, owns no memory, is
 * untouched on success. Functions that fill one return a negative errno as well, so that a caller who does
 * not care for the reason can pass NULL.
 */
enum err_code {
	ERR_NONE = 0,
	ERR_USAGE,	 /* the command line is wrong: exit 2 */
	ERR_INVALID,	 /* a value is malformed: HTTP 400 */
	ERR_NOT_FOUND,	 /* HTTP 404 */
	ERR_EXISTS,	 /* HTTP 409 */
	ERR_CONFLICT,	 /* HTTP 409 */
	ERR_FULL,	 /* a table or a quota is full: HTTP 429 */
	ERR_TOO_BIG,	 /* HTTP 413 */
	ERR_TIMEOUT,	 /* a deadline passed: HTTP 504 */
	ERR_DENIED,	 /* HTTP 403 */
	ERR_UNSUPPORTED, /* this backend or kernel cannot do it: HTTP 501 */
	ERR_UNAVAILABLE, /* not now, try again: HTTP 503 */
	ERR_IO,		 /* the system refused: HTTP 500 */
	ERR_INTERNAL,	 /* a bug or a broken peer: HTTP 500 */
	ERR_CODE_COUNT
};

#define ERR_MSG_MAX 640

struct err {
	enum err_code code;
	int errnum; /* positive errno, 0 when the system had no part in it */
	char msg[ERR_MSG_MAX];
};

#define ERR_INIT                \
	{                       \
		ERR_NONE, 0, "" \
	}

/* Short name of a code ("not_found"); static storage. */
const char *err_code_name(enum err_code code);

/*
 * Fills E (which may be NULL) and returns -ERRNUM, or -EIO when ERRNUM is 0, so that one line both tells and
 * returns. With an ERRNUM, ": <strerror>" is appended to the message. Control characters and bytes
 * that are not UTF-8 become '?'.
 */
int err_set(struct err *e, enum err_code code, int errnum, const char *fmt, ...) PRINTF(4, 5);

/* Puts "<context>: " in front of the message that E holds. Returns the same negative errno as E had. */
int err_wrap(struct err *e, const char *fmt, ...) PRINTF(2, 3);

/* HTTP status that stands for CODE. */
int err_http_status(enum err_code code);

/* The static checker looks at one file at a time: without this it would follow paths on which these two
 * return 0. */
#ifdef __clang_analyzer__
static inline int err_negative(int r)
{
	return r < 0 ? r : -1;
}
#define err_set(...)  err_negative(err_set(__VA_ARGS__))
#define err_wrap(...) err_negative(err_wrap(__VA_ARGS__))
#endif

#endif
