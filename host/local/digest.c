/* SPDX-License-Identifier: Apache-2.0 */
#include "host/local/digest.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host/backend.h"
#include "lib/fd.h"
#include "lib/str.h"

static void add_number(struct digest *d, uint64_t n)
{
	unsigned char raw[8];

	for (size_t i = 0; i < sizeof(raw); i++)
		raw[i] = (unsigned char)(n >> (8 * i));
	br_sha256_update(&d->h, raw, sizeof(raw));
}

bool digest_is_zero(const void *p, size_t n)
{
	const unsigned char *c = p;

	return n == 0 || (c[0] == 0 && memcmp(c, c + 1, n - 1) == 0);
}

void digest_begin(struct digest *d)
{
	br_sha256_init(&d->h);
}

void digest_block(struct digest *d, uint64_t offset, const void *p, size_t n)
{
	if (digest_is_zero(p, n))
		return;
	add_number(d, offset);
	br_sha256_update(&d->h, p, n);
}

void digest_end(struct digest *d, uint64_t length, char ret[DIGEST_LEN + 1])
{
	unsigned char sum[br_sha256_SIZE];

	add_number(d, length);
	br_sha256_out(&d->h, sum);
	str_hex(sum, sizeof(sum), ret);
}

/* The begin of the next block that is no hole, or LENGTH. */
static uint64_t next_block(int fd, uint64_t at, uint64_t length)
{
	off_t data = lseek(fd, (off_t)at, SEEK_DATA);

	if (data < 0)
		return errno == ENXIO ? length
				      : at; /* a file system that does not know has no holes */
	return (uint64_t)data > at ? (uint64_t)data - (uint64_t)data % DIGEST_BLOCK : at;
}

int digest_file(int fd, const volatile sig_atomic_t *cancel, uint64_t *ret_length,
		char ret[DIGEST_LEN + 1])
{
	static unsigned char block[DIGEST_BLOCK];
	uint64_t length;
	struct digest d;
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	length = (uint64_t)st.st_size;
	digest_begin(&d);
	for (uint64_t at = next_block(fd, 0, length); at < length;
	     at = next_block(fd, at + DIGEST_BLOCK, length)) {
		ssize_t n = fd_pread_all(fd, block, sizeof(block), (off_t)at);

		backend_turn();
		if (cancel && *cancel)
			return -EINTR;
		if (n <= 0)
			return n < 0 ? (int)n : -EIO; /* it became shorter */
		digest_block(&d, at, block, (size_t)n);
	}
	digest_end(&d, length, ret);
	*ret_length = length;
	return 0;
}
