/* SPDX-License-Identifier: Apache-2.0 */
#include "host/aws/sigv4.h"

#include <bearssl.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "lib/str.h"

/*
 * Three texts, each made from the one before:
 *	canonical request	method, path, query, headers, names of the headers, hash of the body, in a normal form
 *	string to sign		algorithm, time, scope, hash of the canonical request
 *	signature		HMAC of that under a key derived from the secret and the scope
 *
 * The normal form is where implementations differ. The path is percent-encoded once more than it is sent
 * (%3A becomes %253A), except for S3. Query parameters are decoded and encoded again, and sorted by name and then value,
 * so "a" and "a-b" must be compared as names, not as "a=…" and "a-b=…". Names of headers are lower case and sorted, values
 * trimmed with inner runs of blanks made one, and equal names joined by commas in their order.
 */

#define ALGORITHM     "AWS4-HMAC-SHA256"
#define TEXT_MAX      (256U << 10)
#define SCOPE_MAX     160
#define LAST_YEAR     9999
#define DATE_ONLY_LEN 8

static const char hex_upper[] = "0123456789ABCDEF";

void sigv4_hash(const void *p, size_t n, char ret[static SIGV4_HASH_LEN + 1])
{
	unsigned char h[br_sha256_SIZE];
	br_sha256_context c;

	br_sha256_init(&c);
	br_sha256_update(&c, p, n);
	br_sha256_out(&c, h);
	str_hex(h, sizeof(h), ret);
}

static void hmac(const void *key, size_t key_len, const char *text, size_t n,
		 unsigned char out[static br_sha256_SIZE])
{
	br_hmac_key_context k;
	br_hmac_context c;

	br_hmac_key_init(&k, &br_sha256_vtable, key, key_len);
	br_hmac_init(&c, &k, 0);
	br_hmac_update(&c, text, n);
	(void)br_hmac_out(&c, out);
}

static bool is_unreserved(unsigned char c)
{
	return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
	       c == '-' || c == '_' || c == '.' || c == '~';
}

int sigv4_encode(struct buf *b, const char *p, size_t n, const char *keep)
{
	int r = 0;

	for (size_t i = 0; i < n && r == 0; i++) {
		unsigned char c = (unsigned char)p[i];
		const char coded[3] = { '%', hex_upper[c >> 4], hex_upper[c & 15] };

		if (is_unreserved(c) || (c && strchr(keep, c)))
			r = buf_add(b, &p[i], 1);
		else
			r = buf_add(b, coded, sizeof(coded));
	}
	return r;
}

/* --- path --- */

/* PATH without empty and "." segments, ".." taking the one before with it. */
static int normalise(const char *path, struct buf *b)
{
	size_t end = strlen(path);
	int r = 0;

	for (const char *p = path; *p && r == 0;) {
		size_t n = strcspn(p, "/");

		if (n == 2 && p[0] == '.' && p[1] == '.') {
			while (b->len && b->p[b->len - 1] != '/')
				b->len--;
			if (b->len)
				b->len--;
		} else if (n && !(n == 1 && p[0] == '.')) {
			r = buf_adds(b, "/");
			if (r == 0)
				r = buf_add(b, p, n);
		}
		p += n + (p[n] == '/');
	}
	if (r == 0 && (b->len == 0 || (end && path[end - 1] == '/')))
		r = buf_adds(b, "/");
	return r;
}

static int add_path(const struct sigv4 *s, struct buf *b)
{
	AUTO_BUF normal;
	int r;

	buf_init(&normal, TEXT_MAX);
	if (s->flags & SIGV4_PATH_AS_IS)
		return buf_adds(b, s->path);
	r = s->flags & SIGV4_NOT_NORMAL ? buf_adds(&normal, s->path) : normalise(s->path, &normal);
	return r < 0 ? r : sigv4_encode(b, normal.p, normal.len, "/");
}

/* --- query --- */

struct param {
	size_t name, value; /* offsets into params.text, NUL-terminated there */
};

