/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "host/proxy/guard.h"
#include "host/proxy/proxy_int.h"

/*
 * What is sent to the sandbox's endpoint, and nowhere else: the URL is the route's, and what the client has asked for goes into the request
 * line alone (CURLOPT_REQUEST_TARGET), so that nothing of it can become a host. No redirect is followed.
 *
 * libcurl sends a request again whose kept connection turns out dead. That is only left to it where it cannot be told from the first time: a method
 * that changes nothing the second time, without a body. Anything else gets a new connection.
 *
 * A WebSocket is for libcurl an upload without an end: "Transfer-Encoding:" without a value keeps it from framing what follows the head.
 */

#define CONNECT_MS 15000L
#define LIST_MAX   (16U << 10)
#define FIELD_MAX  (64U << 10)

/* --- fields of the request --- */

struct list {
	const char *name;
	struct buf *out;
};

static int on_list(void *arg, const char *name, const char *value)
{
	struct list *l = arg;

	if (strcasecmp(name, l->name) != 0)
		return 0;
	return buf_addf(l->out, "%s%s", l->out->len ? ", " : "", value);
}

int request_list(struct httpd_req *r, const char *name, struct buf *out)
{
	struct list l = { name, out };

	return httpd_each_header(r, on_list, &l);
}

bool request_is_websocket(struct httpd_req *r)
{
	AUTO_BUF upgrade, connection;

	buf_init(&upgrade, LIST_MAX);
	buf_init(&connection, LIST_MAX);
	return httpd_is_http11(r) && !strcmp(httpd_method(r), "GET") &&
	       request_list(r, "Upgrade", &upgrade) == 0 &&
	       request_list(r, "Connection", &connection) == 0 &&
	       guard_has_token(upgrade.p, "websocket") && guard_has_token(connection.p, "upgrade");
}

bool request_is_private(const struct exchange *x, const char *name, const char *connection)
{
	const char *reserved = x->port->route.reserved;

	return guard_hop_by_hop(name, connection) ||
	       (reserved && !strncasecmp(name, reserved, strlen(reserved)));
}

int request_here(const struct exchange *x, struct buf *out)
{
	const char *host = httpd_header(x->r, "Host"), *at = x->port->spec.address;

	if (host)
		return buf_adds(out, host);
	return buf_addf(out, strchr(at, ':') ? "[%s]:%u" : "%s:%u", at, x->port->spec.local);
}

const char *request_there(const struct exchange *x)
{
	return strstr(x->port->route.url, "://") + 3;
}

/* --- fields of what is sent --- */

struct fields {
	struct exchange *x;
	const char *connection;
	bool accept;
};

static int add(struct exchange *x, const char *line)
{
	struct curl_slist *l = curl_slist_append(x->heads, line);

	if (!l)
		return -ENOMEM;
	x->heads = l;
	return 0;
}

static int addf(struct exchange *x, const char *name, const char *value)
{
	AUTO_BUF b;
	int r;

	buf_init(&b, FIELD_MAX);
	/* libcurl's way to say that there is no value */
	r = *value ? buf_addf(&b, "%s: %s", name, value) : buf_addf(&b, "%s;", name);
	return r < 0 ? r : add(x, b.p);
}

/* The page's own origin is the sandbox's for what runs there: it sees the endpoint as its host, and plain HTTP. */
static int add_origin(struct exchange *x, const char *value)
{
	AUTO_BUF here, mine, there;
	int r;

	buf_init(&here, FIELD_MAX);
	buf_init(&mine, FIELD_MAX);
	buf_init(&there, FIELD_MAX);
	r = request_here(x, &here);
	if (r == 0)
		r = buf_addf(&mine, "http://%s", here.p);
	if (r == 0)
		r = buf_addf(&there, "http://%s", request_there(x));
	if (r < 0)
		return r;
	return addf(x, "Origin", strcasecmp(value, mine.p) == 0 ? there.p : value);
}

static int on_field(void *arg, const char *name, const char *value)
{
	struct fields *f = arg;
	static const char *const ours[] = { "Host", "Content-Length", "Expect" };

	for (size_t i = 0; i < ARRAY_LEN(ours); i++)
		if (!strcasecmp(name, ours[i]))
			return 0;
	if (request_is_private(f->x, name, f->connection) ||
	    (f->x->ws && !strcasecmp(name, "Sec-WebSocket-Protocol")))
		return 0;
	f->accept = f->accept || !strcasecmp(name, "Accept");
	if (!strcasecmp(name, "Origin"))
		return add_origin(f->x, value);
	return addf(f->x, name, value);
}

