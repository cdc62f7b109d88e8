/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "host/net/why.h"
#include "host/proxy/guard.h"
#include "host/proxy/proxy_int.h"
#include "lib/str.h"

/* What comes back, from its head on. The sandbox is not trusted: its heads have a cap, and what it says about the connection is not passed on. */

#define REFUSAL_MAX 128
#define AGAIN_NS    (PROXY_SECOND / 2)
#define START_NS    (30LL * PROXY_SECOND) /* that a sandbox may take until somebody listens */
#define CUT	    "the sandbox's endpoint closed the connection"

/* --- the head, to the client --- */

static void put_location(const struct exchange *x, struct MHD_Response *m, const char *name,
			 const char *value)
{
	AUTO_BUF here, url;

	buf_init(&here, PROXY_HEAD_MAX);
	buf_init(&url, 2 * PROXY_HEAD_MAX);
	if (request_here(x, &here) == 0 &&
	    guard_location(value, request_there(x), here.p, &url) == 0)
		(void)httpd_put_header(m, name, url.p ? url.p : "");
}

/* Only what the client itself has offered: the endpoint may choose one of ours. */
static bool was_offered(const struct exchange *x, const char *protocol)
{
	AUTO_BUF offered;

	buf_init(&offered, PROXY_HEAD_MAX);
	return request_list(x->r, "Sec-WebSocket-Protocol", &offered) == 0 &&
	       guard_has_token(offered.p, protocol);
}

static void put(const struct exchange *x, struct MHD_Response *m, const struct curl_header *h,
		const char *connection)
{
	if (request_is_private(x, h->name, connection) || !strcasecmp(h->name, "Content-Length"))
		return;
	if (!strcasecmp(h->name, "Sec-WebSocket-Protocol") && !was_offered(x, h->value))
		return;
	if (!strcasecmp(h->name, "Location") || !strcasecmp(h->name, "Content-Location"))
		put_location(x, m, h->name, h->value);
	else
		(void)httpd_put_header(m, h->name, h->value); /* what it refuses is no header */
}

/* The field after LAST; NULL = the first, or none is left. Those of a 101 stand behind those of what came before it. */
static struct curl_header *next_field(const struct exchange *x, struct curl_header *last)
{
	unsigned origin = x->status == 101 ? CURLH_1XX : CURLH_HEADER;
	struct curl_header *h = curl_easy_nextheader(x->io.easy, origin, -1, last);

	for (size_t i = 0; !last && h && origin == CURLH_1XX && i < x->hints; i++)
		h = curl_easy_nextheader(x->io.easy, origin, -1, h);
	return h;
}

bool answer_is_websocket(const struct exchange *x)
{
	struct curl_header *h = NULL;

	while ((h = next_field(x, h)))
		if (!strcasecmp(h->name, "Upgrade") && !strcasecmp(h->value, "websocket"))
			return true;
	return false;
}

static void on_headers(void *arg, struct MHD_Response *m)
{
	const struct exchange *x = arg;
	struct curl_header *h = NULL;
	AUTO_BUF connection;

	buf_init(&connection, PROXY_HEAD_MAX);
	while ((h = next_field(x, h)))
		if (!strcasecmp(h->name, "Connection"))
			ignore_result(buf_addf(&connection, "%s,", h->value)); /* it fits */
	while ((h = next_field(x, h)))
		put(x, m, h, connection.p);
}

void answer_headers(struct exchange *x)
{
	httpd_on_headers(x->r, on_headers, x);
}

/* --- the body, to the client --- */

static ssize_t pull(void *arg, char *p, size_t max)
{
	struct exchange *x = arg;
	size_t n;

	if (x->down.len <= PROXY_DOWN_MAX / 2)
		exchange_resume_recv(x); /* may put something into it */
	n = ring_get(&x->down, p, max);
	if (n &&
	    x->gone.loop) /* it has only ended its direction: it reads, and one that does not fails the sending */
		loop_arm(proxy_of(x)->c.loop, &x->gone, PROXY_GONE_NS);
	if (n)
		return (ssize_t)n;
	if (x->complete && !exchange_goes_on(x))
		return HTTPD_PULL_END;
	if (x->complete || !x->broken)
		return HTTPD_PULL_LATER;
	httpd_reset(x->r);
	return HTTPD_PULL_ABORT;
}

