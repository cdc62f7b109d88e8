/* SPDX-License-Identifier: Apache-2.0 */
/* LINK: host/proxy/guard.c */
#include "host/proxy/guard.h"

#include <errno.h>
#include <string.h>

#include "tap.h"

static const char long_name[] =
	"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.localhost";

static void hosts(void)
{
	static const struct {
		const char *host, *address;
		bool good;
	} rows[] = {
		{ NULL, "127.0.0.1", true },
		{ "localhost", "127.0.0.1", true },
		{ "LocalHost:8080", "127.0.0.1", true },
		{ "app.localhost:1", "127.0.0.1", true },
		{ "127.0.0.1:8080", "127.0.0.1", true },
		{ "127.8.9.1", "127.0.0.1", true },
		{ "[::1]:8080", "127.0.0.1", true },
		{ "[::1]", "::1", true },
		{ "localhost:", "127.0.0.1", true },
		{ "192.168.1.5:80", "192.168.1.5", true },
		{ "192.168.1.5:80", "0.0.0.0", true },
		{ "[fe80::1]:80", "::", true },
		{ "192.168.1.5", "::", true },
		{ "192.168.1.5:80", "127.0.0.1", false },
		{ "192.168.1.6:80", "192.168.1.5", false },
		{ "evil.example", "127.0.0.1", false },
		{ "evil.example", "0.0.0.0", false },
		{ "localhost.evil.example", "127.0.0.1", false },
		{ "evillocalhost", "127.0.0.1", false },
		{ "127.0.0.1.evil.example", "127.0.0.1", false },
		{ "localhost:80:80", "127.0.0.1", false },
		{ "localhost:http", "127.0.0.1", false },
		{ "localhost:99999", "127.0.0.1", false },
		{ "[::1", "127.0.0.1", false },
		{ "[::1]x", "127.0.0.1", false },
		{ "[]", "127.0.0.1", false },
		{ "", "127.0.0.1", false },
		{ ":80", "127.0.0.1", false },
		{ "user@localhost", "127.0.0.1", false },
		{ long_name, "127.0.0.1", false },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		ok(guard_host(rows[i].host, rows[i].address) == rows[i].good,
		   "Host %.60s at %s: %s", rows[i].host ? rows[i].host : "(none)", rows[i].address,
		   rows[i].good ? "may" : "may not");
}

static void origins(void)
{
	static const struct {
		const char *origin;
		bool good;
	} rows[] = {
		{ NULL, true },
		{ "http://localhost:3000", true },
		{ "https://127.0.0.1", true },
		{ "http://[::1]:8080", true },
		{ "vscode-webview://localhost", true },
		{ "null", false },
		{ "", false },
		{ "https://evil.example", false },
		{ "http://localhost.evil.example", false },
		{ "http://evil.example/://localhost", false },
		{ "http://localhost/x", false },
		{ "http://localhost http://evil.example", false },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		ok(guard_origin(rows[i].origin, "127.0.0.1") == rows[i].good, "Origin %s: %s",
		   rows[i].origin ? rows[i].origin : "(none)", rows[i].good ? "may" : "may not");
}

static void targets(void)
{
	static const char *const good[] = { "/", "/a?b=%zz&c", "//evil.example/", "/\\", "/%00" };
	static const char *const bad[] = {
		"",	 "*",	     "http://evil.example/", "evil.example:443", "/a#b", "/a b",
		"/\x7f", "/\xc3\xa9"
	};

	for (size_t i = 0; i < ARRAY_LEN(good); i++)
		ok(guard_target(good[i]), "'%s' is a target", good[i]);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		ok(!guard_target(bad[i]), "'%s' is none", bad[i]);
}

static void headers(void)
{
	ok(guard_hop_by_hop("transfer-ENCODING", NULL) && guard_hop_by_hop("Upgrade", "") &&
		   guard_hop_by_hop("Keep-Alive", NULL),
	   "fields of a connection");
	ok(guard_hop_by_hop("X-One", "close, x-one") && guard_hop_by_hop("X-One", " X-One ,b"),
	   "fields that Connection names");
	ok(!guard_hop_by_hop("X-One", "x-on, x-onee") && !guard_hop_by_hop("Cookie", NULL),
	   "others are not");
	ok(guard_has_token("keep-alive,\tUpgrade", "upgrade") &&
		   !guard_has_token("upgraded", "upgrade") && !guard_has_token(NULL, "upgrade") &&
		   !guard_has_token(" , ,", "upgrade"),
	   "tokens");
}

/* What BUILD leaves in a buffer. */
static const char *offer(const char *client, const char *ours)
{
	static struct buf b;

	buf_done(&b);
	buf_init(&b, 4096);
	if (guard_offer(client, "asb-", ours, &b) < 0)
		return "failed";
	return b.p ? b.p : "";
}

static const char *moved(const char *url)
{
	static struct buf b;

	buf_done(&b);
	buf_init(&b, 4096);
	if (guard_location(url, "vm.on.aws", "localhost:8080", &b) < 0)
		return "failed";
	return b.p ? b.p : "";
}

static void texts(void)
{
	static const char *const here[][2] = {
		{ "https://vm.on.aws", "http://localhost:8080" },
		{ "HTTP://VM.on.aws/a?b#c", "http://localhost:8080/a?b#c" },
		{ "//vm.on.aws:443/a", "http://localhost:8080/a" },
		{ "http://vm.on.aws:80?x", "http://localhost:8080?x" },
		{ "/a", "/a" },
		{ "a/b", "a/b" },
		{ "", "" },
		{ "https://vm.on.aws:8443/a", "https://vm.on.aws:8443/a" },
		{ "https://vm.on.aws.evil.example/a", "https://vm.on.aws.evil.example/a" },
		{ "https://x@vm.on.aws/a", "https://x@vm.on.aws/a" },
		{ "https://vm.on.aws@evil.example/", "https://vm.on.aws@evil.example/" },
		{ "https://evil.example/https://vm.on.aws/",
		  "https://evil.example/https://vm.on.aws/" },
		{ "ftp://vm.on.aws/a", "ftp://vm.on.aws/a" },
	};
	struct buf small;

	for (size_t i = 0; i < ARRAY_LEN(here); i++)
		ok_str(moved(here[i][0]), here[i][1], here[i][0]);
	ok_str(offer(NULL, NULL), "", "no subprotocols");
	ok_str(offer("chat , v2", NULL), "chat, v2", "the client's");
	ok_str(offer("chat", "asb-a, asb-b"), "chat, asb-a, asb-b", "and ours");
	ok_str(offer("ASB-a.token, chat,asb-", "asb-a"), "chat, asb-a",
	       "but none that is ours alone");
	buf_init(&small, 10);
	ok(guard_offer("a-long-protocol", "x", NULL, &small) == -ENOSPC,
	   "a buffer that is too small");
	buf_done(&small);
}

int main(void)
{
	hosts();
	origins();
	targets();
	headers();
	texts();
	return tap_done();
}
