/* SPDX-License-Identifier: Apache-2.0 */
#include "host/aws/call.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/random.h>

#include "host/aws/aws.h"
#include "host/aws/retry.h"
#include "host/aws/sigv4.h"
#include "host/aws/xml.h"
#include "lib/loop.h"
#include "lib/str.h"

/*
 * Each attempt is signed anew: the time moves on, credentials may have been renewed and the clock corrected. Whether a request may be
 * sent twice is not asked: those that create something carry a client token, the others change nothing when repeated.
 */

#define URL_MAX	    (64U << 10)
#define HEADERS_MAX 12
#define HEADER_MAX  (16U << 10)

struct sending {
	struct aws *a;
	const struct aws_call *c;
	const char *region;
	struct buf base; /* URL of the endpoint */
	struct buf url, text[HEADERS_MAX];
	const char *headers[HEADERS_MAX + 1];
	size_t headers_len;
	bool own; /* the endpoint is AWS's */
	bool creds_renewed, clock_corrected;
	int64_t until;
};

void aws_answer_done(struct aws_answer *r)
{
	fetch_reply_done(&r->reply);
	cJSON_Delete(r->json);
	r->json = NULL;
}

/* --- making a request --- */

static int add_header(struct sending *s, const char *name, const char *value)
{
	struct buf *b = &s->text[s->headers_len];
	int r;

	if (s->headers_len == HEADERS_MAX || strpbrk(value, "\r\n"))
		return -EINVAL;
	buf_init(b, HEADER_MAX);
	r = buf_addf(b, "%s: %s", name, value);
	s->headers[s->headers_len++] = b->p;
	s->headers[s->headers_len] = NULL;
	return r;
}

static void clear_headers(struct sending *s)
{
	for (size_t i = 0; i < s->headers_len; i++) {
		if (s->text[i].p)
			explicit_bzero(s->text[i].p, s->text[i].len);
		buf_done(&s->text[i]);
	}
	s->headers_len = 0;
	s->headers[0] = NULL;
}

/* What libcurl will send as Host: the authority of the URL without a port that goes without saying. */
static int host_header(const char *url, struct buf *ret)
{
	const char *host = strstr(url, "://") + 3;
	size_t n = strcspn(host, "/");
	const char *usual = str_starts(url, "https:") ? ":443" : ":80";
	size_t k = strlen(usual);

	if (n > k && memcmp(host + n - k, usual, k) == 0)
		n -= k;
	return buf_add(ret, host, n);
}

static int sign(struct sending *s, const struct aws_creds *creds)
{
	const struct aws_call *c = s->c;
	const char *path = strchr(strstr(s->url.p, "://") + 3, '/'); /* c->path begins with one */
	struct sigv4_header heads[3 + CALL_HEADS_MAX];
	struct sigv4_signed sig;
	char hash[SIGV4_HASH_LEN + 1];
	AUTO_BUF host, only_path;
	int r;

	buf_init(&host, URL_MAX);
	buf_init(&only_path, URL_MAX);
	r = host_header(s->url.p, &host);
	if (r == 0)
		r = buf_add(&only_path, path, strcspn(path, "?"));
	if (r < 0)
		return r;
	sigv4_hash(c->body ? c->body : "", c->body_len, hash);
	struct sigv4 q = { .key_id = creds->key_id,
			   .secret = creds->secret,
			   .token = creds->token,
			   .region = s->region,
			   .service = c->service->signing,
			   .time_s = aws_now_s() + s->a->skew_s,
			   .method = c->method,
			   .path = only_path.p,
			   .flags = c->bucket ? SIGV4_PATH_AS_IS | SIGV4_NOT_NORMAL : 0,
			   .query = c->query,
			   .headers = heads,
			   .payload_hash = hash };

	heads[q.headers_len++] = (struct sigv4_header){ "host", host.p };
	if (c->content_type)
		heads[q.headers_len++] = (struct sigv4_header){ "content-type", c->content_type };
	if (c->bucket)
		heads[q.headers_len++] = (struct sigv4_header){ "x-amz-content-sha256", hash };
	for (size_t i = 0; i < c->heads_len && i < CALL_HEADS_MAX; i++)
		heads[q.headers_len++] = c->heads[i];
	r = sigv4_sign(&q, &sig);
	for (size_t i = 0; r == 0 && i < q.headers_len; i++)
		if (str_starts(heads[i].name, "x-"))
			r = add_header(s, heads[i].name, heads[i].value);
	if (r == 0)
		r = add_header(s, "X-Amz-Date", sig.date);
	if (r == 0 && creds->token)
		r = add_header(s, "X-Amz-Security-Token", creds->token);
	if (r == 0)
		r = add_header(s, "Authorization", sig.result.p);
	sigv4_done(&sig);
	return r;
}

