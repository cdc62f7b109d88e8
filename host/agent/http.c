/* SPDX-License-Identifier: Apache-2.0 */
#include "host/agent/http.h"

#include <curl/curl.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "host/backend.h"
#include "host/net/curlio.h"
#include "host/net/tls.h"
#include "host/net/why.h"
#include "lib/fd.h"
#include "lib/proto.h"
#include "lib/str.h"

/*
 * The connection is not libcurl's to make. CURL_SOCKOPT_ALREADY_CONNECTED is meant for that, but
 * curl 7.88 (Debian 12) calls connect(2) nevertheless (curl issue 10626), and libcurl only uses a
 * connection again whose peer has an IP address. So CURLOPT_OPENSOCKETFUNCTION opens the real
 * stream and hands out a placeholder: a UDP socket, for which connect(2) to the URL's 127.0.0.1
 * succeeds at once and sends nothing. CURLOPT_PREREQFUNCTION, which runs before the first byte is
 * written, then puts the stream in its place by dup3(2). No proxy of the environment is used.
 *
 * Where the backend has a route, libcurl connects by itself, with TLS. Between us and the agent is then the platform's proxy, whose own
 * answers are no JSON: "not let in" (403) is asked again once with new credentials, "nobody there" (502 and the like) is
 * what a connection that fails is without a proxy.
 */

#define URL_BASE   "http://127.0.0.1:8080"
#define BUFFER_LEN (256L << 10)

struct http {
	struct curlio *io; /* owned */
	const struct backend *backend;
	const char *id; /* of the sandbox */
	struct backend_route route;
	struct tls *tls;	/* NULL: there is no route */
	struct err connect_err; /* of the last attempt that failed */
	struct http_call *calls;
};

struct http_call {
	struct http *http;
	struct http_spec spec;
	struct curlio_call io;	  /* its handle is owned */
	struct curl_slist *heads; /* owned */
	struct buf body;
	char why[CURL_ERROR_SIZE];
	int placeholder; /* libcurl's; -1 = none, or the stream is in its place already */
	int stream;	 /* owned; -1 = none */
	int data_error;	 /* what spec.data ended the call with */
	bool renewed;	 /* it was sent a second time, with new credentials */
	struct http_call *next;
};

/* --- the connection --- */

static curl_socket_t open_cb(void *arg, curlsocktype purpose, struct curl_sockaddr *addr)
{
	struct http_call *c = arg;
	struct http *h = c->http;
	struct err e = ERR_INIT;

	int64_t limit = c->spec.limit_ns > 0 && c->spec.limit_ns < HTTP_CONNECT_NS
				? c->spec.limit_ns
				: HTTP_CONNECT_NS;

	(void)purpose;
	(void)addr;
	fd_close(&c->stream);
	if (h->backend->connect(h->id, PROTO_AGENT_PORT, loop_now() + limit, &c->stream, NULL, &e) <
	    0) {
		h->connect_err = e;
		return CURL_SOCKET_BAD;
	}
	c->placeholder = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (c->placeholder < 0 || fd_set_nonblock(c->stream, true) < 0) {
		fd_close(&c->placeholder);
		return CURL_SOCKET_BAD;
	}
	return c->placeholder;
}

static int prereq_cb(void *arg, char *ip, char *local_ip, int port, int local_port)
{
	struct http_call *c = arg;
	int r = 0;

	(void)ip;
	(void)local_ip;
	(void)port;
	(void)local_port;
	if (c->stream < 0)
		return CURL_PREREQFUNC_OK; /* a connection that was used before */
	r = dup3(c->stream, c->placeholder, O_CLOEXEC);
	c->placeholder = -1;
	fd_close(&c->stream);
	return r < 0 ? CURL_PREREQFUNC_ABORT : CURL_PREREQFUNC_OK;
}

/* The answer's body is handed on as it comes. */
static bool is_streamed(const struct http_call *c)
{
	const char *want = c->spec.data_type, *type = NULL;
	long status = 0;

	(void)curl_easy_getinfo(c->io.easy, CURLINFO_RESPONSE_CODE, &status);
	if (!c->spec.data || (status != 200 && !(want && status == 201)))
		return false;
	if (want)
		(void)curl_easy_getinfo(c->io.easy, CURLINFO_CONTENT_TYPE, &type);
	return !want || (type && !strcmp(type, want));
}

