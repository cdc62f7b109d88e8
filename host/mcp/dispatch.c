/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "host/mcp/server.h"
#include "lib/str.h"

/*
 * Methods of two eras (modelcontextprotocol.io, "Versioning and Compatibility"). Up to revision 2025-11-25 a client
 * begins with initialize, and what was agreed holds for the connection. From 2026-07-28 on every request brings its revision in
 * _meta, and nothing is remembered. Both are served at the same time: a request with a revision in _meta is of the second kind.
 */

#define META "io.modelcontextprotocol/"

static const char *const legacy[] = { "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05",
				      "2024-10-07" };
static const char modern_revision[] = "2026-07-28";
static const char supported[] =
	"\"2026-07-28\",\"2025-11-25\",\"2025-06-18\",\"2025-03-26\",\"2024-11-05\","
	"\"2024-10-07\"";
#define LEVELS "one of debug, info, notice, warning, error, critical, alert, emergency"

static const char instructions[] =
	"Runs code in isolated microVM sandboxes. sandbox_run is for one-off work in a sandbox that is thrown away; sandbox_create, "
	"then sandbox_exec or sandbox_shell, for work that keeps files and processes; sandbox_fs_* for files; sandbox_exec_start and "
	"sandbox_exec_poll for commands that run on; sandbox_branch to try something on a copy. Every tool returns {ok,data|error}.";

struct request {
	struct mcp_server *s;
	struct rpc_msg *m;
	size_t bytes;
	bool modern;
	enum mcp_level log_level; /* of a modern one */
};

static void fail(const struct request *q, enum rpc_error code, const char *text)
{
	server_error(q->s, q->m->id, code, text, NULL);
}

static const char *param(const struct request *q, const char *name)
{
	const char *s = NULL;

	if (q->m->params)
		ignore_result(jsn_str(q->m->params, name, &s, NULL)); /* of another type: none */
	return s;
}

static void on_ping(struct request *q)
{
	server_result(q->s, q->m->id, false, "");
}

/* --- the two ways to begin --- */

/* NAME:VALUE of the server, as JSON text; the caller frees it. */
static char *describe(const char *begin)
{
	AUTO_JSN *text = cJSON_CreateString(instructions);
	char *quoted = text ? cJSON_PrintUnformatted(text) : NULL;
	AUTO_BUF b;

	buf_init(&b, 16U << 10);
	if (!quoted ||
	    buf_addf(&b,
		     "%s\"capabilities\":{\"tools\":{},\"resources\":{\"subscribe\":true,"
		     "\"listChanged\":true},\"logging\":{}},\"instructions\":%s",
		     begin, quoted) < 0)
		buf_clear(&b);
	free(quoted);
	return b.len ? buf_take(&b) : NULL;
}

static void answer_begin(struct request *q, const char *begin)
{
	char *text = describe(begin);

	if (text)
		server_result(q->s, q->m->id, q->modern, text);
	else
		fail(q, RPC_INTERNAL, "no memory");
	free(text);
}

static void on_initialize(struct request *q)
{
	const char *wanted = param(q, "protocolVersion");
	size_t i = 0;
	AUTO_BUF b;

	buf_init(&b, 2048);
	if (!wanted) {
		fail(q, RPC_INVALID_PARAMS, "protocolVersion must be a string");
		return;
	}
	while (i < ARRAY_LEN(legacy) && strcmp(legacy[i], wanted) != 0)
		i++;
	if (i == ARRAY_LEN(legacy))
		i = 0; /* the newest: the client may go */
	if (buf_addf(&b, "\"protocolVersion\":\"%s\",\"serverInfo\":%s,", legacy[i],
		     listing_server_info()) < 0)
		fail(q, RPC_INTERNAL, "no memory");
	else
		answer_begin(q, b.p);
	q->s->initialized = true;
}

static void on_discover(struct request *q)
{
	AUTO_BUF b;

	buf_init(&b, 2048);
	if (buf_addf(&b, "\"supportedVersions\":[%s],\"ttlMs\":3600000,\"cacheScope\":\"private\",",
		     supported) < 0)
		fail(q, RPC_INTERNAL, "no memory");
	else
		answer_begin(q, b.p);
}

static void on_set_level(struct request *q)
{
	const char *name = param(q, "level");

	if (name && log_level_of(name, &q->s->log.level))
		server_result(q->s, q->m->id, false, "");
	else
		fail(q, RPC_INVALID_PARAMS, "level must be " LEVELS);
}

/* --- lists --- */

/* True when the client asks for a page that was never offered. */
static bool odd_cursor(const struct request *q)
{
	if (!q->m->params || !jsn_get(q->m->params, "cursor") ||
	    cJSON_IsNull(jsn_get(q->m->params, "cursor")))
		return false;
	fail(q, RPC_INVALID_PARAMS, "this cursor is not one of this server");
	return true;
}

