/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "httpd_int.h"

/*
 * The strictness that libmicrohttpd lacks, in one place, on what it hands us: the request line, the
 * list of header fields, the size of the head. A request that two servers on one path could read
 * differently is refused with 400 and a closed connection (RFC 9112 §2.2, §3, §5, §6.3, §11.2).
 *
 * The library cuts the head into C strings in place. So the pieces lie in one buffer in the order
 * in which they were sent, and a head without anything unusual has exactly as many bytes as its
 * pieces, its separators and one CRLF for each line. A bare LF, a folded line, a NUL, a doubled
 * space, a field that was dropped: each makes the sum differ. This holds for the pinned version of
 * the library; tests/unit/test_httpd.c would tell. What cannot be seen from here is in the body: a
 * bare LF behind a chunk size (docs/security-model.md).
 */

/* --- header fields --- */
struct fields {
	unsigned count, host, length, encoding;
	size_t bytes; /* of all lines, with their CRLF */
	bool bad_name, bad_value, chunked;
};

/* RFC 9110 §5.6.2 */
static bool is_token(const char *p, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)p[i];

		if (!(c >= '0' && c <= '9') && !((c | 0x20) >= 'a' && (c | 0x20) <= 'z') &&
		    (c == 0 || !strchr("!#$%&'*+-.^_`|~", c)))
			return false;
	}
	return n > 0;
}

static bool has_control(const char *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (((unsigned char)p[i] < 0x20 && p[i] != '\t') || p[i] == 0x7f)
			return true;
	return false;
}

static bool is_name(const char *p, size_t n, const char *name)
{
	return n == strlen(name) && !strncasecmp(p, name, n);
}

static enum MHD_Result on_field(void *cls, enum MHD_ValueKind kind, const char *name,
				size_t name_len, const char *value, size_t value_len)
{
	struct fields *f = cls;

	(void)kind;
	f->count++;
	/* NAME, colon, spaces, VALUE, CRLF */
	f->bytes += value ? (size_t)((uintptr_t)value + value_len - (uintptr_t)name) + 2 : 0;
	if (!is_token(name, name_len)) {
		f->bad_name = true;
		return MHD_YES;
	}
	if (value && has_control(value, value_len))
		f->bad_value = true;
	if (is_name(name, name_len, "Host"))
		f->host++;
	else if (is_name(name, name_len, "Content-Length"))
		f->length++;
	else if (is_name(name, name_len, "Transfer-Encoding")) {
		f->encoding++;
		f->chunked = value && is_name(value, value_len, "chunked");
	}
	return MHD_YES;
}

static size_t head_size(struct httpd_req *r)
{
	const union MHD_ConnectionInfo *ci =
		MHD_get_connection_info(r->con, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);

	return ci ? ci->header_size : SIZE_MAX;
}

static const char *check_fields(struct httpd_req *r, bool http11, int *ret_status)
{
	struct fields f = { 0 };
	size_t size = head_size(r);
	/* "GET /x HTTP/1.1" CRLF, fields, CRLF */
	size_t line = (size_t)(r->x.raw_end - r->x.method) + sizeof(" HTTP/1.1\r\n\r\n") - 1;

	(void)MHD_get_connection_values_n(r->con, MHD_HEADER_KIND, on_field, &f);
	if (f.count > HTTPD_FIELDS_MAX || size > HTTPD_HEAD_MAX) {
		*ret_status = 431;
		return "request head too large";
	}
	if (f.bad_name)
		return "invalid header name";
	if (f.bad_value)
		return "control character in a header";
	if (f.bytes + line != size)
		return "invalid line in the request head";
	if (f.host > 1 || (http11 && f.host == 0))
		return "exactly one Host header is wanted";
	if (f.length > 1)
		return "repeated Content-Length";
	if (f.encoding && (f.encoding > 1 || f.length || !http11 || !f.chunked))
		return "invalid Transfer-Encoding";
	return NULL;
}

