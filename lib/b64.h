/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_B64_H
#define ASB_B64_H

#include <stddef.h>

#include "buf.h"
#include "compiler.h"

/* Standard base64 with padding, no line breaks (RFC 4648 §4). Pure; the caller owns all memory. */

#define B64_LEN(n) (((n) + 2) / 3 * 4)

/* Writes B64_LEN(N) characters and a NUL to OUT. */
void b64_encode(const void *p, size_t n, char *out);
int b64_append(struct buf *b, const void *p, size_t n) MUST_CHECK;

/*
 * Decodes as Python's binascii.a2b_base64 does in its lenient form, which the compatible routes need: characters outside
 * the alphabet are skipped, data behind the padding is ignored. OUT holds at least N / 4 * 3 + 3 bytes. 0, or -EINVAL for
 * wrong padding or a byte above 127.
 */
int b64_decode(const char *p, size_t n, void *out, size_t *ret_len) MUST_CHECK;

#endif
