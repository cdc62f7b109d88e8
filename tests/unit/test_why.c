/* SPDX-License-Identifier: Apache-2.0 */
/* LINK: host/net/why.c */
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "host/net/why.h"
#include "lib/str.h"
#include "tap.h"

/* What is said about a proxy is held against what libcurl does: where it would connect to is seen, and refused. */

#define PROXY	   "http://127.0.0.1:1"
#define PROXY_PORT 1

static int port_tried;

static curl_socket_t on_open(void *arg, curlsocktype purpose, struct curl_sockaddr *a)
{
	(void)arg;
	(void)purpose;
	if (a->family == AF_INET)
		port_tried = ntohs(((struct sockaddr_in *)&a->addr)->sin_port);
	else
		port_tried = ntohs(((struct sockaddr_in6 *)&a->addr)->sin6_port);
	return CURL_SOCKET_BAD;
}

static bool libcurl_uses_it(const char *url)
{
	static const char *const names[] = { "host.example", "HOST.example", "host.example.",
					     "x.host.example", "ahost.example" };
	struct curl_slist *known = NULL;
	CURL *c = curl_easy_init();
	char line[80];

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		ignore_result(str_format(line, sizeof(line), "%s:9:127.0.0.1", names[i]));
		known = curl_slist_append(known, line);
	}
	curl_easy_setopt(c, CURLOPT_URL, url);
	curl_easy_setopt(c, CURLOPT_RESOLVE, known);
	curl_easy_setopt(c, CURLOPT_OPENSOCKETFUNCTION, on_open);
	port_tried = 0;
	ok_int(curl_easy_perform(c), CURLE_COULDNT_CONNECT, "nothing is connected to");
	curl_easy_cleanup(c);
	curl_slist_free_all(known);
	return port_tried == PROXY_PORT;
}

static void clear(void)
{
	static const char *const names[] = { "https_proxy", "HTTPS_PROXY", "http_proxy",
					     "HTTP_PROXY",  "all_proxy",   "ALL_PROXY",
					     "no_proxy",    "NO_PROXY" };

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		unsetenv(names[i]);
}

static void test_exceptions(void)
{
	static const struct {
		const char *none, *host;
		bool used;
	} table[] = {
		{ "", "host.example", true },
		{ "*", "host.example", false },
		{ "*,x", "host.example", true },
		{ "host.example", "host.example", false },
		{ "HOST.Example", "host.example", false },
		{ "host.example", "HOST.example", false },
		{ "host.example.", "host.example", false },
		{ "host.example", "host.example.", false },
		{ ".host.example", "host.example", false },
		{ "example", "host.example", false },
		{ "ost.example", "host.example", true },
		{ "host.example", "x.host.example", false },
		{ "host.example", "ahost.example", true },
		{ "x.host.example", "host.example", true },
		{ "a,host.example", "host.example", false },
		{ "a host.example", "host.example", false },
		{ " a ,\thost.example ", "host.example", false },
		{ ".", "host.example", true },
		{ ",", "host.example", true },
		{ "host.example:9", "host.example", true },
		{ "10.0.0.1", "10.0.0.1", false },
		{ "10.0.0.0/8", "10.1.2.3", false },
		{ "10.0.0.0/8", "11.1.2.3", true },
		{ "10.1.0.0/15", "10.0.2.3", false },
		{ "10.1.0.0/16", "10.0.2.3", true },
		{ "10.0.0.0/33", "10.0.0.0", true },
		{ "0.0.0.1", "10.0.0.1", true },
		{ "::1", "[::1]", false },
		{ "::2", "[::1]", true },
		{ "fd00::/8", "[fd12::1]", true },
		{ "10.0.0.0/0", "11.1.2.3", true },
	};

	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		char url[80], why[WHY_LEN], name[160];

		clear();
		setenv("HTTPS_PROXY", PROXY, 1);
		setenv("NO_PROXY", table[i].none, 1);
		ignore_result(str_format(url, sizeof(url), "https://%s:9/", table[i].host));
		ignore_result(str_format(name, sizeof(name), "\"%s\" and %s", table[i].none, url));
		why_say(CURLE_COULDNT_CONNECT, "", url, why);
		ok_int(!!strstr(why, "(HTTPS_PROXY names a proxy)"), table[i].used, name);
		ok_int(libcurl_uses_it(url), table[i].used, "so does libcurl");
	}
}

static void test_names(void)
{
	static const struct {
		const char *set, *url;
		bool used;
	} table[] = {
		{ "https_proxy", "https://host.example:9/", true },
		{ "HTTPS_PROXY", "https://host.example:9/", true },
		{ "all_proxy", "https://host.example:9/", true },
		{ "ALL_PROXY", "https://host.example:9/", true },
		{ "http_proxy", "https://host.example:9/", false },
		{ "http_proxy", "http://host.example:9/", true },
		{ "HTTP_PROXY", "http://host.example:9/", false },
		{ "HTTPS_PROXY", "http://host.example:9/", false },
		{ "ALL_PROXY", "http://host.example:9/", true },
	};

	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		char why[WHY_LEN], want[80];

		clear();
		setenv(table[i].set, PROXY, 1);
		ignore_result(str_format(want, sizeof(want), "(%s names a proxy)", table[i].set));
		why_say(CURLE_OPERATION_TIMEDOUT, "", table[i].url, why);
		ok_int(!!strstr(why, want), table[i].used, table[i].set);
		ok_int(libcurl_uses_it(table[i].url), table[i].used, "so does libcurl");
	}
}

static void test_others(void)
{
	char why[WHY_LEN];

	clear();
	setenv("HTTPS_PROXY", PROXY, 1);
	why_say(CURLE_COULDNT_CONNECT, "", NULL, why);
	ok(!strstr(why, "proxy)"), "what goes by none");
	why_say(CURLE_SSL_CONNECT_ERROR, "", "https://host.example/", why);
	ok(!strstr(why, "proxy)"), "what the proxy has let through");
	why_say(CURLE_COULDNT_CONNECT, "Unsupported proxy 'x://me:secret@h'",
		"https://host.example/", why);
	ok(!strstr(why, "secret"), "no password is shown");
}

int main(void)
{
	test_exceptions();
	test_names();
	test_others();
	return tap_done();
}