struct params {
	struct buf text;
	struct param all[SIGV4_PARAMS_MAX];
	size_t len;
};

static int hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = (char)(c | 0x20);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* N bytes of a query as sent, in their normal form and a NUL. */
static int add_recoded(struct buf *b, const char *p, size_t n)
{
	int r = 0;

	for (size_t i = 0; i < n && r == 0; i++) {
		char c = p[i];

		if (c == '%' && n - i > 2 && hex_value(p[i + 1]) >= 0 && hex_value(p[i + 2]) >= 0) {
			c = (char)(hex_value(p[i + 1]) << 4 | hex_value(p[i + 2]));
			i += 2;
		}
		r = sigv4_encode(b, &c, 1, "");
	}
	return r < 0 ? r : buf_add(b, "", 1);
}

static int param_add(struct params *q, const char *name, size_t name_len, const char *value,
		     size_t value_len)
{
	struct param *p = &q->all[q->len];
	int r;

	if (q->len == SIGV4_PARAMS_MAX)
		return -EINVAL;
	p->name = q->text.len;
	r = add_recoded(&q->text, name, name_len);
	p->value = q->text.len;
	if (r == 0)
		r = add_recoded(&q->text, value, value_len);
	if (r == 0)
		q->len++;
	return r;
}

static int params_read(struct params *q, const char *query)
{
	int r = 0;

	buf_init(&q->text, TEXT_MAX);
	q->len = 0;
	for (const char *p = query ? query : ""; *p && r == 0;) {
		size_t n = strcspn(p, "&");
		const char *eq = memchr(p, '=', n);
		size_t name = eq ? (size_t)(eq - p) : n;

		if (n)
			r = param_add(q, p, name, eq ? eq + 1 : "", eq ? n - name - 1 : 0);
		p += n + (p[n] == '&');
	}
	return r;
}

static int compare_params(const void *va, const void *vb, void *text)
{
	const struct param *a = va, *b = vb;
	const char *t = text;
	int r = strcmp(t + a->name, t + b->name);

	return r ? r : strcmp(t + a->value, t + b->value);
}

static int params_write(struct params *q, struct buf *b)
{
	int r = 0;

	qsort_r(q->all, q->len, sizeof(q->all[0]), compare_params, q->text.p);
	for (size_t i = 0; i < q->len && r == 0; i++)
		r = buf_addf(b, "%s%s=%s", i ? "&" : "", q->text.p + q->all[i].name,
			     q->text.p + q->all[i].value);
	return r;
}

/* --- headers --- */

struct heads {
	struct sigv4_header all[SIGV4_HEADERS_MAX + 2];
	size_t len;
};

/* Stable, unlike qsort: equal names keep their order. */
static void heads_sort(struct heads *h)
{
	for (size_t i = 1; i < h->len; i++) {
		struct sigv4_header x = h->all[i];
		size_t k = i;

		for (; k && strcasecmp(h->all[k - 1].name, x.name) > 0; k--)
			h->all[k] = h->all[k - 1];
		h->all[k] = x;
	}
}

