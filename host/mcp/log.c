/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host/mcp/server.h"
#include "lib/str.h"

/*
 * Log messages for the client (notifications/message). What they tell is for people who look at what a model does: names, ids,
 * numbers of bytes; never a command, its variables or its output.
 *
 * Up to revision 2025-11-25 the least level is the session's (logging/setLevel; warning until then). From 2026-07-28 on each request
 * brings its own in _meta, one that brings none gets no message, and none comes after its answer. What is about no request is
 * for sessions alone.
 *
 * LOG_BURST messages may come at once, and one more every LOG_STEP_NS (the "generic cell rate algorithm": NEXT is when the
 * next one would be due at that rate). What is left out is counted, and told before the next one that is let through.
 */

#define LOG_BURST   32
#define LOG_STEP_NS (100 * 1000000LL)

static const char *const names[] = { "debug", "info",	  "notice", "warning",
				     "error", "critical", "alert",  "emergency" };
static_assert(ARRAY_LEN(names) == MCP_LOG_NONE, "a name for every level");

bool log_level_of(const char *name, enum mcp_level *ret)
{
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (!strcmp(names[i], name)) {
			*ret = (enum mcp_level)i;
			return true;
		}
	return false;
}

static void send(struct mcp_server *s, enum mcp_level level, const char *logger, const char *data,
		 size_t n)
{
	AUTO_BUF b;

	buf_init(&b, 16U << 10);
	if (buf_addf(
		    &b,
		    "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{\"level\":\"%s\","
		    "\"logger\":\"%s\",\"data\":%.*s}}\n",
		    names[level], logger, (int)n, data) == 0)
		server_send(s, b.p, b.len);
}

static bool wanted(const struct mcp_server *s, const struct mcp_call *c, enum mcp_level level)
{
	if (s->closing || level >= MCP_LOG_NONE)
		return false;
	if (c && c->modern)
		return !c->answered && !c->cancelled && level >= c->log_level;
	return s->initialized && level >= s->log.level;
}

/* Room for one more; tells first what had none. */
static bool admit(struct mcp_server *s, const struct mcp_call *c)
{
	struct mcp_log *l = &s->log;
	int64_t now = loop_now();
	char text[80];

	l->next = l->next > now ? l->next : now;
	if (l->next - now >= LOG_BURST * LOG_STEP_NS) {
		l->left_out++;
		return false;
	}
	l->next += LOG_STEP_NS;
	if (l->left_out && wanted(s, c, MCP_LOG_WARNING)) {
		ignore_result(str_format(text, sizeof(text),
					 "{\"message\":\"%u log messages were left out\"}",
					 l->left_out)); /* it fits */
		l->left_out = 0;
		send(s, MCP_LOG_WARNING, "server", text, strlen(text));
	}
	return true;
}

void log_worker(const struct mcp_call *c, const char *p, size_t n)
{
	struct mcp_server *s = c->s;
	unsigned once;

	if (n < 4 || p[0] < '0' || p[0] >= '0' + MCP_LOG_NONE || p[1] < '0' || p[1] > '9')
		return;
	once = 1U << (p[1] - '0');
	if (!wanted(s, c, (enum mcp_level)(p[0] - '0')) || (s->log.told & once & ~1U) ||
	    !admit(s, c))
		return;
	s->log.told |= once;
	send(s, (enum mcp_level)(p[0] - '0'), c->what, p + 2, n - 2);
}

void log_server(struct mcp_server *s, const struct mcp_call *c, enum mcp_level level,
		const char *fmt, ...)
{
	AUTO_JSN *j = cJSON_CreateObject();
	char text[MCP_LOG_TEXT], *data;
	va_list ap;

	if (!wanted(s, c, level) || !admit(s, c))
		return;
	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap); /* a cut message is fine */
	va_end(ap);
	data = j && jsn_add_text(j, "message", text, strlen(text)) ? cJSON_PrintUnformatted(j)
								   : NULL;
	if (data)
		send(s, level, c ? c->what : "server", data, strlen(data));
	free(data);
}
