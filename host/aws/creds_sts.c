/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "host/aws/call.h"
#include "host/aws/creds_int.h"
#include "host/aws/sigv4.h"
#include "lib/str.h"

/*
 * Roles, by STS (API version 2011-06-15). Its protocol answers in XML, and in JSON of the same members to who accepts only that
 * (docs/decisions/0011-sts-in-json.md): {"AssumeRoleResponse": {"AssumeRoleResult": {"Credentials": {…}}}}.
 */

#define FORM_MAX  (64U << 10)
#define TOKEN_MAX (32U << 10)
#define SESSION	  "asb-%lld"
#define FORM_TYPE "application/x-www-form-urlencoded; charset=utf-8"
#define LIMIT_NS  (30LL * 1000000000)

static int add_param(struct buf *b, const char *name, const char *value)
{
	int r = value ? buf_addf(b, "&%s=", name) : 0;

	return r < 0 || !value ? r : sigv4_encode(b, value, strlen(value), "");
}

struct assume {
	const char *action; /* "AssumeRole" */
	const char *role, *session, *external_id, *duration, *web_token;
	const struct aws_creds *creds; /* NULL: not signed */
	const char *source;	       /* for people */
};

static const cJSON *member(const cJSON *o, const char *prefix, const char *suffix)
{
	char name[80];

	if (str_format(name, sizeof(name), "%s%s", prefix, suffix) < 0)
		return NULL;
	return cJSON_GetObjectItemCaseSensitive(o, name);
}

static int ask(struct aws *a, const struct assume *q, struct aws_creds *ret, struct err *e)
{
	static const struct creds_members members = { "AccessKeyId", "SecretAccessKey",
						      "SessionToken", "Expiration" };
	struct aws_call c = { .service = q->creds ? &aws_sts : &aws_sts_unsigned,
			      .what = q->action,
			      .method = "POST",
			      .path = "/",
			      .content_type = FORM_TYPE,
			      .accept = "application/json",
			      .creds = q->creds,
			      .limit_ns = LIMIT_NS };
	struct aws_answer w = { .attempts = 0 };
	AUTO_BUF form;
	const cJSON *o;
	int r;

	buf_init(&form, FORM_MAX);
	r = buf_addf(&form, "Action=%s&Version=2011-06-15", q->action);
	if (r == 0)
		r = add_param(&form, "RoleArn", q->role);
	if (r == 0)
		r = add_param(&form, "RoleSessionName", q->session);
	if (r == 0)
		r = add_param(&form, "ExternalId", q->external_id);
	if (r == 0)
		r = add_param(&form, "DurationSeconds", q->duration);
	if (r == 0)
		r = add_param(&form, "WebIdentityToken", q->web_token);
	if (r < 0)
		return err_set(e, ERR_INTERNAL, -r, "%s", q->action);
	c.body = form.p;
	c.body_len = form.len;
	r = aws_call(a, &c, &w, e);
	if (r == 0) {
		o = member(member(w.json, q->action, "Response"), q->action, "Result");
		r = creds_from_json(ret, cJSON_GetObjectItemCaseSensitive(o, "Credentials"),
				    &members, q->source, e);
	}
	explicit_bzero(form.p, form.len);
	aws_answer_done(&w);
	return r < 0 ? err_wrap(e, "%s", q->source) : r;
}

static int session_name(const char *given, char *out, size_t size)
{
	return given ? str_format(out, size, "%s", given)
		     : str_format(out, size, SESSION, (long long)aws_now_s());
}

/* --- AssumeRole --- */

static int from_source(struct aws *a, const char *source, struct aws_creds *ret, struct err *e)
{
	int r;

	if (strcmp(source, "Environment") == 0)
		r = creds_environment(ret, e);
	else if (strcmp(source, "EcsContainer") == 0)
		r = creds_container(a, ret, e);
	else if (strcmp(source, "Ec2InstanceMetadata") == 0)
		r = creds_imds(a, ret, e);
	else
		return err_set(e, ERR_INVALID, 0, "credential_source = %.60s is not known", source);
	return r ? r
		 : err_set(e, ERR_DENIED, 0, "credential_source = %.60s has no credentials",
			   source);
}

/* What the role is assumed with. A profile that names itself means its own keys. */
static int base_creds(struct aws *a, const char *profile, unsigned depth, struct aws_creds *ret,
		      struct err *e)
{
	const char *named = settings_get(&a->set, profile, "source_profile");
	const char *source = settings_get(&a->set, profile, "credential_source");
	const char *key, *secret;
	int r;

