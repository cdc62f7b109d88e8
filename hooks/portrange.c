/* SPDX-License-Identifier: Apache-2.0 */
#include "portrange.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "lib/buf.h"
#include "lib/fd.h"
#include "lib/str.h"

/*
 * bind(2) draws a port from the kernel's generator, which is reseeded. connect(2) does not: it hashes the addresses with a secret
 * of the boot (RFC 6056, algorithm 4; net/ipv4/inet_hashtables.c), adds a small step for each connection, and takes the
 * remainder by the length of the range. That secret is made once and cannot be set, so clones would begin at the same port.
 * What can be set is the range: another begin and another length give another remainder.
 */

#define RANGE	  "/proc/sys/net/ipv4/ip_local_port_range"
#define RANGE_MAX 64
#define SMALL	  1024

/* As it was found, and what was made of it; both go on in a clone's memory. */
static struct portrange found, set;

struct portrange portrange_choose(struct portrange all, uint32_t random)
{
	const unsigned span = all.high - all.low;

	if (all.high < all.low || span < SMALL)
		return all;
	return (struct portrange){ all.low + (random & 0xffff) % (span / 4) / 2 * 2,
				   all.high - (random >> 16) % (span / 4) / 2 * 2 };
}

static int read_range(struct portrange *ret)
{
	AUTO_BUF b;
	char *end;
	unsigned long low, high;
	int r;

	buf_init(&b, RANGE_MAX);
	r = fd_read_file(AT_FDCWD, RANGE, &b);
	if (r < 0)
		return r;
	if (!b.p)
		return -EINVAL;
	low = strtoul(b.p, &end, 10);
	high = strtoul(end, NULL, 10);
	if (low == 0 || high < low || high > UINT16_MAX)
		return -EINVAL;
	*ret = (struct portrange){ (unsigned)low, (unsigned)high };
	return 0;
}

int portrange_renew(uint32_t random)
{
	struct portrange now, next;
	char text[RANGE_MAX];
	int r = read_range(&now);

	if (r < 0)
		return r == -ENOENT ? 0 : r; /* a kernel without a network */
	if (now.low != set.low || now.high != set.high)
		found = now; /* somebody else has set it */
	next = portrange_choose(found, random);
	r = str_format(text, sizeof(text), "%u %u\n", next.low, next.high);
	if (r == 0)
		r = fd_write_str(AT_FDCWD, RANGE, text);
	if (r == 0)
		set = next;
	return r;
}