static size_t write_cb(char *p, size_t size, size_t n, void *arg)
{
	struct http_call *c = arg;
	int r;

	n *= size;
	if (is_streamed(c))
		r = c->spec.data(c->spec.arg, p, n);
	else
		r = buf_add(&c->body, p, n);
	if (r == 0)
		return n;
	if (r == -EAGAIN)
		return CURL_WRITEFUNC_PAUSE;
	c->data_error = r;
	return 0; /* CURLE_WRITE_ERROR */
}

static size_t read_cb(char *p, size_t size, size_t n, void *arg)
{
	struct http_call *c = arg;
	ssize_t k = c->spec.read(c->spec.arg, p, size * n);

	if (k >= 0)
		return (size_t)k;
	if (k == -EAGAIN)
		return CURL_READFUNC_PAUSE;
	c->data_error = (int)k;
	return CURL_READFUNC_ABORT;
}

/* --- calls --- */

static void call_free(struct http_call *c)
{
	struct http_call **at = &c->http->calls;

	while (*at && *at != c)
		at = &(*at)->next;
	if (*at)
		*at = c->next;
	if (c->io.easy) {
		curlio_remove(c->http->io, &c->io);
		curl_easy_cleanup(c->io.easy);
	}
	curl_slist_free_all(c->heads);
	fd_close(&c->stream);
	buf_done(&c->body);
	free(c);
}

static void explain(const struct http_call *c, CURLcode code, struct err *e)
{
	char why[WHY_LEN];

	if (c->data_error) {
		(void)err_set(e, c->data_error == -EPROTO ? ERR_INTERNAL : ERR_IO, -c->data_error,
			      "reading the agent's answer");
	} else if (code == CURLE_COULDNT_CONNECT && c->http->connect_err.msg[0]) {
		*e = c->http->connect_err;
	} else if (c->http->tls &&
		   (code == CURLE_COULDNT_CONNECT || code == CURLE_COULDNT_RESOLVE_PROXY)) {
		why_say(code, c->why, c->http->route.url, why);
		(void)err_set(e, ERR_UNAVAILABLE, 0, "the sandbox's endpoint: %s", why);
		e->errnum = ECONNRESET; /* for who asks again, as a cut connection */
	} else if (code == CURLE_OPERATION_TIMEDOUT) {
		(void)err_set(e, ERR_TIMEOUT, ETIMEDOUT,
			      "the agent in the sandbox does not answer");
	} else if (code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_CONNECT_ERROR) {
		(void)err_set(e, ERR_DENIED, EPROTO, "%.200s (%s)", c->http->route.url,
			      curl_easy_strerror(code));
	} else {
		/* CURLE_READ_ERROR is what BearSSL's part of libcurl says of a connection that was closed without a word. */
		(void)err_set(e, ERR_UNAVAILABLE, ECONNRESET, "the connection to the agent (%s)",
			      code == CURLE_READ_ERROR ? "closed" : curl_easy_strerror(code));
	}
}

/* --- the platform's proxy --- */

/*
 * Agents that are not ours have text for a route that they lack, and for failing (500); the proxy's own 500 is empty. It has no 404 or
 * 405 of its own, as far as is known (400, 403, 429, 500, 502): one would pass for a route that the agent lacks, and nothing on
 * the wire would tell.
 */
static bool from_proxy(const struct http_call *c, long status)
{
	const char *type = NULL;

	if (!c->http->tls || status < 400 || status == 404 || status == 405 ||
	    (status == 500 && c->body.len))
		return false;
	(void)curl_easy_getinfo(c->io.easy, CURLINFO_CONTENT_TYPE, &type);
	return !type || !str_starts(type, "application/json");
}

