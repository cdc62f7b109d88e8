/* SPDX-License-Identifier: Apache-2.0 */
#include "host/aws/fetch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "host/backend.h"
#include "host/net/curlio.h"
#include "host/net/tls.h"
#include "host/net/why.h"
#include "lib/loop.h"
#include "lib/str.h"
#include "version.h"

#define TURN_MS 200 /* how long a cancellation may go unseen */

struct fetch {
	struct loop loop;
	struct curlio *io; /* owned */
	const char *ca_bundle;
	const volatile sig_atomic_t *cancel;
};

struct exchange {
	struct curlio_call call;
	struct curl_slist *headers; /* owned */
	struct buf *body;
	char why[CURL_ERROR_SIZE];
	bool over, too_big;
	CURLcode code;
};

int fetch_open(const char *ca_bundle, struct fetch **ret, struct err *e)
{
	struct fetch *f = calloc(1, sizeof(*f));
	int r = f ? loop_init(&f->loop) : -ENOMEM;

	if (r < 0) {
		free(f);
		return err_set(e, ERR_INTERNAL, -r, "starting the HTTP client");
	}
	f->ca_bundle = ca_bundle;
	r = curlio_open(&f->loop, &f->io);
	if (r < 0) {
		fetch_free(f);
		return err_set(e, ERR_INTERNAL, -r, "starting the HTTP client");
	}
	*ret = f;
	return 0;
}

void fetch_free(struct fetch *f)
{
	if (!f)
		return;
	curlio_free(f->io);
	loop_done(&f->loop);
	free(f);
}

void fetch_cancel(struct fetch *f, const volatile sig_atomic_t *cancel)
{
	f->cancel = cancel;
}

void fetch_reply_done(struct fetch_reply *r)
{
	buf_done(&r->body);
}

static bool cancelled(const struct fetch *f)
{
	return f->cancel && *f->cancel;
}

int fetch_sleep(struct fetch *f, int64_t ns)
{
	int64_t until = loop_now() + ns, left;

	while ((left = until - loop_now()) > 0) {
		int64_t ms = left / 1000000 + 1;
		int r = loop_once(&f->loop, ms < TURN_MS ? (int)ms : TURN_MS);

		backend_turn();
		if (r < 0)
			return r;
		if (cancelled(f))
			return -EINTR;
	}
	return cancelled(f) ? -EINTR : 0;
}

/* --- one exchange --- */

static void on_done(struct curlio_call *c, CURLcode code)
{
	struct exchange *x = c->arg;

	x->over = true;
	x->code = code;
}

static size_t on_body(char *p, size_t size, size_t n, void *arg)
{
	struct exchange *x = arg;

	n *= size;
	if (buf_add(x->body, p, n) == 0)
		return n;
	x->too_big = true;
	return 0; /* CURLE_WRITE_ERROR */
}

static bool set_headers(struct exchange *x, const struct fetch_request *q)
{
	bool has_body = q->body || strcmp(q->method, "POST") == 0 || strcmp(q->method, "PUT") == 0;
	struct curl_slist *l = curl_slist_append(NULL, "Expect:");

	x->headers = l;
	for (size_t i = 0; l && q->headers && q->headers[i] && i < FETCH_HEADERS_MAX; i++)
		l = curl_slist_append(x->headers, q->headers[i]);
	/* libcurl would invent a type for a body; where there is one, it is among the headers. */
	if (l && has_body && !q->body)
		l = curl_slist_append(x->headers, "Content-Type:");
	if (!l || curl_easy_setopt(x->call.easy, CURLOPT_HTTPHEADER, x->headers) != CURLE_OK)
		return false;
	if (!has_body)
		return strcmp(q->method, "HEAD") != 0 ||
		       curl_easy_setopt(x->call.easy, CURLOPT_NOBODY, 1L) == CURLE_OK;
	return curl_easy_setopt(x->call.easy, CURLOPT_POST, 1L) == CURLE_OK &&
	       curl_easy_setopt(x->call.easy, CURLOPT_POSTFIELDS, q->body ? q->body : "") ==
		       CURLE_OK &&
	       curl_easy_setopt(x->call.easy, CURLOPT_POSTFIELDSIZE_LARGE,
				(curl_off_t)q->body_len) == CURLE_OK;
}

/* For libcurl 0 is no limit at all: less than a millisecond is one. */
static long limit_ms(int64_t ns)
{
	return ns > 1000000 ? (long)(ns / 1000000) : 1;
}

static bool set_options(struct exchange *x, const struct fetch_request *q)
{
	CURL *c = x->call.easy;

	return set_headers(x, q) && curl_easy_setopt(c, CURLOPT_URL, q->url) == CURLE_OK &&
	       curl_easy_setopt(c, CURLOPT_CUSTOMREQUEST, q->method) == CURLE_OK &&
	       curl_easy_setopt(c, CURLOPT_PATH_AS_IS, 1L) == CURLE_OK &&
	       curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L) == CURLE_OK &&
	       curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "http,https") == CURLE_OK &&
	       curl_easy_setopt(c, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1) == CURLE_OK &&
	       (!q->direct || curl_easy_setopt(c, CURLOPT_PROXY, "") == CURLE_OK) &&
	       curl_easy_setopt(c, CURLOPT_USERAGENT, "asb/" ASB_VERSION) == CURLE_OK &&
	       curl_easy_setopt(c, CURLOPT_CONNECTTIMEOUT_MS, limit_ms(q->connect_ns)) ==
		       CURLE_OK &&
	       curl_easy_setopt(c, CURLOPT_TIMEOUT_MS, limit_ms(q->limit_ns)) == CURLE_OK &&
	       curl_easy_setopt(c, CURLOPT_ERRORBUFFER, x->why) == CURLE_OK &&
	       curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, on_body) == CURLE_OK &&
	       curl_easy_setopt(c, CURLOPT_WRITEDATA, x) == CURLE_OK;
}

