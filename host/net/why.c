/* SPDX-License-Identifier: Apache-2.0 */
#include "host/net/why.h"

#include <stdlib.h>
#include <string.h>

#include "lib/str.h"

/* The variable that names a proxy, as libcurl looks for it (CURLOPT_PROXY(3)); NULL when no host goes by one. */
static const char *proxy_variable(void)
{
	static const char *const names[] = { "https_proxy", "HTTPS_PROXY", "all_proxy",
					     "ALL_PROXY" };
	const char *none = getenv("no_proxy");

	if (!none)
		none = getenv("NO_PROXY");
	if (none && strcmp(none, "*") == 0)
		return NULL;
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		const char *value = getenv(names[i]);

		if (value && *value)
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

void why_say(CURLcode code, const char *text, bool proxy, char ret[WHY_LEN])
{
	char plain[CURL_ERROR_SIZE];
	const char *name = NULL;

	if (proxy && (code == CURLE_COULDNT_CONNECT || code == CURLE_COULDNT_RESOLVE_PROXY ||
		      code == CURLE_OPERATION_TIMEDOUT))
		name = proxy_variable();
	/* both are cut, never refused: they are for people */
	ignore_result(
		str_format(plain, sizeof(plain), "%s", text[0] ? text : curl_easy_strerror(code)));
	hide_address(plain);
	if (name)
		ignore_result(str_format(ret, WHY_LEN, "%s (%s names a proxy)", plain, name));
	else
		ignore_result(str_format(ret, WHY_LEN, "%s", plain));
}
