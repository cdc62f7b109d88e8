/* SPDX-License-Identifier: Apache-2.0 */
#include "host/net/why.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "lib/str.h"

#define HOST_MAX 256

/*
 * Newer versions of libcurl tell whether a proxy was used (CURLINFO_USED_PROXY, 8.7); until then what it makes of the variables
 * (CURLOPT_PROXY(3), CURLOPT_NOPROXY(3)) is done here once more.
 */

/* The host of URL, without brackets and final dot. False: too long. */
static bool host_of(const char *url, char ret[static HOST_MAX])
{
	const char *p = strstr(url, "://"), *end;

	p = p ? p + 3 : url;
	if (*p == '[') {
		p++;
		end = p + strcspn(p, "]");
	} else {
		end = p + strcspn(p, ":/?#");
	}
	if (end > p && end[-1] == '.')
		end--;
	return str_format(ret, HOST_MAX, "%.*s", (int)(end - p), p) == 0;
}

/* Bits of the address S into RET; 0: it is none. */
static unsigned address(const char *s, unsigned char ret[static 16])
{
	if (inet_pton(AF_INET, s, ret) == 1)
		return 32;
	return inet_pton(AF_INET6, s, ret) == 1 ? 128 : 0;
}

/* ENTRY, "10.0.0.0/8" or one address, has the address HOST of BITS. No network of IPv6 has, as libcurl 7.88 sees it. */
static bool in_network(const char *entry, const unsigned char *host, unsigned bits)
{
	unsigned char net[16];
	char text[HOST_MAX];
	size_t n = strcspn(entry, "/");
	uint64_t len = bits;
	unsigned whole, rest;

	if (str_format(text, sizeof(text), "%.*s", (int)n, entry) < 0 ||
	    (entry[n] && (bits == 128 || str_to_u64(entry + n + 1, 1, bits, &len) < 0)) ||
	    address(text, net) != bits)
		return false;
	whole = (unsigned)len / 8;
	rest = (unsigned)len % 8;
	return memcmp(net, host, whole) == 0 &&
	       (rest == 0 || (net[whole] ^ host[whole]) >> (8 - rest) == 0);
}

/* ENTRY is HOST or a domain that it is in; a dot at its beginning or end says nothing. */
static bool is_domain(const char *entry, size_t n, const char *host)
{
	size_t len = strlen(host);

	if (n && entry[n - 1] == '.')
		n--;
	if (n && *entry == '.') {
		entry++;
		n--;
	}
	return n && n <= len && strncasecmp(host + len - n, entry, n) == 0 &&
	       (n == len || host[len - n - 1] == '.');
}

/* URL's host is one of the list NONE. */
static bool is_excepted(const char *url, const char *none)
{
	unsigned char bytes[16];
	char host[HOST_MAX], entry[HOST_MAX];
	unsigned bits;

	if (!none)
		return false;
	if (strcmp(none, "*") == 0)
		return true;
	if (!host_of(url, host))
		return false;
	bits = address(host, bytes);
	for (const char *p = none; *(p += strspn(p, ", \t"));) {
		size_t n = strcspn(p, ", \t");

		if (str_format(entry, sizeof(entry), "%.*s", (int)n, p) == 0 &&
		    (bits ? in_network(entry, bytes, bits) : is_domain(entry, n, host)))
			return true;
		p += n;
	}
	return false;
}

/* The variable that names the proxy by which URL went; NULL: it went by none. */
static const char *proxy_variable(const char *url)
{
	static const char *const names[] = { "https_proxy", "HTTPS_PROXY", "http_proxy",
					     "all_proxy", "ALL_PROXY" };
	bool tls = str_starts(url, "https:");
	const char *none = getenv("no_proxy");

	if (!none || !*none)
		none = getenv("NO_PROXY");
	if (is_excepted(url, none))
		return NULL;
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		const char *value = getenv(names[i]);

		if (value && *value && (i > 2 || (i < 2) == tls))
			return names[i];
	}
	return NULL;
}

/* libcurl quotes an address only to say what is wrong with a proxy's: nothing of it is certain, so none of it is shown. */
static void hide_address(char *s)
{
	char *at = strstr(s, "://");

	if (at)
		at[3] = '\0';
}

void why_say(CURLcode code, const char *text, const char *url, char ret[WHY_LEN])
{
	char plain[CURL_ERROR_SIZE];
	const char *name = NULL;

	if (url && (code == CURLE_COULDNT_CONNECT || code == CURLE_COULDNT_RESOLVE_PROXY ||
		    code == CURLE_OPERATION_TIMEDOUT))
		name = proxy_variable(url);
	/* both are cut, never refused: they are for people */
	ignore_result(
		str_format(plain, sizeof(plain), "%s", text[0] ? text : curl_easy_strerror(code)));
	hide_address(plain);
	if (name)
		ignore_result(str_format(ret, WHY_LEN, "%s (%s names a proxy)", plain, name));
	else
		ignore_result(str_format(ret, WHY_LEN, "%s", plain));
}