static int prepare(const struct fetch *f, struct exchange *x, const struct fetch_request *q,
		   struct err *e)
{
	struct tls *t;
	int r;

	if (!x->call.easy || !set_options(x, q))
		return err_set(e, ERR_INTERNAL, ENOMEM, "preparing a request");
	if (!str_starts(q->url, "https://"))
		return 0;
	r = tls_trust(f->ca_bundle, &t, e);
	if (r == 0 && tls_use(t, x->call.easy) < 0)
		r = err_set(e, ERR_INTERNAL, ENOMEM, "preparing TLS");
	return r;
}

/* The host part of URL, for messages. */
static int host_of(const char *url)
{
	return (int)strcspn(url, "/");
}

static int explain(const struct exchange *x, const struct fetch_request *q, struct err *e)
{
	const char *host = strstr(q->url, "://") + 3;
	int errnum = ECONNRESET;
	enum err_code code = ERR_UNAVAILABLE;
	char why[WHY_LEN];

	switch ((int)x->code) { /* of the many codes, those that mean something to us */
	case CURLE_COULDNT_RESOLVE_HOST:
	case CURLE_COULDNT_RESOLVE_PROXY:
	case CURLE_COULDNT_CONNECT:
		errnum = ECONNREFUSED;
		break;
	case CURLE_OPERATION_TIMEDOUT:
		errnum = ETIMEDOUT;
		code = ERR_TIMEOUT;
		break;
	case CURLE_SSL_CONNECT_ERROR:
	case CURLE_PEER_FAILED_VERIFICATION:
	case CURLE_SSL_CACERT_BADFILE:
	case CURLE_SSL_CIPHER:
		errnum = EPROTO;
		code = ERR_DENIED;
		break;
	case CURLE_WRITE_ERROR:
		if (x->too_big)
			errnum = EMSGSIZE;
		break;
	default:
		break;
	}
	why_say(x->code, x->why, q->direct ? NULL : q->url, why);
	(void)err_set(e, code, 0, "%.*s: %s", host_of(host), host, why);
	if (e)
		e->errnum = errnum;
	return -errnum;
}

/* --- the answer --- */

static const char *header(CURL *easy, const char *name)
{
	struct curl_header *h = NULL;

	return curl_easy_header(easy, name, 0, CURLH_HEADER, -1, &h) == CURLHE_OK ? h->value : NULL;
}

/* "Sun, 29 Nov 2026 12:00:00 GMT" (RFC 9110 §5.6.7); 0 for anything else. */
static int64_t read_date(const char *s)
{
	struct tm tm = { .tm_isdst = 0 };
	const char *end = s ? strptime(s, "%a, %d %b %Y %H:%M:%S GMT", &tm) : NULL;

	return end && !*end ? (int64_t)timegm(&tm) : 0;
}

static void read_headers(CURL *easy, struct fetch_reply *ret)
{
	const char *id = header(easy, "x-amzn-requestid"), *v;
	uint64_t seconds;
	long status = 0;

	(void)curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
	ret->status = (int)status;
	if (!id)
		id = header(easy, "x-amz-request-id");
	v = header(easy, "x-amzn-errortype");
	/* cut when too long: they are for people, and for comparing with short names */
	ignore_result(str_format(ret->request_id, sizeof(ret->request_id), "%s", id ? id : ""));
	ignore_result(str_format(ret->error_type, sizeof(ret->error_type), "%s", v ? v : ""));
	v = header(easy, "etag");
	if (!v || str_format(ret->etag, sizeof(ret->etag), "%s", v) < 0)
		ret->etag[0] = '\0';
	ret->date_s = read_date(header(easy, "date"));
	v = header(easy, "retry-after");
	ret->retry_after_s = v && str_to_u64(v, 0, 86400, &seconds) == 0 ? (int)seconds : -1;
}

static int wait_for(struct fetch *f, const struct exchange *x, const struct fetch_request *q,
		    struct err *e)
{
	while (!x->over) {
		int r = loop_once(&f->loop, TURN_MS);

		backend_turn();
		if (r == 0 && !cancelled(f))
			continue;
		if (r == 0)
			r = -EINTR;
		return err_set(e, ERR_UNAVAILABLE, -r, "waiting for an answer");
	}
	return x->code == CURLE_OK ? 0 : explain(x, q, e);
}

int fetch_do(struct fetch *f, const struct fetch_request *q, struct fetch_reply *ret, struct err *e)
{
	struct exchange x = { .call = { .done = on_done }, .body = &ret->body };
	bool added = false;
	int r;

	*ret = (struct fetch_reply){ .retry_after_s = -1 };
	buf_init(&ret->body, FETCH_BODY_MAX);
	x.call.arg = &x;
	x.call.easy = curl_easy_init();
	r = prepare(f, &x, q, e);
	if (r == 0) {
		r = curlio_add(f->io, &x.call);
		added = r == 0;
		r = added ? wait_for(f, &x, q, e)
			  : err_set(e, ERR_INTERNAL, -r, "sending a request");
	}
	if (r == 0)
		read_headers(x.call.easy, ret);
	if (added)
		curlio_remove(f->io, &x.call);
	curl_easy_cleanup(x.call.easy);
	curl_slist_free_all(x.headers);
	return r;
}
