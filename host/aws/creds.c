/* SPDX-License-Identifier: Apache-2.0 */
#include "host/aws/creds.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "host/aws/creds_int.h"
#include "lib/fd.h"
#include "lib/str.h"

/*
 * The chain: environment; then what the profile says (a role, a web identity, SSO, keys of the credentials file, `aws login`, a program,
 * keys of the config file); then the container's endpoint; then the instance metadata service. A web identity in the
 * environment (EKS) comes after a role of the profile.
 */

#define RENEW_S 300 /* that long before they expire */

static void wipe(char **s)
{
	if (*s)
		explicit_bzero(*s, strlen(*s));
	free(*s);
	*s = NULL;
}

void aws_creds_done(struct aws_creds *c)
{
	wipe(&c->key_id);
	wipe(&c->secret);
	wipe(&c->token);
	c->expires_s = 0;
}

/* --- making them --- */

int creds_set(struct aws_creds *ret, const char *key_id, const char *secret, const char *token,
	      int64_t expires_s, const char *source_fmt, ...)
{
	va_list ap;

	*ret = (struct aws_creds){ .key_id = strdup(key_id),
				   .secret = strdup(secret),
				   .token = token && *token ? strdup(token) : NULL,
				   .expires_s = expires_s };
	va_start(ap, source_fmt);
	(void)vsnprintf(ret->source, sizeof(ret->source), source_fmt, ap);
	va_end(ap);
	if (ret->key_id && ret->secret && (ret->token || !token || !*token))
		return 1;
	aws_creds_done(ret);
	return -ENOMEM;
}

int creds_time(const char *s, int64_t *ret)
{
	struct tm tm = { .tm_isdst = 0 }, zone = { .tm_isdst = 0 };
	const char *p = strptime(s, "%Y-%m-%dT%H:%M:%S", &tm), *end;
	int64_t off = 0;

	if (!p)
		return -EINVAL;
	if (*p == '.')
		p += 1 + strspn(p + 1, "0123456789");
	end = *p == '+' || *p == '-' ? strptime(p + 1, "%H:%M", &zone) : NULL;
	if (end && !*end)
		off = (*p == '-' ? -60 : 60) * (int64_t)(zone.tm_hour * 60 + zone.tm_min);
	else if (strcmp(p, "Z") != 0 && strcmp(p, "UTC") != 0)
		return -EINVAL;
	*ret = (int64_t)timegm(&tm) - off;
	return 0;
}

static int read_expiry(const cJSON *o, const char *name, int64_t *ret)
{
	const cJSON *j = name ? cJSON_GetObjectItemCaseSensitive(o, name) : NULL;

	*ret = 0;
	if (!j || cJSON_IsNull(j))
		return 0;
	if (cJSON_IsNumber(j)) {
		double d = cJSON_GetNumberValue(j);

		if (!(d >= 0 && d < 1e15))
			return -EINVAL;
		*ret = (int64_t)(d > 1e11 ? d / 1000 : d); /* SSO tells milliseconds */
		return 0;
	}
	return cJSON_IsString(j) ? creds_time(cJSON_GetStringValue(j), ret) : -EINVAL;
}

int creds_from_json(struct aws_creds *ret, const cJSON *o, const struct creds_members *m,
		    const char *source, struct err *e)
{
	const char *key = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(o, m->key));
	const char *secret = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(o, m->secret));
	const char *token = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(o, m->token));
	int64_t expires;
	int r;

	if (!key || !*key || !secret || !*secret)
		return err_set(e, ERR_INVALID, 0, "%s gives no %s and %s", source, m->key,
			       m->secret);
	if (read_expiry(o, m->expires, &expires) < 0)
		return err_set(e, ERR_INVALID, 0, "%s gives an %s that is no time", source,
			       m->expires);
	r = creds_set(ret, key, secret, token, expires, "%s", source);
	return r < 0 ? err_set(e, ERR_INTERNAL, -r, "%s", source) : r;
}

int creds_read_text(const char *path, struct buf *b, struct err *e)
{
	int r = fd_read_file(AT_FDCWD, path, b);

	if (r < 0)
		return err_set(e, ERR_IO, -r, "cannot read %.300s", path);
	while (b->len && strchr(" \t\r\n", b->p[b->len - 1]))
		b->p[--b->len] = '\0';
	return 0;
}

