/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_STR_H
#define ASB_STR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "compiler.h"

/*
 * Strict decimal parsing: digits only, no sign, no space, no trailing byte. 0, -EINVAL, or -ERANGE when
 * the value is outside [MIN, MAX].
 */
int str_to_u64(const char *s, uint64_t min, uint64_t max, uint64_t *ret) MUST_CHECK;

/* Seconds with an optional fraction ("2", "0.25") to nanoseconds, at most MAX_S seconds. */
int str_to_ns(const char *s, uint64_t max_s, int64_t *ret_ns) MUST_CHECK;

/* Sizes of memory: a number with an optional suffix k, m, g or t (powers of 1024, any case, optional "b" or "ib");
 * a bare number counts UNIT bytes. */
int str_to_bytes(const char *s, uint64_t unit, uint64_t *ret) MUST_CHECK;

bool str_starts(const char *s, const char *prefix);
bool str_is_utf8(const char *p, size_t n); /* RFC 3629, no surrogates, no overlong forms */

/* For what a stranger wrote and a terminal will show: controls (C0, DEL, C1) become '?', and so do bytes above 127 when S is
 * not UTF-8. In place. */
void str_clean(char *s);

/* Lower-case hexadecimal of N bytes into OUT (2 * N + 1 bytes). */
void str_hex(const void *p, size_t n, char *out);

/* snprintf that reports truncation: 0 or -ENAMETOOLONG. */
int str_format(char *out, size_t size, const char *fmt, ...) PRINTF(3, 4) MUST_CHECK;

#endif