static int prepare(struct sending *s, struct err *e)
{
	const struct aws_call *c = s->c;
	const struct aws_creds *creds = c->creds;
	int r = 0;

	clear_headers(s);
	buf_clear(&s->url);
	if (c->service->signing && !creds)
		r = creds_now(s->a, false, &creds, e);
	if (r < 0)
		return r;
	r = buf_addf(&s->url, "%s%s%s%s", s->base.p, c->path, c->query ? "?" : "",
		     c->query ? c->query : "");
	if (r == 0 && c->content_type)
		r = add_header(s, "Content-Type", c->content_type);
	if (r == 0 && c->accept)
		r = add_header(s, "Accept", c->accept);
	if (r == 0 && c->extra[0])
		r = add_header(s, c->extra[0], c->extra[1]);
	if (r == 0 && c->service->signing)
		r = sign(s, creds);
	return r < 0 ? err_set(e, ERR_INTERNAL, -r, "signing %s", c->what) : 0;
}

static int attempt(struct sending *s, struct aws_answer *ret, struct err *e)
{
	int64_t left = s->until - loop_now();
	int64_t most = s->c->attempt_ns ? s->c->attempt_ns : FETCH_LIMIT_NS;
	struct fetch_request q = { .method = s->c->method,
				   .headers = s->headers,
				   .body = s->c->body,
				   .body_len = s->c->body_len,
				   .connect_ns = FETCH_CONNECT_NS,
				   .limit_ns = left < most ? left : most };
	int r;

	if (left <= 0)
		return err_set(e, ERR_TIMEOUT, ETIMEDOUT, "%s", s->c->what);
	q.url = s->url.p;
	r = fetch_do(s->a->fetch, &q, &ret->reply, e);
	if (r < 0)
		(void)err_wrap(e, "%s", s->c->what); /* without E it would forget what R was */
	return r;
}

/* --- reading an error --- */

/* The short name in "ns#Name:uri" or "Name:uri". */
static void short_code(const char *s, char ret[static CALL_CODE_MAX])
{
	size_t n = strcspn(s, ":");

	for (size_t i = n; i > 0; i--)
		if (s[i - 1] == '#') {
			s += i;
			n -= i;
			break;
		}
	if (str_format(ret, CALL_CODE_MAX, "%.*s", (int)n, s) < 0)
		ret[0] = '\0';
}

static const char *text_member(const cJSON *o, const char *a, const char *b)
{
	const char *s = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(o, a));

	return s ? s : cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(o, b));
}

static int status_errno(int status, enum err_code *ret_code)
{
	static const struct {
		int status, errnum;
		enum err_code code;
	} table[] = {
		{ 404, ENOENT, ERR_NOT_FOUND }, { 401, EACCES, ERR_DENIED },
		{ 403, EACCES, ERR_DENIED },	{ 409, EBUSY, ERR_CONFLICT },
		{ 402, EDQUOT, ERR_FULL },	{ 429, EAGAIN, ERR_UNAVAILABLE },
	};

	for (size_t i = 0; i < ARRAY_LEN(table); i++)
		if (table[i].status == status) {
			*ret_code = table[i].code;
			return table[i].errnum;
		}
	*ret_code = status >= 500 || status < 400 ? ERR_UNAVAILABLE : ERR_INVALID;
	return status >= 500 || status < 400 ? EIO : EINVAL;
}

/* The answer as a tree, whichever of the two it is written in. */
static cJSON *read_tree(const struct sending *s, const struct buf *body, struct err *e)
{
	return s->c->xml ? xml_parse(body->p, body->len, e) : jsn_parse(body->p, body->len, e);
}

/* STS in JSON and S3 have it in "Error", IAM in "ErrorResponse", EC2 in "Response". */
static const cJSON *error_in(const cJSON *j)
{
	static const char *const paths[] = { "Error", "ErrorResponse/Error",
					     "Response/Errors/Error" };

	for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
		const cJSON *o = xml_at(j, paths[i]);

		if (cJSON_IsObject(o))
			return o;
	}
	return j;
}

/*
 * JSON says it as {"message"} or {"Message"}, with the type in a header, in "__type" or in "code"; XML and STS as {"Code",
 * "Message"} somewhere in it. Gateways say it in HTML, which is nothing to show.
 */
static int explain(const struct sending *s, struct aws_answer *ret, struct err *e)
{
	const struct fetch_reply *p = &ret->reply;
	AUTO_JSN *j = p->body.len ? read_tree(s, &p->body, NULL) : NULL;
	const cJSON *o = error_in(j);
	const char *message = text_member(o, "message", "Message"), *type = p->error_type;
	enum err_code code;
	int errnum = status_errno(p->status, &code);

	if (!*type)
		type = text_member(o, "__type", "code");
	if (!type)
		type = text_member(o, "Code", "Type");
	short_code(type ? type : "", ret->code);
	if (!message || !*message)
		message = p->status == 403 && s->own
				  ? "refused without a reason: does the region have the service?"
				  : "the answer gives no reason";
	(void)err_set(e, code, 0, "%s: %.300s (%s%sHTTP %d%s%s)", s->c->what, message, ret->code,
		      ret->code[0] ? ", " : "", p->status, p->request_id[0] ? ", request " : "",
		      p->request_id);
	if (e)
		e->errnum = errnum;
	return -errnum;
}

