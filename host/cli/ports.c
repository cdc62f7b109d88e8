/* SPDX-License-Identifier: Apache-2.0 */
#include "host/cli/ports.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "lib/str.h"

int ports_check_address(const char *s)
{
	unsigned char a[sizeof(struct in6_addr)];

	return inet_pton(AF_INET, s, a) == 1 || inet_pton(AF_INET6, s, a) == 1 ? 0 : -EINVAL;
}

/* The N characters of S as a port; an empty one is 0. */
static int number(const char *s, size_t n, uint16_t *ret)
{
	char digits[6];
	uint64_t v = 0;

	if (n >= sizeof(digits))
		return -EINVAL;
	memcpy(digits, s, n);
	digits[n] = '\0';
	if (n && str_to_u64(digits, 0, 65535, &v) < 0)
		return -EINVAL;
	*ret = (uint16_t)v;
	return 0;
}

static int address(const char *s, size_t n, char *out, size_t size)
{
	if (n >= 2 && s[0] == '[' && s[n - 1] == ']') {
		s++;
		n -= 2;
	} else if (memchr(s, ':', n)) {
		return -EINVAL;
	}
	if (n == 0 || n >= size)
		return -EINVAL;
	memcpy(out, s, n);
	out[n] = '\0';
	return ports_check_address(out);
}

int ports_parse(const char *s, struct port_spec *ret)
{
	struct port_spec p = { .address = "" };
	const char *remote = strrchr(s, ':'), *local = NULL;
	int r = 0;

	if (remote) {
		local = remote;
		while (local > s && local[-1] != ':')
			local--;
		r = number(local, (size_t)(remote - local), &p.local);
		if (r == 0 && local > s)
			r = address(s, (size_t)(local - 1 - s), p.address, sizeof(p.address));
		remote++;
	} else {
		remote = s;
	}
	if (r == 0)
		r = number(remote, strlen(remote), &p.remote);
	if (r < 0 || p.remote == 0)
		return -EINVAL;
	if (!local)
		p.local = p.remote;
	*ret = p;
	return 0;
}
