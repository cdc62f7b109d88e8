/* SPDX-License-Identifier: Apache-2.0 */
/* LINK: host/mcp/rpc.c host/mcp/args.c host/mcp/cut.c */
#include <errno.h>
#include <stdbool.h>

#include "host/mcp/args.h"
#include "host/mcp/rpc.h"
#include "tests/lib/tap.h"

/* --- lines --- */

struct seen {
	char text[256]; /* every line and a '|'; "!" for one that was too long */
};

static bool on_line(void *arg, char *p, size_t n)
{
	struct seen *s = arg;
	size_t len = strlen(s->text);

	if (!p)
		snprintf(s->text + len, sizeof(s->text) - len, "!|");
	else if (n < 100 && p[n] == '\0')
		snprintf(s->text + len, sizeof(s->text) - len, "%.*s|", (int)n, p);
	return true;
}

static void test_splits(void)
{
	static const char in[] = "one\n\ntwo\r\n{}\nlast";
	bool good = true;

	for (size_t a = 0; a <= strlen(in); a++)
		for (size_t b = a; b <= strlen(in); b++) {
			struct seen s = { "" };
			struct rpc_lines l;

			rpc_lines_init(&l, on_line, &s);
			(void)rpc_feed(&l, in, a);
			(void)rpc_feed(&l, in + a, b - a);
			(void)rpc_feed(&l, in + b, strlen(in) - b);
			rpc_end(&l);
			rpc_lines_done(&l);
			good = good && !strcmp(s.text, "one||two\r|{}|last|");
		}
	ok(good, "every split of some lines");
}

static void test_long(void)
{
	char *much = malloc(1 << 20);
	struct seen s = { "" };
	struct rpc_lines l;

	if (!much)
		return;
	memset(much, 'x', 1 << 20);
	rpc_lines_init(&l, on_line, &s);
	for (int i = 0; i < 20; i++)
		(void)rpc_feed(&l, much, 1 << 20);
	ok_str(s.text, "!|", "a line that is too long is told once, before its end");
	ok(l.in.size <= 64 << 10, "and nothing of it is kept");
	(void)rpc_feed(&l, "x\nnext\n", 7);
	ok_str(s.text, "!|next|", "the line after it is read");
	rpc_lines_done(&l);
	free(much);
}

/* --- messages --- */

static void test_messages(void)
{
	static const struct {
		const char *in;
		enum rpc_kind kind;
		const char *id;
		int code;
	} t[] = {
		{ "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\"}", RPC_REQUEST, "1", 0 },
		{ "{\"jsonrpc\":\"2.0\",\"id\":-7,\"method\":\"a\",\"params\":{}}", RPC_REQUEST,
		  "-7", 0 },
		{ "{\"jsonrpc\":\"2.0\",\"id\":\"a\\n\\\"\",\"method\":\"a\"}", RPC_REQUEST,
		  "\"a\\n\\\"\"", 0 },
		{ "{\"jsonrpc\":\"2.0\",\"method\":\"a\"}", RPC_NOTIFICATION, "null", 0 },
		{ "{\"jsonrpc\":\"2.0\",\"id\":3,\"result\":{}}", RPC_RESPONSE, "3", 0 },
		{ "{\"jsonrpc\":\"2.0\",\"id\":3,\"error\":{}}", RPC_RESPONSE, "3", 0 },
		{ " \t\r", RPC_RESPONSE, "null", 0 },
		{ "{\"jsonrpc\":\"2.0\",\"id\":1.5,\"method\":\"a\"}", RPC_BAD, "null",
		  RPC_INVALID_REQUEST },
		{ "{\"jsonrpc\":\"2.0\",\"id\":1e300,\"method\":\"a\"}", RPC_BAD, "null",
		  RPC_INVALID_REQUEST },
		{ "{\"jsonrpc\":\"2.0\",\"id\":true,\"method\":\"a\"}", RPC_BAD, "null",
		  RPC_INVALID_REQUEST },
		{ "{\"jsonrpc\":\"2.0\",\"id\":2}", RPC_BAD, "2", RPC_INVALID_REQUEST },
		{ "{\"jsonrpc\":2,\"id\":2,\"method\":\"a\"}", RPC_BAD, "2", RPC_INVALID_REQUEST },
		{ "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"a\",\"params\":1}", RPC_BAD, "2",
		  RPC_INVALID_PARAMS },
		{ "[]", RPC_BAD, "null", RPC_INVALID_REQUEST },
		{ "{\"id\":5,\"x\":\"\xff\"}", RPC_BAD, "5", RPC_PARSE },
		{ "{\"id\":5} x", RPC_BAD, "5", RPC_PARSE },
		{ "{\"id\":6,\"x\":\"\\ud83d\"}", RPC_BAD, "6", RPC_PARSE },
		{ "{\"id\":6,\"x\":\"\\ude00\\ud83d\\ude00 \\ud83dx\"}", RPC_BAD, "6", RPC_PARSE },
		{ "{\"id\":7,\"x\":\"\\\\ud83d\\ud83d", RPC_BAD, "null", RPC_PARSE },
		{ "{\"id\":7,\"x\":\"\\", RPC_BAD, "null", RPC_PARSE },
		{ "{\"jsonrpc\":\"2.0\",\"id\":8,\"method\":\"\\ud83d\\ude00\\\\ud83d\"}",
		  RPC_REQUEST, "8", 0 },
		{ "{", RPC_BAD, "null", RPC_PARSE },
	};

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		char line[128];
		struct rpc_msg m;

		snprintf(line, sizeof(line), "%s", t[i].in);
		rpc_read(line, strlen(line), &m);
		ok(m.kind == t[i].kind && !strcmp(m.id, t[i].id) &&
			   (m.kind != RPC_BAD || (int)m.code == t[i].code),
		   "%s", t[i].in);
		rpc_done(&m);
	}
}

