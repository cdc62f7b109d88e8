/* SPDX-License-Identifier: Apache-2.0 */
#include <bearssl.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "host/aws/call.h"
#include "host/aws/creds_int.h"
#include "host/aws/sigv4.h"
#include "lib/fd.h"
#include "lib/pretty.h"
#include "lib/str.h"

/*
 * What a person has logged in to with the AWS tools: IAM Identity Center (`aws sso login`) and `aws login`. Their token caches are
 * read; a token of an sso-session is renewed here as they do it, and written back.
 */

#define RENEW_S	 900 /* a token with less left is renewed */
#define LIMIT_NS (30LL * 1000000000)

struct sso {
	const char *profile, *session, *start_url, *region, *account, *role;
	char path[PATH_MAX]; /* of the cached token */
	cJSON *cache;	     /* owned */
};

static const char *text_of(const cJSON *o, const char *name)
{
	return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(o, name));
}

static int64_t time_of(const cJSON *o, const char *name)
{
	const char *s = text_of(o, name);
	int64_t t;

	return s && creds_time(s, &t) == 0 ? t : 0;
}

static int log_in(const struct sso *s, const char *why, struct err *e)
{
	(void)err_set(e, ERR_DENIED, 0, "%s: log in with `aws sso login --profile %.80s`", why,
		      s->profile);
	return -EACCES;
}

/* --- what the profile says --- */

static const char *session_value(const struct aws *a, const char *session, const char *key)
{
	const char *v = ini_get(&a->set.config, INI_SSO_SESSION, session, key, NULL);

	return v && *v ? v : NULL;
}

/* 0: not an SSO profile. 1: S is filled in. */
static int read_profile(const struct aws *a, const char *profile, struct sso *s, struct err *e)
{
	const struct aws_settings *set = &a->set;

	*s = (struct sso){ .profile = profile,
			   .session = settings_get(set, profile, "sso_session"),
			   .start_url = settings_get(set, profile, "sso_start_url"),
			   .region = settings_get(set, profile, "sso_region"),
			   .account = settings_get(set, profile, "sso_account_id"),
			   .role = settings_get(set, profile, "sso_role_name") };
	if (!s->session && !s->start_url)
		return 0;
	if (s->session) {
		s->start_url = session_value(a, s->session, "sso_start_url");
		s->region = session_value(a, s->session, "sso_region");
	}
	if (!s->start_url || !s->region || !s->account || !s->role)
		return err_set(e, ERR_INVALID, 0,
			       "the profile '%.80s' lacks a part of its SSO settings (start URL, "
			       "region, account, role)",
			       profile);
	return 1;
}

static int cache_path(struct sso *s, struct err *e)
{
	const char *key = s->session ? s->session : s->start_url;
	unsigned char h[br_sha1_SIZE];
	char hex[2 * br_sha1_SIZE + 1], rest[80];
	br_sha1_context c;

	br_sha1_init(&c);
	br_sha1_update(&c, key, strlen(key));
	br_sha1_out(&c, h);
	str_hex(h, sizeof(h), hex);
	ignore_result(str_format(rest, sizeof(rest), ".aws/sso/cache/%s.json", hex)); /* it fits */
	return settings_home(rest, s->path, e);
}

/* --- the token --- */