static void explain_proxy(const struct http_call *c, long status, struct err *e)
{
	char text[80] = "";

	if (c->body.len < sizeof(text))
		ignore_result(str_format(text, sizeof(text), "%s", c->body.p ? c->body.p : ""));
	if (status == 403)
		(void)err_set(e, ERR_DENIED, EACCES, "the sandbox's endpoint refuses asb (%s)",
			      text);
	else if (status >= 500 || status == 429)
		(void)err_set(e, ERR_UNAVAILABLE, ECONNRESET,
			      "nothing answers behind the sandbox's endpoint (HTTP %ld)", status);
	else
		(void)err_set(e, ERR_INTERNAL, EPROTO, "the sandbox's endpoint: HTTP %ld %s",
			      status, text);
}

static bool set_heads(struct http_call *c);

/* Sends the call again as somebody who may. A body that was made while it was sent cannot be. */
static bool send_renewed(struct http_call *c)
{
	struct http *h = c->http;
	struct backend_route fresh = { .ca_bundle = NULL };

	if (c->renewed || c->spec.read ||
	    h->backend->route(h->id, &backend_agent_port, true, &fresh, NULL) < 0)
		return false;
	backend_route_done(&h->route);
	h->route = fresh;
	c->renewed = true;
	buf_clear(&c->body);
	curlio_remove(h->io, &c->io);
	/* Who was refused is best forgotten: the old connection may be about to close. */
	return set_heads(c) &&
	       curl_easy_setopt(c->io.easy, CURLOPT_FRESH_CONNECT, 1L) == CURLE_OK &&
	       curlio_add(h->io, &c->io) == 0;
}

static void end_call(struct curlio_call *io, CURLcode code)
{
	struct http_call *c = io->arg;
	struct http_spec s = c->spec;
	struct err e = ERR_INIT;
	struct buf body;
	long status = 0;

	(void)curl_easy_getinfo(c->io.easy, CURLINFO_RESPONSE_CODE, &status);
	if (code == CURLE_OK && status == 403 && from_proxy(c, status) && send_renewed(c))
		return;
	if (code != CURLE_OK) {
		explain(c, code, &e);
		status = 0;
	} else if (status == 0) { /* "HTTP/2 0" passes with libcurl */
		(void)err_set(&e, ERR_INTERNAL, EPROTO, "the agent's answer has no status");
	} else if (from_proxy(c, status)) {
		explain_proxy(c, status, &e);
		status = 0;
	}
	body = c->body;
	buf_init(&c->body, 0);
	call_free(c);
	s.done(s.arg, (int)status, &body, &e);
	buf_done(&body);
}

/* --- setting up --- */

static bool set_heads(struct http_call *c)
{
	bool body = c->spec.body || c->spec.read;
	struct curl_slist *l = curl_slist_append(NULL, "Expect:");
	char type[80];

	curl_slist_free_all(c->heads);
	c->heads = l;
	ignore_result(
		str_format(type, sizeof(type), "Content-Type: %s",
			   c->spec.type ? c->spec.type : "application/octet-stream")); /* it fits */
	if (l && body)
		l = curl_slist_append(c->heads, type);
	for (size_t i = 0; l && c->http->route.headers[i]; i++)
		l = curl_slist_append(c->heads, c->http->route.headers[i]);
	return l && curl_easy_setopt(c->io.easy, CURLOPT_HTTPHEADER, c->heads) == CURLE_OK;
}

static bool set_body(struct http_call *c)
{
	CURL *easy = c->io.easy;

	if (c->spec.read)
		return curl_easy_setopt(easy, CURLOPT_UPLOAD, 1L) == CURLE_OK &&
		       curl_easy_setopt(easy, CURLOPT_UPLOAD_BUFFERSIZE, BUFFER_LEN) == CURLE_OK &&
		       curl_easy_setopt(easy, CURLOPT_READFUNCTION, read_cb) == CURLE_OK &&
		       curl_easy_setopt(easy, CURLOPT_READDATA, c) == CURLE_OK;
	if (!c->spec.body)
		return true;
	return curl_easy_setopt(easy, CURLOPT_POST, 1L) == CURLE_OK &&
	       curl_easy_setopt(easy, CURLOPT_POSTFIELDS, c->spec.body) == CURLE_OK &&
	       curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)c->spec.body_len) ==
		       CURLE_OK;
}

