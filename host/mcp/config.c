/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host/mcp/mcp.h"
#include "lib/str.h"

/* The variables of the Python project's server, which mean here what they mean there: a number that is none is the default. */

#define LEAST_OUTPUT 4 /* one character, or one quantum of base64 */
#define OUTPUT_DEF   (1U << 20)
#define TIMEOUT_DEF  120000 /* ms */

static const char *text(const char *name, const char *def)
{
	const char *s = getenv(name);

	return s && *s ? s : def;
}

static uint64_t number(const char *name, uint64_t max, uint64_t def)
{
	const char *s = text(name, "");
	uint64_t v;

	if (s[0] == '-' && str_to_u64(s + 1, 0, UINT64_MAX, &v) == 0)
		return 0;
	return str_to_u64(s, 0, UINT64_MAX, &v) < 0 ? def : v < max ? v : max;
}

/* What is not there yet is kept as it is written: it may be made later, and nothing is below it before. */
static int add_root(struct mcp_config *c, const char *path, struct err *e)
{
	char *real = realpath(path, NULL);

	if (!real && path[0] != '/')
		return 0;
	if (!real)
		real = strdup(path);
	if (!real)
		return err_set(e, ERR_INTERNAL, ENOMEM, "the configuration");
	if (c->roots_len == MCP_ROOTS_MAX) {
		free(real);
		return err_set(e, ERR_TOO_BIG, 0,
			       "AGENT_SANDBOX_MCP_HOST_PATHS has more than %d folders",
			       MCP_ROOTS_MAX);
	}
	c->roots[c->roots_len++] = real;
	return 0;
}

static int read_roots(struct mcp_config *c, struct err *e)
{
	char *list = strdup(text("AGENT_SANDBOX_MCP_HOST_PATHS", ".")), *rest = list;
	int r = list ? 0 : err_set(e, ERR_INTERNAL, ENOMEM, "the configuration");

	while (r == 0 && rest) {
		char *path = rest, *colon = strchr(rest, ':');

		rest = colon ? colon + 1 : NULL;
		if (colon)
			*colon = '\0';
		if (*path)
			r = add_root(c, path, e);
	}
	free(list);
	return r;
}

int mcp_config_read(struct mcp_config *c, struct err *e)
{
	c->max_output = number("AGENT_SANDBOX_MCP_MAX_OUTPUT_BYTES", UINT64_MAX, OUTPUT_DEF);
	if (c->max_output && c->max_output < LEAST_OUTPUT)
		c->max_output = LEAST_OUTPUT;
	c->default_ns = (int64_t)number("AGENT_SANDBOX_MCP_DEFAULT_TIMEOUT_MS", 7 * 86400000ULL,
					TIMEOUT_DEF) *
			1000000;
	if (c->default_ns == 0)
		c->default_ns = TIMEOUT_DEF * 1000000LL;
	c->workdir = text("AGENT_SANDBOX_WORKDIR", "/work");
	c->any_host_path =
		!strcmp(text("AGENT_SANDBOX_MCP_HOST_PATH_POLICY", "allowlist"), "unrestricted");
	return read_roots(c, e);
}

void mcp_config_done(struct mcp_config *c)
{
	while (c->roots_len)
		free(c->roots[--c->roots_len]);
}