static bool has_no_body(const struct exchange *x)
{
	return x->status == 204 || x->status == 304;
}

static void reply(struct exchange *x)
{
	x->replied = true;
	loop_disarm(&x->limit);
	answer_headers(x);
	httpd_reply_stream(x->r, (int)x->status, NULL, has_no_body(x) ? 0 : x->length, pull, x);
}

/* The head is there. The client may still be sending, and wait for room that nobody makes any more. */
static void begin(struct exchange *x)
{
	x->stage = STAGE_ANSWER;
	reply(x);
	x->up_short = false;
	httpd_wake(x->r);
}

/* --- what may be the endpoint's --- */

static bool may_be_endpoints(const struct exchange *x)
{
	if (x->status == 403)
		return x->port->route.refusals && x->length <= REFUSAL_MAX &&
		       strcmp(httpd_method(x->r), "HEAD") != 0;
	return x->status == 502 && x->length == 0;
}

static bool is_refusal(const struct exchange *x, const char *text)
{
	for (const char *const *r = x->port->route.refusals; r && *r; r++)
		if (!strcmp(*r, text))
			return true;
	return false;
}

/* All that was sent is to be sent again, so that none of it may make room for more. */
static void wait_for(struct exchange *x, int64_t ns)
{
	x->stage = STAGE_WAITING;
	x->up_at = 0;
	loop_arm(proxy_of(x)->c.loop, &x->limit, ns);
}

static void refused(struct exchange *x, const char *text)
{
	struct proxy *p = proxy_of(x);

	bool coming = x->generation != p->generation || proxy_renew_refused(p);

	if (x->renewed || !coming || !exchange_can_repeat(x)) {
		exchange_fail(
			x, 502,
			"the sandbox's endpoint refuses asb's token (%s): send the request again",
			text);
		return;
	}
	x->renewed = x->fresh = true; /* who was refused may find the old connection closing */
	if (x->generation != p->generation) {
		exchange_send(x);
		return;
	}
	wait_for(x, PROXY_TOKEN_NS);
}

/* Nobody there: at once where the sandbox is known to run. */
static void nobody(struct exchange *x)
{
	struct proxy *p = proxy_of(x);

	if (!p->running && exchange_can_repeat(x) && loop_now() - x->begun_ns < START_NS) {
		x->retry = true;
		wait_for(x, AGAIN_NS);
		return;
	}
	exchange_fail(
		x, 502,
		"nothing answers on port %u in %s (its endpoint says 502): does something listen "
		"there, and speak HTTP?",
		x->port->spec.remote, p->c.name);
}

/* The whole of it has been collected. */
static void held(struct exchange *x)
{
	char text[REFUSAL_MAX + 1] = "";
	const char *p;
	size_t n = ring_peek(&x->down, &p);

	if (n < sizeof(text))
		ignore_result(
			str_format(text, sizeof(text), "%.*s", (int)n, n ? p : "")); /* it fits */
	if (x->status == 502) {
		nobody(x);
	} else if (is_refusal(x, text)) {
		refused(x, text);
	} else {
		x->complete = true;
		begin(x);
	}
}

/* --- from libcurl --- */

