/* SPDX-License-Identifier: Apache-2.0 */
#include <bearssl.h>
#include <microhttpd.h>
#include <microhttpd_ws.h>
#include <string.h>
#include <strings.h>

#include "b64.h"
#include "httpd.h"
#include "ws.h"

#define KEY_LEN 24				       /* base64 of 16 bytes */
#define GUID	"258EAFA5-E914-47DA-95CA-C5AB0DC85B11" /* RFC 6455 §1.3 */

/* The value of Sec-WebSocket-Key is base64 of 16 bytes (RFC 6455 §4.1). */
static bool key_is_valid(const char *key)
{
	return key && strlen(key) == KEY_LEN && !strcmp(key + 22, "==") &&
	       strspn(key, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/") ==
		       22;
}

/*
 * A page of another site, in a browser that can reach this port, may open WebSockets as it likes: the
 * browser only adds where it comes from (RFC 6455 §10.2). Programs that are no browser send no Origin.
 */
static bool origin_is_ours(const struct httpd_req *r)
{
	const char *origin = httpd_header(r, "Origin"), *host = httpd_header(r, "Host");
	const char *at = origin ? strstr(origin, "://") : NULL;

	return !origin || (at && host && !strcasecmp(at + 3, host));
}

static bool asks_for_websocket(const struct httpd_req *r)
{
	const char *upgrade = httpd_header(r, "Upgrade"), *con = httpd_header(r, "Connection");

	return upgrade && con && httpd_is_http11(r) &&
	       MHD_websocket_check_upgrade_header(upgrade) == MHD_WEBSOCKET_STATUS_OK &&
	       MHD_websocket_check_connection_header(con) == MHD_WEBSOCKET_STATUS_OK;
}

/* The library can do this as well, with a SHA-1 of 5 KB; BearSSL's has 1. */
static void accept_value(const char *key, char out[B64_LEN(br_sha1_SIZE) + 1])
{
	unsigned char hash[br_sha1_SIZE];
	br_sha1_context c;

	br_sha1_init(&c);
	br_sha1_update(&c, key, KEY_LEN);
	br_sha1_update(&c, GUID, sizeof(GUID) - 1);
	br_sha1_out(&c, hash);
	b64_encode(hash, sizeof(hash), out);
}

/* 426 says what would be taken instead. */
static void want_upgrade(struct httpd_req *r, const char *detail)
{
	ignore_result(httpd_add_header(r, "Upgrade", "websocket"));
	ignore_result(httpd_add_header(r, "Sec-WebSocket-Version", "13"));
	httpd_reply_error(r, 426, "%s", detail);
}

bool ws_handshake(struct httpd_req *r)
{
	const char *key = httpd_header(r, "Sec-WebSocket-Key");
	const char *version = httpd_header(r, "Sec-WebSocket-Version");
	bool good = false;
	char accept[B64_LEN(br_sha1_SIZE) + 1];

	if (!asks_for_websocket(r))
		want_upgrade(r, "this route speaks WebSocket");
	else if (!version || strcmp(version, "13") != 0)
		want_upgrade(r, "WebSocket version 13 is spoken here");
	else if (!key_is_valid(key) || httpd_header(r, "Transfer-Encoding") ||
		 httpd_content_length(r) > 0)
		httpd_reply_error(r, 400, "invalid WebSocket handshake");
	else if (!origin_is_ours(r))
		httpd_reply_error(r, 403, "WebSockets from pages of another origin are refused");
	else
		good = true;
	if (!good)
		return false;
	accept_value(key, accept);
	if (httpd_add_header(r, "Sec-WebSocket-Accept", accept) == 0)
		return true;
	httpd_reply_error(r, 503, "out of memory");
	return false;
}