/* --- request line --- */
static bool known_method(const char *m)
{
	static const char known[][8] = { "GET",	  "HEAD",    "POST",  "PUT",	"DELETE",
					 "PATCH", "OPTIONS", "TRACE", "CONNECT" };

	for (size_t i = 0; i < ARRAY_LEN(known); i++)
		if (!strcmp(m, known[i]))
			return true;
	return false;
}

/* The three pieces must follow each other at one byte's distance: else there was a second space, or
 * a NUL. */
static bool line_is_tight(const struct httpd_req *r, const char *version)
{
	const char *uri = r->x.raw_uri;

	return uri && uri == r->x.method + strlen(r->x.method) + 1 && version == r->x.raw_end + 1;
}

const char *httpd_check_head(struct httpd_req *r, const char *version, int *ret_status)
{
	bool http11 = !strcmp(version, "HTTP/1.1");
	int target = r->x.status;

	r->x.status = 0;
	if (!http11 && strcmp(version, "HTTP/1.0")) {
		*ret_status = 505;
		return "HTTP/1.1 is spoken here";
	}
	if (!line_is_tight(r, version))
		return "invalid request line";
	if (!known_method(r->x.method)) {
		*ret_status = 501;
		return "Not Implemented";
	}
	if (target == -ENAMETOOLONG) {
		*ret_status = 414;
		return "request target too long";
	}
	if (target == -ENOMEM) {
		*ret_status = 503;
		return "out of memory";
	}
	if (target < 0)
		return "invalid request target";
	return check_fields(r, http11, ret_status);
}