int creds_read_json(const char *path, cJSON **ret, struct err *e)
{
	struct err why = ERR_INIT;
	AUTO_BUF b;
	int r;

	buf_init(&b, CREDS_FILE_MAX);
	r = fd_read_file(AT_FDCWD, path, &b);
	if (r == -ENOENT)
		return 0;
	if (r < 0)
		return err_set(e, ERR_IO, -r, "cannot read %.300s", path);
	*ret = jsn_parse(b.p ? b.p : "", b.len, &why);
	if (b.p)
		explicit_bzero(b.p, b.len);
	return *ret ? 1 : err_set(e, ERR_INVALID, 0, "%.300s: %.200s", path, why.msg);
}

/* --- environment and files --- */

int creds_environment(struct aws_creds *ret, struct err *e)
{
	const char *key = settings_env("AWS_ACCESS_KEY_ID");
	const char *secret = settings_env("AWS_SECRET_ACCESS_KEY");
	const char *token = settings_env("AWS_SECURITY_TOKEN"); /* its old name, asked first */
	const char *expiry = settings_env("AWS_CREDENTIAL_EXPIRATION");
	int64_t expires = 0;
	int r;

	if (!key)
		return 0;
	if (!secret)
		return err_set(e, ERR_DENIED, 0,
			       "AWS_ACCESS_KEY_ID is set without AWS_SECRET_ACCESS_KEY");
	if (expiry && creds_time(expiry, &expires) < 0)
		return err_set(e, ERR_INVALID, 0, "AWS_CREDENTIAL_EXPIRATION is no time");
	if (!token)
		token = settings_env("AWS_SESSION_TOKEN");
	r = creds_set(ret, key, secret, token, expires, "environment");
	return r < 0 ? err_set(e, ERR_INTERNAL, -r, "credentials") : r;
}

static int static_keys(const struct ini *file, const char *path, const char *profile,
		       struct aws_creds *ret, struct err *e)
{
	const char *key = ini_get(file, INI_PROFILE, profile, "aws_access_key_id", NULL);
	const char *secret = ini_get(file, INI_PROFILE, profile, "aws_secret_access_key", NULL);
	const char *token = ini_get(file, INI_PROFILE, profile, "aws_session_token", NULL);
	int r;

	if (!key || !*key)
		return 0;
	if (!secret || !*secret)
		return err_set(e, ERR_DENIED, 0,
			       "the profile '%.80s' in %.200s has an aws_access_key_id and no "
			       "aws_secret_access_key",
			       profile, path);
	r = creds_set(ret, key, secret, token, 0, "profile %.60s in %.100s", profile, path);
	return r < 0 ? err_set(e, ERR_INTERNAL, -r, "credentials") : r;
}

int creds_profile(struct aws *a, const char *profile, unsigned depth, struct aws_creds *ret,
		  struct err *e)
{
	const struct aws_settings *s = &a->set;
	int r = creds_role(a, profile, depth, ret, e);

	if (r == 0)
		r = creds_web_identity(a, profile, ret, e);
	if (r == 0)
		r = creds_sso(a, profile, ret, e);
	if (r == 0)
		r = static_keys(&s->credentials, s->credentials_path, profile, ret, e);
	if (r == 0)
		r = creds_login(a, profile, ret, e);
	if (r == 0)
		r = creds_process(a, profile, ret, e);
	if (r == 0)
		r = static_keys(&s->config, s->config_path, profile, ret, e);
	return r;
}

/* --- the chain --- */

int creds_find(struct aws *a, bool quick, struct aws_creds *ret, struct err *e)
{
	int r = a->set.profile_given ? 0 : creds_environment(ret, e);

	if (r == 0)
		r = creds_profile(a, a->set.profile, 0, ret, e);
	if (r == 0)
		r = creds_container(a, ret, e);
	if (r == 0 && !quick)
		r = creds_imds(a, ret, e);
	if (r != 0)
		return r < 0 ? r : 0;
	(void)err_set(e, ERR_DENIED, 0,
		      "no AWS credentials: neither the environment, nor the profile '%.80s', nor a "
		      "container or instance role has any (set AWS_PROFILE, or log in with the "
		      "aws command; asb doctor shows what asb finds)",
		      a->set.profile);
	if (e)
		e->errnum = ENOKEY;
	return -ENOKEY;
}

int creds_now(struct aws *a, bool fresh, const struct aws_creds **ret, struct err *e)
{
	struct aws_creds *c = &a->creds, found;
	int64_t now = aws_now_s();
	bool have = c->key_id != NULL;
	int r;

	if (have && !fresh && (!c->expires_s || c->expires_s - now > RENEW_S)) {
		*ret = c;
		return 0;
	}
	r = creds_find(a, false, &found, e);
	/* Those that are still good for a while do, when new ones cannot be had. */
	if (r < 0 && !(have && !fresh && c->expires_s > now))
		return r;
	if (r == 0) {
		aws_creds_done(c);
		*c = found;
	}
	*ret = c;
	return 0;
}