/* --- text --- */

static void test_cut(void)
{
	static const struct {
		const char *in;
		uint64_t cap;
		size_t want;
	} t[] = {
		{ "abc", 0, 3 },
		{ "abc", 3, 3 },
		{ "abc", 2, 2 },
		{ "\xc3\xa9", 1, 0 },
		{ "a\xc3\xa9", 2, 1 },
		{ "a\xc3\xa9", 3, 3 },
		{ "\xe2\x82\xac\xe2\x82\xac", 5, 3 },
		{ "\xf0\x9f\x98\x80x", 3, 0 },
		{ "\xf0\x9f\x98\x80x", 4, 4 },
		{ "\x80\x80\x80\x80\x80\x80", 5, 5 },
	};

	for (size_t i = 0; i < ARRAY_LEN(t); i++)
		ok_int((long long)mcp_cut(t[i].in, strlen(t[i].in), t[i].cap), (long long)t[i].want,
		       "a cut");
}

/* --- arguments --- */

static const struct mcp_param params[] = {
	{ "s", MCP_STR, NULL, NULL },
	{ "i", MCP_INT, "3", NULL },
	{ "n", MCP_NUM, "null", NULL },
	{ "b", MCP_BOOL, "false", NULL },
	{ "l", MCP_LIST, "null", NULL },
	{ "m", MCP_MAP, "null", NULL },
	{ NULL },
};
static const struct mcp_tool tool = { .name = "t", .params = params };

static void test_args(void)
{
	static const struct {
		const char *in, *want; /* NULL: refused */
	} t[] = {
		{ "{\"s\":\"x\"}",
		  "{\"s\":\"x\",\"i\":3,\"n\":null,\"b\":false,\"l\":null,\"m\":null}" },
		{ "{\"s\":\"x\",\"i\":\"7\",\"n\":\"1.5\",\"b\":\"true\",\"l\":\"[\\\"a\\\"]\",\"m\":\"{\\\"k\\\":\\\"v\\\"}\",\"z\":1}",
		  "{\"s\":\"x\",\"i\":7,\"n\":1.5,\"b\":true,\"l\":[\"a\"],\"m\":{\"k\":\"v\"}}" },
		{ "{\"s\":\"[1]\",\"n\":null}",
		  "{\"s\":\"[1]\",\"i\":3,\"n\":null,\"b\":false,\"l\":null,\"m\":null}" },
		{ "{}", NULL },
		{ "{\"s\":null}", NULL },
		{ "{\"s\":1}", NULL },
		{ "{\"s\":\"\",\"i\":1.5}", NULL },
		{ "{\"s\":\"\",\"i\":1e300}", NULL },
		{ "{\"s\":\"\",\"i\":null}", NULL },
		{ "{\"s\":\"\",\"l\":[1]}", NULL },
		{ "{\"s\":\"\",\"m\":{\"a\":1}}", NULL },
		{ "{\"s\":\"\",\"b\":\"yes\"}", NULL },
	};

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		AUTO_JSN *given = jsn_parse(t[i].in, strlen(t[i].in), NULL), *all = NULL;
		char *text = NULL;
		AUTO_BUF why;
		int r;

		buf_init(&why, 4096);
		r = args_read(&tool, given, &all, &why);
		text = all ? cJSON_PrintUnformatted(all) : NULL;
		if (t[i].want)
			ok_str(text ? text : why.p, t[i].want, t[i].in);
		else
			ok(r == -EINVAL && why.len && !all, "%s: %s", t[i].in, why.p);
		free(text);
	}
}

int main(void)
{
	test_splits();
	test_long();
	test_messages();
	test_cut();
	test_args();
	return tap_done();
}