static int add_lower(struct buf *b, const char *s)
{
	int r = 0;

	for (; *s && r == 0; s++) {
		char c = *s >= 'A' && *s <= 'Z' ? (char)(*s | 0x20) : *s;

		r = buf_add(b, &c, 1);
	}
	return r;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static int add_value(struct buf *b, const char *s)
{
	size_t n = strlen(s);
	int r = 0;

	while (n && is_blank(s[n - 1]))
		n--;
	for (size_t i = 0; i < n && r == 0; i++) {
		if (!is_blank(s[i]))
			r = buf_add(b, &s[i], 1);
		else if (i && !is_blank(s[i - 1]))
			r = buf_adds(b, " ");
	}
	return r;
}

static bool same_as_before(const struct heads *h, size_t i)
{
	return i && strcasecmp(h->all[i].name, h->all[i - 1].name) == 0;
}

static int heads_write(const struct heads *h, struct buf *b)
{
	int r = 0;

	for (size_t i = 0; i < h->len && r == 0; i++) {
		bool again = same_as_before(h, i);

		if (again)
			r = buf_adds(b, ",");
		else if (i)
			r = buf_adds(b, "\n");
		if (r == 0 && !again)
			r = add_lower(b, h->all[i].name);
		if (r == 0 && !again)
			r = buf_adds(b, ":");
		if (r == 0)
			r = add_value(b, h->all[i].value);
	}
	return r < 0 ? r : buf_adds(b, "\n");
}

static int heads_names(const struct heads *h, struct buf *b)
{
	int r = 0;

	for (size_t i = 0; i < h->len && r == 0; i++) {
		if (same_as_before(h, i))
			continue;
		if (i)
			r = buf_adds(b, ";");
		if (r == 0)
			r = add_lower(b, h->all[i].name);
	}
	return r;
}

/* --- the three texts --- */

struct making {
	const struct sigv4 *s;
	struct sigv4_signed *ret;
	struct heads heads;
	struct params params;
	struct buf names;
	char scope[SCOPE_MAX];
};

static int begin(const struct sigv4 *s, struct sigv4_signed *ret, struct making *m)
{
	time_t t = (time_t)s->time_s;
	struct tm tm;

	*ret = (struct sigv4_signed){ .date = "" };
	buf_init(&ret->result, TEXT_MAX);
	buf_init(&ret->canonical, TEXT_MAX);
	buf_init(&ret->to_sign, TEXT_MAX);
	m->s = s;
	m->ret = ret;
	buf_init(&m->names, TEXT_MAX);
	if (s->headers_len > SIGV4_HEADERS_MAX || !gmtime_r(&t, &tm) ||
	    tm.tm_year + 1900 > LAST_YEAR ||
	    strftime(ret->date, sizeof(ret->date), "%Y%m%dT%H%M%SZ", &tm) != SIGV4_DATE_LEN)
		return -EINVAL;
	if (s->headers_len)
		memcpy(m->heads.all, s->headers, s->headers_len * sizeof(s->headers[0]));
	m->heads.len = s->headers_len;
	if (str_format(m->scope, sizeof(m->scope), "%.*s/%s/%s/aws4_request", DATE_ONLY_LEN,
		       ret->date, s->region, s->service) < 0)
		return -EINVAL;
	return params_read(&m->params, s->query);
}

static void end(struct making *m)
{
	buf_done(&m->params.text);
	buf_done(&m->names);
}

static int write_canonical(struct making *m)
{
	struct buf *b = &m->ret->canonical;
	int r = buf_addf(b, "%s\n", m->s->method);

	if (r == 0)
		r = add_path(m->s, b);
	if (r == 0)
		r = buf_adds(b, "\n");
	if (r == 0)
		r = params_write(&m->params, b);
	if (r == 0)
		r = buf_adds(b, "\n");
	if (r == 0)
		r = heads_write(&m->heads, b);
	return r < 0 ? r : buf_addf(b, "\n%s\n%s", m->names.p, m->s->payload_hash);
}

static int write_signature(struct making *m)
{
	struct sigv4_signed *ret = m->ret;
	unsigned char key[br_sha256_SIZE];
	char hash[SIGV4_HASH_LEN + 1];
	AUTO_BUF first;
	int r;

	buf_init(&first, TEXT_MAX);
	sigv4_hash(ret->canonical.p, ret->canonical.len, hash);
	r = buf_addf(&ret->to_sign, ALGORITHM "\n%s\n%s\n%s", ret->date, m->scope, hash);
	if (r == 0)
		r = buf_addf(&first, "AWS4%s", m->s->secret);
	if (r < 0)
		return r;
	hmac(first.p, first.len, ret->date, DATE_ONLY_LEN, key);
	hmac(key, sizeof(key), m->s->region, strlen(m->s->region), key);
	hmac(key, sizeof(key), m->s->service, strlen(m->s->service), key);
	hmac(key, sizeof(key), "aws4_request", strlen("aws4_request"), key);
	hmac(key, sizeof(key), ret->to_sign.p, ret->to_sign.len, key);
	str_hex(key, sizeof(key), ret->signature);
	explicit_bzero(first.p, first.len);
	explicit_bzero(key, sizeof(key));
	return 0;
}

static int sign_headers(struct making *m)
{
	const struct sigv4 *s = m->s;
	int r;

	m->heads.all[m->heads.len++] = (struct sigv4_header){ "x-amz-date", m->ret->date };
	if (s->token && !(s->flags & SIGV4_TOKEN_UNSIGNED))
		m->heads.all[m->heads.len++] =
			(struct sigv4_header){ "x-amz-security-token", s->token };
	heads_sort(&m->heads);
	r = heads_names(&m->heads, &m->names);
	if (r == 0)
		r = write_canonical(m);
	if (r == 0)
		r = write_signature(m);
	return r < 0 ? r
		     : buf_addf(&m->ret->result,
				ALGORITHM " Credential=%s/%s, SignedHeaders=%s, Signature=%s",
				s->key_id, m->scope, m->names.p, m->ret->signature);
}

int sigv4_sign(const struct sigv4 *s, struct sigv4_signed *ret)
{
	struct making m = { 0 };
	int r = begin(s, ret, &m);

	if (r == 0)
		r = sign_headers(&m);
	end(&m);
	return r;
}

/* One parameter of ours: into the canonical ones when it is signed, and into what is sent. */
static int add_own(struct making *m, const char *name, const char *value, bool sign)
{
	struct buf *b = &m->ret->result;
	AUTO_BUF coded;
	int r;

	buf_init(&coded, TEXT_MAX);
	r = sigv4_encode(&coded, value, strlen(value), "");
	if (r == 0)
		r = buf_addf(b, "%s%s=%s", b->len ? "&" : "", name, coded.p ? coded.p : "");
	if (r == 0 && sign)
		r = param_add(&m->params, name, strlen(name), coded.p ? coded.p : "", coded.len);
	return r;
}

static int sign_query(struct making *m, uint32_t expires_s)
{
	const struct sigv4 *s = m->s;
	char credential[SCOPE_MAX + 160], expires[16];
	int r = buf_adds(&m->ret->result, s->query ? s->query : "");

	if (r < 0 || str_format(credential, sizeof(credential), "%s/%s", s->key_id, m->scope) < 0 ||
	    str_format(expires, sizeof(expires), "%u", expires_s) < 0)
		return r < 0 ? r : -EINVAL;
	heads_sort(&m->heads);
	r = heads_names(&m->heads, &m->names);
	if (r == 0)
		r = add_own(m, "X-Amz-Algorithm", ALGORITHM, true);
	if (r == 0)
		r = add_own(m, "X-Amz-Credential", credential, true);
	if (r == 0)
		r = add_own(m, "X-Amz-Date", m->ret->date, true);
	if (r == 0)
		r = add_own(m, "X-Amz-Expires", expires, true);
	if (r == 0 && s->token)
		r = add_own(m, "X-Amz-Security-Token", s->token,
			    !(s->flags & SIGV4_TOKEN_UNSIGNED));
	if (r == 0)
		r = add_own(m, "X-Amz-SignedHeaders", m->names.p ? m->names.p : "", true);
	if (r == 0)
		r = write_canonical(m);
	if (r == 0)
		r = write_signature(m);
	return r < 0 ? r : add_own(m, "X-Amz-Signature", m->ret->signature, false);
}

int sigv4_presign(const struct sigv4 *s, uint32_t expires_s, struct sigv4_signed *ret)
{
	struct making m = { 0 };
	int r = begin(s, ret, &m);

	if (r == 0)
		r = sign_query(&m, expires_s);
	end(&m);
	return r;
}

void sigv4_done(struct sigv4_signed *r)
{
	buf_done(&r->result);
	buf_done(&r->canonical);
	buf_done(&r->to_sign);
}
