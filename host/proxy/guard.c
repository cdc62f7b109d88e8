/* SPDX-License-Identifier: Apache-2.0 */
#include "host/proxy/guard.h"

#include <arpa/inet.h>
#include <string.h>
#include <strings.h>

#include "lib/str.h"

#define HOST_MAX 256

/* --- who may come in --- */

/* The host of "host[:port]" or "[v6][:port]" into OUT. */
static bool split_host(const char *s, char out[static HOST_MAX])
{
	bool six = s[0] == '[';
	size_t n = strcspn(s + six, six ? "]" : ":");
	const char *rest = s + six + n;
	uint64_t port;

	if (six && *rest++ != ']')
		return false;
	if (n == 0 || n >= HOST_MAX || (*rest && *rest != ':') ||
	    (*rest == ':' && rest[1] && str_to_u64(rest + 1, 0, 65535, &port) < 0))
		return false;
	memcpy(out, s + six, n);
	out[n] = '\0';
	return true;
}

static bool is_loopback(const char *host)
{
	static const char name[] = "localhost"; /* and what is below it: RFC 6761 §6.3 */
	size_t n = strlen(host), m = sizeof(name) - 1;
	struct in6_addr six;
	struct in_addr four;

	if (n >= m && !strcasecmp(host + n - m, name))
		return n == m || host[n - m - 1] == '.';
	if (inet_pton(AF_INET, host, &four) == 1)
		return ntohl(four.s_addr) >> 24 == 127;
	return inet_pton(AF_INET6, host, &six) == 1 && IN6_IS_ADDR_LOOPBACK(&six);
}

/* S is an address; *RET_WILD: that of no interface. */
static bool is_address(const char *s, unsigned char ret[static 16], bool *ret_wild)
{
	static const unsigned char zero[16];

	memset(ret, 0, 16);
	if (inet_pton(AF_INET, s, ret) != 1 && inet_pton(AF_INET6, s, ret) != 1)
		return false;
	*ret_wild = memcmp(ret, zero, 16) == 0;
	return true;
}

static bool may_enter(const char *host, const char *address)
{
	unsigned char a[16], b[16];
	bool wild, unused;

	if (is_loopback(host))
		return true;
	return is_address(host, a, &unused) && is_address(address, b, &wild) &&
	       (wild || (memcmp(a, b, 16) == 0 && !strchr(host, ':') == !strchr(address, ':')));
}

bool guard_host(const char *host, const char *address)
{
	char name[HOST_MAX];

	return !host || (split_host(host, name) && may_enter(name, address));
}

bool guard_origin(const char *origin, const char *address)
{
	char name[HOST_MAX];
	const char *p;

	if (!origin)
		return true;
	p = strstr(origin, "://");
	return p && split_host(p + 3, name) && may_enter(name, address);
}

bool guard_target(const char *target)
{
	if (target[0] != '/')
		return false;
	for (const char *p = target; *p; p++)
		if ((unsigned char)*p <= 0x20 || (unsigned char)*p >= 0x7f || *p == '#')
			return false;
	return true;
}

/* --- lists of tokens --- */

/* The next of "a, b" at *AT: its length, *RET; 0 at the end. */
static size_t next_token(const char **at, const char **ret)
{
	const char *p = *at + strspn(*at, ", \t");
	size_t n = strcspn(p, ","), whole = n;

	while (n && (p[n - 1] == ' ' || p[n - 1] == '\t'))
		n--;
	*ret = p;
	*at = p + whole;
	return n;
}

bool guard_has_token(const char *list, const char *token)
{
	const char *p;
	size_t n;

	while (list && (n = next_token(&list, &p)) > 0)
		if (n == strlen(token) && !strncasecmp(p, token, n))
			return true;
	return false;
}

bool guard_hop_by_hop(const char *name, const char *connection)
{
	static const char *const names[] = { "Connection",
					     "Keep-Alive",
					     "Proxy-Connection",
					     "TE",
					     "Trailer",
					     "Transfer-Encoding",
					     "Upgrade",
					     "Proxy-Authenticate",
					     "Proxy-Authorization" };

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (!strcasecmp(name, names[i]))
			return true;
	return guard_has_token(connection, name);
}

int guard_offer(const char *client, const char *prefix, const char *ours, struct buf *out)
{
	const char *p;
	size_t n;
	int r = 0;

	while (r == 0 && client && (n = next_token(&client, &p)) > 0)
		if (n < strlen(prefix) || strncasecmp(p, prefix, strlen(prefix)) != 0)
			r = buf_addf(out, "%s%.*s", out->len ? ", " : "", (int)n, p);
	if (r == 0 && ours)
		r = buf_addf(out, "%s%s", out->len ? ", " : "", ours);
	return r;
}

/* --- where an answer sends the client --- */

/* What follows the authority THERE in URL; NULL when it points elsewhere. */
static const char *behind(const char *url, const char *there)
{
	size_t n = strlen(there);
	const char *p = url;

	if (!strncasecmp(p, "https:", 6))
		p += 6;
	else if (!strncasecmp(p, "http:", 5))
		p += 5;
	if (p[0] != '/' || p[1] != '/' || strncasecmp(p + 2, there, n) != 0)
		return NULL;
	p += 2 + n;
	if (!strncmp(p, ":443", 4))
		p += 4;
	else if (!strncmp(p, ":80", 3))
		p += 3;
	return *p == '\0' || strchr("/?#", *p) ? p : NULL;
}

int guard_location(const char *url, const char *there, const char *here, struct buf *out)
{
	const char *rest = behind(url, there);

	return rest ? buf_addf(out, "http://%s%s", here, rest) : buf_adds(out, url);
}