static int on_status(struct exchange *x)
{
	curl_off_t length = -1;

	(void)curl_easy_getinfo(x->io.easy, CURLINFO_RESPONSE_CODE, &x->status);
	if (x->status < 200 && x->status != 101) {
		x->hints = x->fields;
		return 0; /* another head follows, within the same limits */
	}
	x->head_done = true;
	(void)curl_easy_getinfo(x->io.easy, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
	x->length = length;
	if (x->status == 101)
		return x->ws ? upgrade_begin(x) : -EPROTO;
	if (x->ws) { /* it is an ordinary answer, and our upload without an end would go on */
		x->up_eof = true;
		exchange_resume_send(x);
	}
	if (may_be_endpoints(x)) {
		x->stage = STAGE_HELD;
		return 0;
	}
	x->complete = x->length == 0;
	begin(x);
	return 0;
}

static bool is_too_large(const struct exchange *x)
{
	return x->head_bytes > PROXY_HEAD_MAX || x->fields > PROXY_FIELDS_MAX;
}

/* P is a status line, a field or what ends a head (CURLOPT_HEADERFUNCTION(3)): each is given in one piece. */
static size_t head_cb(char *p, size_t size, size_t n, void *arg)
{
	struct exchange *x = arg;
	bool ends = size * n == 1 || (size * n == 2 && p[0] == '\r');

	n *= size;
	x->head_bytes += n;
	if (x->in_head && !x->head_done && !ends && *p != ' ' && *p != '\t')
		x->fields++; /* none is the continuation of one */
	x->in_head = !ends;
	if (is_too_large(x))
		return 0;
	if (!x->head_done && ends && on_status(x) < 0)
		return 0;
	return n; /* what comes behind the body is dropped */
}

static size_t body_cb(char *p, size_t size, size_t n, void *arg)
{
	struct exchange *x = arg;

	n *= size;
	if (ring_put(&x->down, p, n) < 0) {
		x->recv_paused = true;
		return CURL_WRITEFUNC_PAUSE;
	}
	x->received += (int64_t)n;
	if (x->stage == STAGE_HELD && x->down.len > REFUSAL_MAX)
		begin(x);
	/* libcurl may still wait to send the rest of the request */
	if (x->stage == STAGE_ANSWER && x->received == x->length)
		x->complete = true;
	if (x->stage == STAGE_RAW)
		upgrade_turn(x);
	else if (x->replied)
		httpd_wake(x->r);
	return n;
}

int answer_set(struct exchange *x)
{
	CURL *c = x->io.easy;

	return curl_easy_setopt(c, CURLOPT_HEADERFUNCTION, head_cb) == CURLE_OK &&
			       curl_easy_setopt(c, CURLOPT_HEADERDATA, x) == CURLE_OK &&
			       curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, body_cb) == CURLE_OK &&
			       curl_easy_setopt(c, CURLOPT_WRITEDATA, x) == CURLE_OK
		       ? 0
		       : -ENOMEM;
}

static void explain(struct exchange *x, CURLcode code)
{
	const char *url = x->port->route.url;
	char why[WHY_LEN];

	why_say(code, "", url, why);
	if (is_too_large(x))
		exchange_fail(x, 502,
			      "the head of the answer is larger than %u bytes, or has more than %d "
			      "fields",
			      PROXY_HEAD_MAX, PROXY_FIELDS_MAX);
	else if (code == CURLE_COULDNT_CONNECT || code == CURLE_COULDNT_RESOLVE_HOST ||
		 code == CURLE_COULDNT_RESOLVE_PROXY)
		exchange_fail(x, 502, "cannot connect to the sandbox's endpoint %.200s: %s", url,
			      why);
	else if (code == CURLE_OPERATION_TIMEDOUT)
		exchange_fail(x, 504, "the sandbox's endpoint %.200s does not answer", url);
	else if (code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_CONNECT_ERROR)
		exchange_fail(x, 502, "TLS with the sandbox's endpoint %.200s: %s", url, why);
	else
		exchange_fail(x, 502, CUT " before it answered (%s)",
			      /* what BearSSL's part of libcurl says of an end without a word */
			      code == CURLE_READ_ERROR ? "closed" : why);
}

/* The endpoint had closed a kept connection, which libcurl knows how to mend but for BearSSL's way to say it. Only
 * what may be sent twice is sent on kept ones. */
static bool was_dead(const struct exchange *x)
{
	long made = 1;

	(void)curl_easy_getinfo(x->io.easy, CURLINFO_NUM_CONNECTS, &made);
	return made == 0 && x->stage == STAGE_SENT && x->head_bytes == 0 && !x->fresh;
}

void answer_done(struct exchange *x, CURLcode code)
{
	/* Whatever became of the rest of the request. */
	if (x->stage == STAGE_ANSWER && x->complete) {
		if (x->replied)
			httpd_wake(x->r); /* the end of the answer may wait for this */
		return;
	}
	if (code != CURLE_OK && was_dead(x)) {
		x->fresh = true;
		exchange_send(x);
		return;
	}
	if (code != CURLE_OK) {
		explain(x, code);
	} else if (x->stage == STAGE_HELD) {
		held(x);
	} else {
		x->complete = true;
		if (x->stage == STAGE_RAW)
			upgrade_turn(x);
		else if (x->replied)
			httpd_wake(x->r);
	}
}
