/* SPDX-License-Identifier: Apache-2.0 */
#include "host/local/qcow2.h"

#include <errno.h>
#include <stdint.h>

#define SIZE_MOST (1ULL << 44)

static uint64_t number(const unsigned char *p, size_t bytes)
{
	uint64_t n = 0;

	while (bytes--)
		n = n << 8 | *p++;
	return n;
}

int qcow2_check(const unsigned char *p, size_t n, struct err *e)
{
	const char *why = NULL;

	if (n < QCOW2_HEAD || number(p, 4) != 0x514649fb || number(p + 4, 4) != 3)
		why = "is no qcow2 image of version 3";
	else if (number(p + 8, 8) != 0 || number(p + 16, 4) != 0)
		why = "is an image with a backing file";
	else if (number(p + 24, 8) > SIZE_MOST)
		why = "is larger than any sandbox's";
	else if (number(p + 32, 4) != 0)
		why = "is encrypted";
	else if (number(p + 60, 4) != 0)
		why = "has snapshots inside";
	else if (number(p + 72, 8) &
		 ~1ULL) /* bit 0: was not closed, as in a copy of a running one */
		why = "has features that are not known here";
	if (!why)
		return 0;
	(void)err_set(e, ERR_INVALID, 0, "the disk of the snapshot %s", why);
	return -EINVAL;
}