static int put_token(struct sso *s, const cJSON *answer)
{
	const char *refresh = text_of(answer, "refreshToken");
	const cJSON *in = cJSON_GetObjectItemCaseSensitive(answer, "expiresIn");
	time_t t = (time_t)(aws_now_s() + (cJSON_IsNumber(in) ? in->valueint : 0));
	char when[32];
	struct tm tm;
	AUTO_BUF b;
	int r;

	buf_init(&b, CREDS_FILE_MAX);
	if (!text_of(answer, "accessToken") || !cJSON_IsNumber(in) || !gmtime_r(&t, &tm) ||
	    !strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%SZ", &tm))
		return -EBADMSG;
	cJSON_DeleteItemFromObjectCaseSensitive(s->cache, "accessToken");
	cJSON_DeleteItemFromObjectCaseSensitive(s->cache, "expiresAt");
	if (refresh)
		cJSON_DeleteItemFromObjectCaseSensitive(s->cache, "refreshToken");
	if (!jsn_add_str(s->cache, "accessToken", text_of(answer, "accessToken")) ||
	    !jsn_add_str(s->cache, "expiresAt", when) ||
	    (refresh && !jsn_add_str(s->cache, "refreshToken", refresh)))
		return -ENOMEM;
	r = pretty_json(s->cache, &b);
	/* Without the file the next asb renews it again: no reason to fail. */
	if (r == 0)
		ignore_result(fd_replace_file(s->path, b.p, b.len, 0600));
	return r;
}

static int renew_token(struct aws *a, struct sso *s)
{
	static const char *const names[] = { "clientId", "clientSecret", "refreshToken" };
	struct aws_call c = { .service = &aws_sso_oidc,
			      .what = "CreateToken",
			      .region = s->region,
			      .method = "POST",
			      .path = "/token",
			      .content_type = "application/json",
			      .limit_ns = LIMIT_NS };
	AUTO_JSN *q = cJSON_CreateObject();
	struct aws_answer w = { .attempts = 0 };
	char *text;
	int r = q && jsn_add_str(q, "grantType", "refresh_token") ? 0 : -ENOMEM;

	for (size_t i = 0; r == 0 && i < ARRAY_LEN(names); i++) {
		const char *v = text_of(s->cache, names[i]);

		r = !v ? -ENOENT : jsn_add_str(q, names[i], v) ? 0 : -ENOMEM;
	}
	if (r < 0)
		return r;
	text = cJSON_PrintUnformatted(q);
	if (!text)
		return -ENOMEM;
	c.body = text;
	c.body_len = strlen(text);
	r = aws_call(a, &c, &w, NULL);
	if (r == 0)
		r = put_token(s, w.json);
	aws_answer_done(&w);
	explicit_bzero(text, strlen(text));
	cJSON_free(text);
	return r;
}

static int read_token(struct aws *a, struct sso *s, struct err *e)
{
	int64_t left;
	int r = cache_path(s, e);

	if (r == 0)
		r = creds_read_json(s->path, &s->cache, e);
	if (r < 0)
		return r;
	if (r == 0 || !text_of(s->cache, "accessToken"))
		return log_in(s, "there is no SSO token", e);
	left = time_of(s->cache, "expiresAt") - aws_now_s();
	if (left < RENEW_S && s->session &&
	    time_of(s->cache, "registrationExpiresAt") > aws_now_s() && renew_token(a, s) == 0)
		left = RENEW_S;
	return left > 0 ? 0 : log_in(s, "the SSO token has expired", e);
}

/* --- credentials for it --- */

static int role_credentials(struct aws *a, const struct sso *s, struct aws_creds *ret,
			    struct err *e)
{
	static const struct creds_members members = { "accessKeyId", "secretAccessKey",
						      "sessionToken", "expiration" };
	struct aws_call c = { .service = &aws_sso,
			      .what = "GetRoleCredentials",
			      .region = s->region,
			      .method = "GET",
			      .path = "/federation/credentials",
			      .extra = { "x-amz-sso_bearer_token",
					 text_of(s->cache, "accessToken") },
			      .limit_ns = LIMIT_NS };
	struct aws_answer w = { .attempts = 0 };
	char source[CREDS_SOURCE_MAX];
	AUTO_BUF query;
	int r;

	buf_init(&query, 4096);
	r = buf_adds(&query, "role_name=");
	if (r == 0)
		r = sigv4_encode(&query, s->role, strlen(s->role), "");
	if (r == 0)
		r = buf_adds(&query, "&account_id=");
	if (r == 0)
		r = sigv4_encode(&query, s->account, strlen(s->account), "");
	if (r < 0)
		return err_set(e, ERR_INVALID, -r, "the SSO role");
	c.query = query.p;
	ignore_result(str_format(source, sizeof(source),
				 "profile %.40s, SSO role %.60s in account %.40s", s->profile,
				 s->role, s->account)); /* it fits */
	r = aws_call(a, &c, &w, e);
	if (r == -EACCES && w.reply.status == 401)
		r = log_in(s, "the SSO token is not valid any more", e);
	if (r == 0)
		r = creds_from_json(ret,
				    cJSON_GetObjectItemCaseSensitive(w.json, "roleCredentials"),
				    &members, source, e);
	aws_answer_done(&w);
	return r;
}

int creds_sso(struct aws *a, const char *profile, struct aws_creds *ret, struct err *e)
{
	struct sso s;
	int r = read_profile(a, profile, &s, e);

	if (r <= 0)
		return r;
	r = read_token(a, &s, e);
	if (r == 0)
		r = role_credentials(a, &s, ret, e);
	cJSON_Delete(s.cache);
	return r;
}

/* --- aws login --- */

int creds_login(struct aws *a, const char *profile, struct aws_creds *ret, struct err *e)
{
	static const struct creds_members members = { "accessKeyId", "secretAccessKey",
						      "sessionToken", "expiresAt" };
	const char *session = settings_get(&a->set, profile, "login_session");
	const char *dir = settings_env("AWS_LOGIN_CACHE_DIRECTORY");
	char hash[SIGV4_HASH_LEN + 1], path[PATH_MAX], rest[120], source[CREDS_SOURCE_MAX];
	AUTO_JSN *cache = NULL;
	int r;

	if (!session)
		return 0;
	sigv4_hash(session, strlen(session), hash);
	if (dir)
		r = str_format(path, sizeof(path), "%s/%s.json", dir, hash);
	else
		r = str_format(rest, sizeof(rest), ".aws/login/cache/%s.json", hash);
	if (r < 0)
		return err_set(e, ERR_INVALID, -r, "AWS_LOGIN_CACHE_DIRECTORY");
	if (!dir)
		r = settings_home(rest, path, e);
	if (r == 0)
		r = creds_read_json(path, &cache, e);
	if (r < 0)
		return r;
	ignore_result(str_format(source, sizeof(source), "profile %.60s, aws login",
				 profile)); /* it fits */
	if (r > 0)
		r = creds_from_json(ret, cJSON_GetObjectItemCaseSensitive(cache, "accessToken"),
				    &members, source, e);
	if (r > 0 && ret->expires_s > aws_now_s())
		return r;
	if (r > 0)
		aws_creds_done(ret);
	return r < 0 ? r
		     : err_set(e, ERR_DENIED, 0,
			       "not logged in, or not any more: `aws login --profile %.80s`",
			       profile);
}
