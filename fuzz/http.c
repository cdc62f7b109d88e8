/* SPDX-License-Identifier: Apache-2.0 */
/* LINK: agentd/[!m]*.c agentd/m[!a]*.c */
/*
 * A client of agentd: all of it, in this process, on a TCP connection. The first byte chooses: a route of the table, whose
 * target gets the rest up to the first newline appended and whose body is what follows that; or, above the table, the bytes as
 * they are. The gate is shut (no new execs, no writes), workers are not to be had and the file system is read-only; one exec "a"
 * (a cat) always runs.
 */
#include "fuzz/agent.h"

static size_t n_routes;

static bool start(void)
{
	static char sock[] = "build/fuzz/agentd.sock";

	if (!agent_start(sock))
		return false;
	worker_stop();
	app.closed = true;
	while (app_routes[n_routes].pattern)
		n_routes++;
	return true;
}

/* What is sent for the input: malloc. */
static char *request(const uint8_t *p, size_t n, size_t *ret_len)
{
	const struct httpd_route *rt = &app_routes[p[0] % (n_routes + 1)];
	const uint8_t *line = p + 1, *nl = memchr(line, '\n', n - 1);
	size_t target = nl ? (size_t)(nl - line) : n - 1, body = nl ? n - 2 - target : 0;
	char *s = malloc(n + 512);
	const char *hole;
	int k;

	if (!s)
		abort();
	if (!rt->pattern) {
		memcpy(s, p + 1, n - 1);
		*ret_len = n - 1;
		return s;
	}
	hole = strstr(rt->pattern, "{}");
	k = snprintf(
		s, n + 512,
		"%s %.*s%s%s%.*s HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Length: %zu\r\n\r\n",
		rt->method, hole ? (int)(hole - rt->pattern) : (int)strlen(rt->pattern),
		rt->pattern, hole ? "a" : "", hole ? hole + 2 : "", (int)target, (const char *)line,
		body);
	if (body)
		memcpy(s + k, nl + 1, body);
	*ret_len = (size_t)k + body;
	return s;
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	size_t len;
	char *s;

	if (!fuzz_started(start) || n < 2 || n > 100000)
		return 0;
	agent_have_exec("{\"argv\":[\"cat\"],\"stdin\":true}");
	s = request(p, n, &len);
	agent_say(s, len);
	return 0;
}