/* --- again? --- */

/* The service's clock less ours, if that is what is wrong. */
static bool correct_clock(struct sending *s, const struct fetch_reply *p)
{
	int64_t skew = p->date_s - aws_now_s(), moved = skew - s->a->skew_s;

	if (s->clock_corrected || !p->date_s || (moved < RETRY_SKEW_S && moved > -RETRY_SKEW_S))
		return false;
	s->a->skew_s = skew;
	s->clock_corrected = true;
	return true;
}

static bool renew(struct sending *s)
{
	const struct aws_creds *creds;

	if (s->creds_renewed || s->c->creds)
		return false;
	s->creds_renewed = true;
	return creds_now(s->a, true, &creds, NULL) == 0;
}

/* 1: another attempt now. 0: no. Negative: interrupted. */
static int again(struct sending *s, const struct aws_answer *ret, int errnum)
{
	enum retry_what what = retry_decide(ret->reply.status, ret->code, errnum);
	int64_t ns;
	uint32_t random;

	if (what == RETRY_CREDS)
		return renew(s);
	if (what == RETRY_CLOCK)
		return correct_clock(s, &ret->reply);
	if (what == RETRY_NOT || ret->attempts >= settings_attempts(&s->a->set))
		return 0;
	if (getrandom(&random, sizeof(random), 0) != (ssize_t)sizeof(random))
		random = UINT32_MAX;
	ns = retry_delay_ns(ret->attempts, random, ret->reply.retry_after_s);
	if (loop_now() + ns >= s->until)
		return 0;
	return fetch_sleep(s->a->fetch, ns) < 0 ? -EINTR : 1;
}

static int take(const struct sending *s, struct aws_answer *ret, struct err *e)
{
	const struct fetch_reply *p = &ret->reply;
	struct err why = ERR_INIT;

	if (p->status < 200 || p->status > 299)
		return explain(s, ret, e);
	if (p->body.len == 0)
		return 0;
	ret->json = read_tree(s, &p->body, &why);
	if (ret->json)
		return 0;
	return err_set(e, ERR_INTERNAL, EBADMSG, "%s: the answer is no %s (%.100s)", s->c->what,
		       s->c->xml ? "XML" : "JSON", why.msg);
}

static int run(struct sending *s, struct aws_answer *ret, struct err *e)
{
	int r, more;

	do {
		aws_answer_done(ret);
		*ret = (struct aws_answer){ .attempts = ret->attempts + 1 };
		r = prepare(s, e);
		if (r < 0)
			return r; /* credentials were looked for with attempts of their own */
		r = attempt(s, ret, e);
		if (r == 0)
			r = take(s, ret, e);
		if (r == 0)
			return 0;
		more = again(s, ret, -r);
	} while (more > 0);
	return more < 0 ? err_set(e, ERR_UNAVAILABLE, EINTR, "%s", s->c->what) : r;
}

/* AWS has a host for each bucket, but its certificates do not fit names with dots; elsewhere the bucket begins the path. */
static int add_bucket(struct sending *s)
{
	const char *bucket = s->c->bucket;
	AUTO_BUF b;
	int r;

	buf_init(&b, URL_MAX);
	if (!s->own || strchr(bucket, '.'))
		return buf_addf(&s->base, "/%s", bucket);
	r = buf_addf(&b, "https://%s.%s", bucket, s->base.p + strlen("https://"));
	buf_clear(&s->base);
	return r < 0 ? r : buf_adds(&s->base, b.p);
}

int aws_call(struct aws *a, const struct aws_call *c, struct aws_answer *ret, struct err *e)
{
	struct sending s = { .a = a, .c = c, .region = c->region };
	int r = 0;

	*ret = (struct aws_answer){ .attempts = 0 };
	s.until = loop_now() + (c->limit_ns ? c->limit_ns : CALL_LIMIT_NS);
	buf_init(&s.base, URL_MAX);
	buf_init(&s.url, URL_MAX);
	if (!s.region)
		r = aws_region(a, &s.region, e);
	else if (!settings_is_region(s.region))
		r = err_set(e, ERR_INVALID, 0, "'%.60s' is not a region", s.region);
	if (r == 0)
		r = aws_endpoint(a, c->service, s.region, &s.base, &s.own, e);
	if (r == 0 && c->bucket && add_bucket(&s) < 0)
		r = err_set(e, ERR_INTERNAL, ENOMEM, "%s", c->what);
	if (r == 0)
		r = run(&s, ret, e);
	clear_headers(&s);
	buf_done(&s.url);
	buf_done(&s.base);
	return r;
}