static void answer_list(struct request *q, const char *name, const char *list, const char *ttl)
{
	AUTO_BUF b;

	buf_init(&b, 4U << 20);
	if (list && buf_addf(&b, "\"%s\":%s", name, list) == 0 &&
	    (!q->modern || buf_addf(&b, ",\"ttlMs\":%s,\"cacheScope\":\"private\"", ttl) == 0))
		server_result(q->s, q->m->id, q->modern, b.p);
	else
		fail(q, RPC_INTERNAL, "no memory");
}

static void on_tools_list(struct request *q)
{
	if (odd_cursor(q))
		return;
	if (!q->s->tools)
		q->s->tools = listing_tools(q->s->cfg);
	answer_list(q, "tools", q->s->tools, "3600000");
}

static void on_templates_list(struct request *q)
{
	if (!odd_cursor(q))
		answer_list(q, "resourceTemplates", resource_templates, "3600000");
}

/* --- what workers do --- */

static void on_work(struct request *q)
{
	const struct mcp_tool *t;
	const char *name = param(q, "name");

	if (!strcmp(q->m->method, "resources/list") && odd_cursor(q))
		return;
	if (!strcmp(q->m->method, "resources/read") && !param(q, "uri")) {
		fail(q, RPC_INVALID_PARAMS, "uri must be a string");
		return;
	}
	if (!strcmp(q->m->method, "tools/call")) {
		char text[96];

		t = name ? mcp_tool_find(name) : NULL;
		if (!t || !mcp_tool_offered(t, q->s->cfg)) {
			ignore_result(str_format(text, sizeof(text), "Unknown tool: %.64s",
						 name ? name : "")); /* it fits */
			fail(q, RPC_INVALID_PARAMS, text);
			return;
		}
	}
	calls_add(q->s, q->m, q->bytes, q->modern, q->log_level);
}

/* --- subscriptions --- */

static void on_subscribe(struct request *q)
{
	const char *uri = param(q, "uri");
	bool on = !strcmp(q->m->method, "resources/subscribe");
	int r = uri && strlen(uri) <= MCP_URI_MAX ? sub_set(&q->s->legacy, uri, on) : -EINVAL;

	if (r < 0) {
		fail(q, r == -EINVAL ? RPC_INVALID_PARAMS : RPC_INTERNAL,
		     r == -EINVAL ? "uri must be a string of at most 512 bytes"
				  : "too many subscriptions");
		return;
	}
	watch_begin(q->s);
	server_result(q->s, q->m->id, false, "");
}

static void on_listen(struct request *q)
{
	const cJSON *want = jsn_get(q->m->params, "notifications"), *uris, *u;
	struct mcp_sub *sub = q->s->subs;
	AUTO_JSN *ack = cJSON_CreateObject();
	cJSON *list = NULL;
	char *text = NULL;
	AUTO_BUF b;

	buf_init(&b, 1U << 20);
	while (sub < q->s->subs + MCP_SUBS_MAX && sub->id[0])
		sub++;
	if (!cJSON_IsObject(want) || sub == q->s->subs + MCP_SUBS_MAX || !ack) {
		fail(q, RPC_INVALID_PARAMS,
		     cJSON_IsObject(want) ? "too many subscriptions"
					  : "notifications must be an object");
		return;
	}
	sub->list = cJSON_IsTrue(jsn_get(want, "resourcesListChanged"));
	uris = jsn_get(want, "resourceSubscriptions");
	if (cJSON_IsArray(uris))
		list = cJSON_AddArrayToObject(ack, "resourceSubscriptions");
	cJSON_ArrayForEach(u, uris)
	{
		if (list && cJSON_IsString(u) && strlen(u->valuestring) <= MCP_URI_MAX &&
		    sub_set(sub, u->valuestring, true) == 0)
			(void)cJSON_AddItemToArray(list, cJSON_CreateString(u->valuestring));
	}
	if (!sub->list || jsn_add_bool(ack, "resourcesListChanged", true))
		text = cJSON_PrintUnformatted(ack);
	if (text &&
	    buf_addf(
		    &b,
		    "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/subscriptions/acknowledged\",\"params\":{"
		    "\"_meta\":{\"" META "subscriptionId\":%s},\"notifications\":%s}}\n",
		    q->m->id, text) == 0) {
		memcpy(sub->id, q->m->id, sizeof(sub->id));
		server_send(q->s, b.p, b.len);
		watch_begin(q->s);
	} else {
		sub_done(sub);
		fail(q, RPC_INTERNAL, "no memory");
	}
	free(text);
}

/* --- notifications --- */

static void on_cancelled(struct mcp_server *s, const struct rpc_msg *m)
{
	char id[RPC_ID_MAX + 1];
	struct mcp_call *c;

	if (!m->params || !rpc_id_text(jsn_get(m->params, "requestId"), id))
		return;
	c = calls_find(s, id);
	if (c)
		calls_cancel(c);
	for (size_t i = 0; i < MCP_SUBS_MAX; i++)
		if (s->subs[i].id[0] && !strcmp(s->subs[i].id, id))
			sub_done(&s->subs[i]);
}