/* --- target --- */
static int hex(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Decodes S in place. -EINVAL for a broken escape, a NUL or another control byte that comes out. */
static int decode(char *s, bool plus)
{
	char *w = s;

	for (; *s; s++) {
		char c = *s;

		if (c == '%') {
			int hi = hex(s[1]), lo = hi < 0 ? -1 : hex(s[2]);

			if (lo < 0)
				return -EINVAL;
			c = (char)(hi * 16 + lo);
			if (c == '\0')
				return -EINVAL;
			s += 2;
		} else if (c == '+' && plus) {
			c = ' ';
		}
		*w++ = c;
	}
	*w = '\0';
	return 0;
}

/* "a=1&b" as application/x-www-form-urlencoded: '+' is a space. Q is cut up in place. */
static int parse_query(struct httpd_target *t, char *q)
{
	while (q && *q) {
		char *next = strchr(q, '&'), *eq;
		struct httpd_pair *p;

		if (next)
			*next++ = '\0';
		if (*q) {
			if (t->nparams == HTTPD_PARAMS_MAX)
				return -EINVAL;
			p = &t->params[t->nparams++];
			eq = strchr(q, '=');
			if (eq)
				*eq++ = '\0';
			if (decode(q, true) < 0 || (eq && decode(eq, true) < 0))
				return -EINVAL;
			p->name = q;
			p->value = eq ? eq : "";
		}
		q = next;
	}
	return 0;
}

int httpd_target_parse(struct httpd_target *t, const char *target)
{
	size_t n = strnlen(target, HTTPD_TARGET_MAX + 1);
	char *q;

	if (n > HTTPD_TARGET_MAX)
		return -ENAMETOOLONG;
	if (target[0] != '/')
		return -EINVAL; /* origin-form only: nobody is a proxy here (RFC 9112 §3.2) */
	for (size_t i = 0; i < n; i++)
		if (target[i] <= 0x20 || target[i] == 0x7f || target[i] == '#')
			return -EINVAL; /* with a signed char, bytes above 127 as well */
	/* three copies: the decoded path, the encoded one, whose pieces are decoded when they are
	 * matched, the query */
	t->text = malloc(3 * (n + 1));
	if (!t->text)
		return -ENOMEM;
	t->path = t->text;
	t->raw = t->text + n + 1;
	q = t->raw + n + 1;
	memcpy(t->path, target, n + 1);
	memcpy(q, target, n + 1);
	q = strchr(q, '?');
	t->path[strcspn(t->path, "?")] = '\0';
	memcpy(t->raw, t->path, strlen(t->path) + 1);
	if (decode(t->path, false) < 0)
		return -EINVAL;
	return q ? parse_query(t, q + 1) : 0;
}

int httpd_target_keep(struct httpd_target *t, const char *target)
{
	if (strnlen(target, HTTPD_TARGET_MAX + 1) > HTTPD_TARGET_MAX)
		return -ENAMETOOLONG;
	t->text = strdup(target);
	return t->text ? 0 : -ENOMEM;
}

void httpd_target_done(struct httpd_target *t)
{
	free(t->text);
	*t = (struct httpd_target){ 0 };
}

/* The segment of N encoded bytes at P equals S (of PATTERN, N2 bytes, not encoded). */
static bool segment_is(const char *p, size_t n, const char *s, size_t n2)
{
	return n == n2 && !memcmp(p, s, n);
}

/* Does the encoded path fit? Compared segment by segment, so that an escaped '/' never separates.
 */
static bool path_fits(const char *raw, const char *pattern)
{
	for (;;) {
		size_t n = strcspn(raw + 1, "/") + 1, m = strcspn(pattern + 1, "/") + 1;

		if (segment_is(pattern, m, "/{}", 3) ? n < 2 : !segment_is(raw, n, pattern, m))
			return false;
		raw += n;
		pattern += m;
		if (!*raw || !*pattern)
			return !*raw && !*pattern;
	}
}

bool httpd_target_match(struct httpd_target *t, const char *pattern)
{
	char *s = t->raw;

	if (!path_fits(s, pattern))
		return false;
	t->nsegs = 0;
	for (const char *p = pattern; *p; p += strcspn(p + 1, "/") + 1) {
		size_t n = strcspn(s + 1, "/") + 1;
		char *end = s + n;
		bool more = *end != '\0';

		if (segment_is(p, strcspn(p + 1, "/") + 1, "/{}", 3) && t->nsegs < HTTPD_SEGS_MAX) {
			*end = '\0';
			if (decode(s + 1, false) < 0)
				return false; /* httpd_target_parse has refused that already */
			t->segs[t->nsegs++] = s + 1;
		}
		s = more ? end : s; /* its '/' may be a NUL now; only what follows is looked at */
	}
	return true;
}

/* 405 where other methods have a route, else 404. */
static void refuse_target(struct httpd_req *r)
{
	AUTO_BUF allow = { .cap = 256 };

	for (const struct httpd_route *rt = r->h->c.routes; rt->pattern; rt++)
		if (path_fits(r->x.target.raw, rt->pattern))
			ignore_result(buf_addf(&allow, "%s%s%s", allow.len ? ", " : "", rt->method,
					       rt->flags & HTTPD_HEAD
						       ? ", HEAD"
						       : "")); /* a header for the curious */
	if (allow.len) {
		ignore_result(httpd_add_header(r, "Allow", allow.p));
		httpd_reply_error(r, 405, "Method Not Allowed");
	} else {
		httpd_reply_error(r, 404, "Not Found");
	}
}

const struct httpd_route *httpd_find_route(struct httpd_req *r)
{
	for (const struct httpd_route *rt = r->h->c.routes; rt->pattern; rt++) {
		bool head = !strcmp(r->x.method, "HEAD") && !strcmp(rt->method, "GET") &&
			    (rt->flags & HTTPD_HEAD);

		if ((head || !strcmp(rt->method, r->x.method)) &&
		    path_fits(r->x.target.raw, rt->pattern)) {
			if (httpd_target_match(&r->x.target, rt->pattern))
				return rt;
			break; /* the raw path is in pieces now */
		}
	}
	refuse_target(r);
	return NULL;
}