/* The platform's own come first among those that OURS begins with. */
static int add_protocols(struct exchange *x)
{
	const char *ours = x->port->route.protocols;
	AUTO_BUF asked, mark, all;
	int r;

	buf_init(&asked, LIST_MAX);
	buf_init(&mark, LIST_MAX);
	buf_init(&all, FIELD_MAX);
	r = request_list(x->r, "Sec-WebSocket-Protocol", &asked);
	if (r == 0)
		r = ours ? buf_add(&mark, ours, strcspn(ours, ",")) : buf_adds(&mark, "\n");
	if (r == 0)
		r = guard_offer(asked.p, mark.p, ours, &all);
	if (r == 0 && all.len)
		r = addf(x, "Sec-WebSocket-Protocol", all.p);
	return r;
}

static int add_ours(struct exchange *x)
{
	const struct backend_route *o = &x->port->route;
	int r = add(x, "Expect:");

	if (r == 0 && x->ws) {
		r = add(x, "Connection: Upgrade");
		if (r == 0)
			r = add(x, "Upgrade: websocket");
		if (r == 0)
			r = add(x, "Transfer-Encoding:");
		if (r == 0)
			r = add_protocols(x);
	}
	if (r == 0 && !x->has_body && httpd_content_length(x->r) == 0)
		r = add(x, "Content-Length: 0");
	for (size_t i = 0; r == 0 && o->headers[i] && !(x->ws && o->protocols); i++)
		r = add(x, o->headers[i]);
	return r;
}

static int set_heads(struct exchange *x)
{
	struct fields f = { .x = x };
	AUTO_BUF connection;
	int r;

	buf_init(&connection, LIST_MAX);
	r = request_list(x->r, "Connection", &connection);
	f.connection = connection.p;
	if (r == 0)
		r = httpd_each_header(x->r, on_field, &f);
	if (r == 0 && !f.accept)
		r = add(x, "Accept:"); /* libcurl would invent one */
	if (r == 0)
		r = add_ours(x);
	if (r == 0 && curl_easy_setopt(x->io.easy, CURLOPT_HTTPHEADER, x->heads) != CURLE_OK)
		r = -ENOMEM;
	return r;
}

/* --- the handle --- */

static bool may_reuse(const struct exchange *x)
{
	static const char *const safe[] = { "GET", "HEAD", "OPTIONS", "PUT", "DELETE" };

	for (size_t i = 0; !x->has_body && !x->ws && !x->fresh && i < ARRAY_LEN(safe); i++)
		if (!strcmp(httpd_method(x->r), safe[i]))
			return true;
	return false;
}

static bool set_body(const struct exchange *x)
{
	CURL *c = x->io.easy;
	int64_t length = x->ws ? -1 : httpd_content_length(x->r);

	if (!strcmp(httpd_method(x->r), "HEAD"))
		return curl_easy_setopt(c, CURLOPT_NOBODY, 1L) == CURLE_OK;
	if (!x->has_body && !x->ws)
		return true;
	return curl_easy_setopt(c, CURLOPT_UPLOAD, 1L) == CURLE_OK &&
	       curl_easy_setopt(c, CURLOPT_UPLOAD_BUFFERSIZE, PROXY_PIECE) == CURLE_OK &&
	       curl_easy_setopt(c, CURLOPT_INFILESIZE_LARGE, (curl_off_t)length) == CURLE_OK;
}

int request_set(struct exchange *x)
{
	CURL *c = x->io.easy;
	int r = set_heads(x);

	if (r < 0)
		return r;
	if (!set_body(x) || tls_use(proxy_of(x)->tls, c) < 0 ||
	    curl_easy_setopt(c, CURLOPT_URL, x->port->route.url) != CURLE_OK ||
	    curl_easy_setopt(c, CURLOPT_REQUEST_TARGET, httpd_target(x->r)) != CURLE_OK ||
	    curl_easy_setopt(c, CURLOPT_CUSTOMREQUEST, httpd_method(x->r)) != CURLE_OK ||
	    curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "https") != CURLE_OK ||
	    curl_easy_setopt(c, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1) != CURLE_OK ||
	    curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L) != CURLE_OK ||
	    curl_easy_setopt(c, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L) != CURLE_OK ||
	    curl_easy_setopt(c, CURLOPT_CONNECTTIMEOUT_MS, CONNECT_MS) != CURLE_OK ||
	    curl_easy_setopt(c, CURLOPT_TCP_KEEPALIVE, 1L) != CURLE_OK ||
	    curl_easy_setopt(c, CURLOPT_BUFFERSIZE, PROXY_PIECE) != CURLE_OK ||
	    curl_easy_setopt(c, CURLOPT_FRESH_CONNECT, (long)!may_reuse(x)) != CURLE_OK ||
	    curl_easy_setopt(c, CURLOPT_FORBID_REUSE, (long)x->ws) != CURLE_OK)
		return -ENOMEM;
	return 0;
}