/* Who connects, and how. */
static bool set_peer(struct http_call *c)
{
	CURL *easy = c->io.easy;

	if (c->http->tls)
		return tls_use(c->http->tls, easy) == 0 &&
		       curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, c->why) == CURLE_OK &&
		       curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "https") == CURLE_OK &&
		       /* an answer may take hours, which no router between may forget */
		       curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L) == CURLE_OK &&
		       curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS,
					(long)(HTTP_CONNECT_NS / 1000000)) == CURLE_OK;
	return curl_easy_setopt(easy, CURLOPT_PROXY, "") == CURLE_OK &&
	       curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http") == CURLE_OK &&
	       curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, open_cb) == CURLE_OK &&
	       curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, c) == CURLE_OK &&
	       curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, prereq_cb) == CURLE_OK &&
	       curl_easy_setopt(easy, CURLOPT_PREREQDATA, c) == CURLE_OK;
}

static bool set_options(struct http_call *c)
{
	CURL *easy = c->io.easy;
	AUTO_BUF url;

	buf_init(&url, 4096);
	if (buf_addf(&url, "%s%s", c->http->tls ? c->http->route.url : URL_BASE, c->spec.path) <
		    0 ||
	    !set_heads(c) || !set_body(c) || !set_peer(c))
		return false;
	(void)curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
	(void)curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, BUFFER_LEN);
	(void)curl_easy_setopt(easy, CURLOPT_FRESH_CONNECT, (long)c->spec.once);
	(void)curl_easy_setopt(easy, CURLOPT_FORBID_REUSE, (long)c->spec.once);
	(void)curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)(c->spec.limit_ns / 1000000));
	return curl_easy_setopt(easy, CURLOPT_URL, url.p) == CURLE_OK &&
	       curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, c->spec.method) == CURLE_OK &&
	       curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1) ==
		       CURLE_OK &&
	       curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, write_cb) == CURLE_OK &&
	       curl_easy_setopt(easy, CURLOPT_WRITEDATA, c) == CURLE_OK;
}

int http_start(struct http *h, const struct http_spec *s, struct http_call **ret, struct err *e)
{
	struct http_call *c = calloc(1, sizeof(*c));

	if (!c)
		return err_set(e, ERR_INTERNAL, ENOMEM, "asking the agent");
	c->http = h;
	c->spec = *s;
	c->placeholder = c->stream = -1;
	buf_init(&c->body, HTTP_REPLY_MAX);
	c->next = h->calls;
	h->calls = c;
	c->io.easy = curl_easy_init();
	c->io.done = end_call;
	c->io.arg = c;
	if (!c->io.easy || !set_options(c) || curlio_add(h->io, &c->io) < 0) {
		call_free(c);
		return err_set(e, ERR_INTERNAL, ENOMEM, "asking the agent");
	}
	*ret = c;
	return 0;
}

void http_cancel(struct http_call *c)
{
	if (c)
		call_free(c);
}

void http_resume(struct http_call *c)
{
	(void)curl_easy_pause(c->io.easy, CURLPAUSE_CONT);
	/* What was held back has been delivered by now; the socket is asked again by the next
	 * action. */
	curlio_kick(c->http->io);
}

int http_open(struct loop *l, const struct backend *b, const char *id, struct http **ret,
	      struct err *e)
{
	struct http *h = calloc(1, sizeof(*h));
	int r = 0;

	if (!h || curlio_open(l, &h->io) < 0) {
		free(h);
		return err_set(e, ERR_INTERNAL, ENOMEM, "starting the HTTP client");
	}
	h->backend = b;
	h->id = id;
	if (b->route)
		r = b->route(id, &backend_agent_port, false, &h->route, e);
	if (r == 0 && b->route)
		r = tls_trust(h->route.ca_bundle, &h->tls, e);
	if (r < 0) {
		http_free(h);
		return r;
	}
	*ret = h;
	return 0;
}

void http_free(struct http *h)
{
	if (!h)
		return;
	for (struct http_call *c = h->calls, *next; c; c = next) {
		next = c->next;
		call_free(c);
	}
	curlio_free(h->io);
	backend_route_done(&h->route);
	free(h);
}