static void on_notification(struct mcp_server *s, const struct rpc_msg *m)
{
	if (!strcmp(m->method, "notifications/cancelled"))
		on_cancelled(s, m);
	else if (!strcmp(m->method, "notifications/initialized") && s->initialized) {
		s->legacy.list = true;
		watch_begin(s);
	}
}

/* --- which --- */

enum era { LEGACY = 1, MODERN = 2, EARLY = 4 /* before initialize too */ };

static const struct {
	const char *name;
	void (*fn)(struct request *q);
	unsigned eras;
} methods[] = {
	{ "initialize", on_initialize, LEGACY | EARLY },
	{ "server/discover", on_discover, MODERN },
	{ "ping", on_ping, LEGACY | EARLY },
	{ "tools/list", on_tools_list, LEGACY | MODERN },
	{ "tools/call", on_work, LEGACY | MODERN },
	{ "resources/list", on_work, LEGACY | MODERN },
	{ "resources/templates/list", on_templates_list, LEGACY | MODERN },
	{ "resources/read", on_work, LEGACY | MODERN },
	{ "resources/subscribe", on_subscribe, LEGACY },
	{ "resources/unsubscribe", on_subscribe, LEGACY },
	{ "subscriptions/listen", on_listen, MODERN },
	{ "logging/setLevel", on_set_level, LEGACY | EARLY },
};

/* The messages that a modern request wants: none, unless it says a level. False when it was answered. */
static bool read_log_level(struct request *q, const cJSON *meta)
{
	const char *name = NULL;
	int r = jsn_str(meta, META "logLevel", &name, NULL);

	q->log_level = MCP_LOG_NONE;
	if (r == 0 || (r == 1 && log_level_of(name, &q->log_level)))
		return true;
	fail(q, RPC_INVALID_PARAMS, META "logLevel must be " LEVELS);
	return false;
}

/* Of which era Q is. False when it was answered. */
static bool read_meta(struct request *q)
{
	const cJSON *meta = q->m->params ? jsn_get(q->m->params, "_meta") : NULL;
	const char *version = NULL;
	char data[RPC_ID_MAX + 256];

	if (!cJSON_IsObject(meta) || !jsn_get(meta, META "protocolVersion"))
		return true;
	q->modern = true;
	if (jsn_str(meta, META "protocolVersion", &version, NULL) != 1 ||
	    !cJSON_IsObject(jsn_get(meta, META "clientCapabilities"))) {
		fail(q, RPC_INVALID_PARAMS,
		     "_meta must have " META "protocolVersion, a string, and " META
		     "clientCapabilities, an object");
		return false;
	}
	if (!strcmp(version, modern_revision))
		return read_log_level(q, meta);
	ignore_result(str_format(
		data, sizeof(data), "{\"supported\":[%s],\"requested\":\"%.*s\"}", supported,
		(int)strspn(version,
			    "0123456789-abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ."),
		strlen(version) < 64 ? version : "")); /* it fits */
	server_error(q->s, q->m->id, RPC_UNSUPPORTED_VERSION, "Unsupported protocol version", data);
	return false;
}

static bool id_in_use(struct mcp_server *s, const char *id)
{
	for (size_t i = 0; i < MCP_SUBS_MAX; i++)
		if (s->subs[i].id[0] && !strcmp(s->subs[i].id, id))
			return true;
	return calls_find(s, id) != NULL;
}

void dispatch(struct mcp_server *s, struct rpc_msg *m, size_t bytes)
{
	struct request q = { .s = s, .m = m, .bytes = bytes };
	size_t i = 0;

	if (m->kind == RPC_NOTIFICATION) {
		on_notification(s, m);
		return;
	}
	if (!read_meta(&q))
		return;
	while (i < ARRAY_LEN(methods) && strcmp(methods[i].name, m->method) != 0)
		i++;
	if (i == ARRAY_LEN(methods) || (q.modern && !(methods[i].eras & MODERN))) {
		fail(&q, RPC_NO_METHOD, "Method not found");
	} else if (!q.modern && !(methods[i].eras & LEGACY)) {
		fail(&q, RPC_INVALID_PARAMS,
		     "_meta must have " META "protocolVersion and " META "clientCapabilities");
	} else if (!q.modern && !s->initialized && !(methods[i].eras & EARLY)) {
		fail(&q, RPC_INVALID_REQUEST,
		     "initialize comes first (or _meta with " META "protocolVersion)");
	} else if (id_in_use(s, m->id)) {
		fail(&q, RPC_INVALID_REQUEST, "a request with this id is in progress");
	} else {
		methods[i].fn(&q);
	}
}