	if (!named == !source)
		return err_set(e, ERR_INVALID, 0,
			       "the profile '%.80s' has a role_arn and %s source_profile %s "
			       "credential_source",
			       profile, named ? "both" : "neither", named ? "and" : "nor");
	if (source)
		return from_source(a, source, ret, e);
	if (depth >= CREDS_DEPTH_MAX)
		return err_set(e, ERR_INVALID, ELOOP, "the source_profile of '%.80s'", profile);
	if (strcmp(named, profile) == 0) {
		key = settings_get(&a->set, profile, "aws_access_key_id");
		secret = settings_get(&a->set, profile, "aws_secret_access_key");
		if (!key || !secret)
			return err_set(e, ERR_INVALID, 0,
				       "the profile '%.80s' is its own source_profile and has no "
				       "keys",
				       profile);
		r = creds_set(ret, key, secret, settings_get(&a->set, profile, "aws_session_token"),
			      0, "profile");
		return r < 0 ? err_set(e, ERR_INTERNAL, -r, "credentials") : r;
	}
	if (!settings_has_profile(&a->set, named))
		return err_set(e, ERR_NOT_FOUND, 0,
			       "the source_profile '%.80s' of the profile '%.80s' does not exist",
			       named, profile);
	r = creds_profile(a, named, depth + 1, ret, e);
	return r ? r : err_set(e, ERR_DENIED, 0, "the profile '%.80s' has no credentials", named);
}

int creds_role(struct aws *a, const char *profile, unsigned depth, struct aws_creds *ret,
	       struct err *e)
{
	const struct aws_settings *s = &a->set;
	struct assume q = { .action = "AssumeRole",
			    .role = settings_get(s, profile, "role_arn"),
			    .external_id = settings_get(s, profile, "external_id"),
			    .duration = settings_get(s, profile, "duration_seconds") };
	struct aws_creds base = { .key_id = NULL };
	char session[80], source[CREDS_SOURCE_MAX];
	int r;

	if (!q.role || settings_get(s, profile, "web_identity_token_file"))
		return 0;
	if (settings_get(s, profile, "mfa_serial"))
		return err_set(e, ERR_UNSUPPORTED, 0,
			       "the profile '%.80s' wants a code of an MFA device: asb cannot ask "
			       "for it (aws sts get-session-token can)",
			       profile);
	if (session_name(settings_get(s, profile, "role_session_name"), session, sizeof(session)) <
		    0 ||
	    str_format(source, sizeof(source), "profile %.40s, role %.140s", profile, q.role) < 0)
		return err_set(e, ERR_INVALID, ENAMETOOLONG, "the profile '%.80s'", profile);
	r = base_creds(a, profile, depth, &base, e);
	if (r < 0)
		return r;
	q.session = session;
	q.source = source;
	q.creds = &base;
	r = ask(a, &q, ret, e);
	aws_creds_done(&base);
	return r;
}

/* --- AssumeRoleWithWebIdentity --- */

int creds_web_identity(struct aws *a, const char *profile, struct aws_creds *ret, struct err *e)
{
	const struct aws_settings *s = &a->set;
	const char *file = settings_get(s, profile, "web_identity_token_file");
	const char *name = settings_get(s, profile, "role_session_name");
	struct assume q = { .action = "AssumeRoleWithWebIdentity",
			    .role = settings_get(s, profile, "role_arn") };
	char session[80], source[CREDS_SOURCE_MAX];
	AUTO_BUF token;
	int r;

	buf_init(&token, TOKEN_MAX);
	if (!file && !s->profile_given) {
		file = settings_env("AWS_WEB_IDENTITY_TOKEN_FILE");
		q.role = settings_env("AWS_ROLE_ARN");
		name = settings_env("AWS_ROLE_SESSION_NAME");
	}
	if (!file)
		return 0;
	if (!q.role)
		return err_set(e, ERR_INVALID, 0,
			       "a web identity token is given without a role's ARN");
	if (session_name(name, session, sizeof(session)) < 0 ||
	    str_format(source, sizeof(source), "web identity, role %.140s", q.role) < 0)
		return err_set(e, ERR_INVALID, ENAMETOOLONG, "the web identity");
	r = creds_read_text(file, &token, e);
	if (r < 0)
		return r;
	q.web_token = token.p ? token.p : "";
	q.session = session;
	q.source = source;
	r = ask(a, &q, ret, e);
	if (token.p)
		explicit_bzero(token.p, token.len);
	return r;
}
