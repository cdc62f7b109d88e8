/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_AWS_SIGV4_H
#define ASB_AWS_SIGV4_H

#include <stddef.h>
#include <stdint.h>

#include "lib/buf.h"
#include "lib/compiler.h"

/*
 * AWS Signature Version 4 (AWS General Reference, "Signing AWS API requests"), as pure functions: no clock, no environment,
 * no network. libcurl's own (CURLOPT_AWS_SIGV4) can sign neither a path with an encoded ARN nor several parameters.
 */

#define SIGV4_UNSIGNED	  "UNSIGNED-PAYLOAD"
#define SIGV4_DATE_LEN	  16 /* 20261129T120000Z */
#define SIGV4_HASH_LEN	  64
#define SIGV4_PARAMS_MAX  64
#define SIGV4_HEADERS_MAX 32

struct sigv4_header {
	const char *name; /* any case */
	const char *value;
};

enum sigv4_flags {
	SIGV4_PATH_AS_IS = 1 << 0,     /* S3: the path as it is sent, not encoded once more */
	SIGV4_NOT_NORMAL = 1 << 1,     /* "//", "." and ".." in the path stay */
	SIGV4_TOKEN_UNSIGNED = 1 << 2, /* the session token is sent but not signed */
};

struct sigv4 { /* all borrowed */
	const char *key_id, *secret;
	const char *token; /* NULL = none */
	const char *region, *service;
	int64_t time_s; /* Unix time */
	unsigned flags;

	const char *method;
	const char *path;  /* as it is sent, begins with '/' */
	const char *query; /* as it is sent, without '?'; NULL = none */
	/* All of these are signed; "host" must be among them, X-Amz-Date and X-Amz-Security-Token must not. */
	const struct sigv4_header *headers;
	size_t headers_len;
	const char *payload_hash; /* sigv4_hash of the body, or SIGV4_UNSIGNED */
};

struct sigv4_signed { /* sigv4_done */
	char date[SIGV4_DATE_LEN + 1];
	char signature[SIGV4_HASH_LEN + 1];
	/* Header form: the value of Authorization, to be sent with X-Amz-Date (date) and, with a token, X-Amz-Security-Token.
	 * Query form: the whole query, X-Amz-Signature last. */
	struct buf result;
	struct buf canonical, to_sign; /* what was hashed, for tests and for explaining a refusal */
};

/* Lower-case hexadecimal SHA-256 of N bytes. */
void sigv4_hash(const void *p, size_t n, char ret[static SIGV4_HASH_LEN + 1]);

/* 0, -EINVAL (too many parameters or headers, a time out of range), -ENOSPC, -ENOMEM. RET is to be released in any case. */
int sigv4_sign(const struct sigv4 *s, struct sigv4_signed *ret) MUST_CHECK;
/* The query form, valid for EXPIRES_S seconds. */
int sigv4_presign(const struct sigv4 *s, uint32_t expires_s, struct sigv4_signed *ret) MUST_CHECK;
void sigv4_done(struct sigv4_signed *r);

/* Appends N bytes percent-encoded: all but A-Z a-z 0-9 - _ . ~ and the bytes of KEEP. 0 or as buf_add. */
int sigv4_encode(struct buf *b, const char *p, size_t n, const char *keep) MUST_CHECK;

#endif
