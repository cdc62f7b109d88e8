/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_LOCAL_DIGEST_H
#define ASB_LOCAL_DIGEST_H

#include <bearssl.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/compiler.h"

/*
 * A checksum of a file that may be sparse, the same whether its zeros are holes or not, and as quick as what is in it:
 * SHA-256 over each block of 64 KiB (the last one may be shorter) that has a byte other than zero, preceded by
 * its offset as 8 bytes, little-endian; and the file's length in the same form at the end.
 */
#define DIGEST_BLOCK 65536
#define DIGEST_LEN   64 /* hexadecimal digits */

struct digest {
	br_sha256_context h;
};

bool digest_is_zero(const void *p, size_t n); /* no byte is another */

void digest_begin(struct digest *d);
/* Blocks in the order of their OFFSETs; those of zeros alone need not be given. */
void digest_block(struct digest *d, uint64_t offset, const void *p, size_t n);
void digest_end(struct digest *d, uint64_t length, char ret[DIGEST_LEN + 1]);

/* Of all of FD. 0, negative errno, -EINTR when *CANCEL (may be NULL) is set. */
int digest_file(int fd, const volatile sig_atomic_t *cancel, uint64_t *ret_length,
		char ret[DIGEST_LEN + 1]) MUST_CHECK;

#endif
