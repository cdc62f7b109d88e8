/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "host/aws/creds_int.h"
#include "host/aws/fetch.h"
#include "lib/str.h"

/*
 * Credentials that the machine has: of a container, by an endpoint on its link; of an EC2 instance (and of a MicroVM), by the
 * instance metadata service. Both are plain HTTP to addresses that a proxy must not see.
 */

#define SECOND	    1000000000LL
#define CONTAINER   "http://169.254.170.2"
#define IMDS_V4	    "http://169.254.169.254"
#define IMDS_V6	    "http://[fd00:ec2::254]"
#define TRIES	    3
#define URL_MAX_LEN 1024
#define TOKEN_MAX   8192
#define HEADER_MAX  (TOKEN_MAX + 64)

static const struct creds_members members = { "AccessKeyId", "SecretAccessKey", "Token",
					      "Expiration" };

/* --- container --- */

/* Where a token may be sent: anywhere by TLS, else only to this machine or the two addresses of the platforms. */
static bool is_allowed(const char *url)
{
	static const char *const hosts[] = { "localhost", "169.254.170.2", "169.254.170.23",
					     "[fd00:ec2::23]", "[::1]" };
	const char *host;
	size_t n;

	if (str_starts(url, "https://"))
		return true;
	if (!str_starts(url, "http://") || strchr(url, '@'))
		return false;
	host = url + strlen("http://");
	n = *host == '[' ? strcspn(host, "]/") + 1 : strcspn(host, ":/?");
	for (size_t i = 0; i < ARRAY_LEN(hosts); i++)
		if (n == strlen(hosts[i]) && memcmp(host, hosts[i], n) == 0)
			return true;
	return n > 4 && memcmp(host, "127.", 4) == 0 && strspn(host, "0123456789.") == n;
}

static int container_token(struct buf *b, struct err *e)
{
	const char *file = settings_env("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE");
	const char *token = settings_env("AWS_CONTAINER_AUTHORIZATION_TOKEN");
	AUTO_BUF text;
	int r;

	buf_init(&text, TOKEN_MAX);
	if (!file && !token)
		return 0;
	if (file) {
		r = creds_read_text(file, &text, e);
		if (r < 0)
			return r;
		token = text.p ? text.p : "";
	}
	if (strpbrk(token, "\r\n"))
		return err_set(e, ERR_INVALID, 0,
			       "the container's authorization token has a line break");
	r = buf_addf(b, "Authorization: %s", token);
	return r < 0 ? err_set(e, ERR_INVALID, -r, "the container's token") : 0;
}

int creds_container(struct aws *a, struct aws_creds *ret, struct err *e)
{
	const char *relative = settings_env("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
	const char *full = settings_env("AWS_CONTAINER_CREDENTIALS_FULL_URI");
	const char *headers[3] = { "Accept: application/json" };
	char url[URL_MAX_LEN];
	struct fetch_request q = { .method = "GET",
				   .url = url,
				   .headers = headers,
				   .connect_ns = 2 * SECOND,
				   .limit_ns = 2 * SECOND,
				   .direct = true };
	struct fetch_reply w = { .status = 0 };
	AUTO_BUF token;
	int r;

	buf_init(&token, HEADER_MAX);
	if (!relative && !full)
		return 0;
	if (str_format(url, sizeof(url), "%s%s", relative ? CONTAINER : full,
		       relative ? relative : "") < 0 ||
	    !is_allowed(url) || strpbrk(url, " \r\n"))
		return err_set(e, ERR_INVALID, 0,
			       "the container's credentials are not at an allowed URL");
	r = container_token(&token, e);
	if (r < 0)
		return r;
	headers[1] = token.p;
	for (int i = 0; i < TRIES; i++) {
		fetch_reply_done(&w);
		r = fetch_do(a->fetch, &q, &w, e);
		if (r == 0 && w.status < 500)
			break;
		if (i + 1 < TRIES && fetch_sleep(a->fetch, SECOND) < 0)
			break;
	}
	if (r == 0 && w.status != 200)
		r = err_set(e, ERR_DENIED, 0, "the container's credentials: HTTP %d", w.status);
	if (r == 0) {
		AUTO_JSN *j = jsn_parse(w.body.p ? w.body.p : "", w.body.len, NULL);

		r = creds_from_json(ret, j, &members, "container", e);
	}
	fetch_reply_done(&w);
	return r;
}

/* --- instance metadata --- */

static const char *imds_base(void)
{
	const char *own = settings_env("AWS_EC2_METADATA_SERVICE_ENDPOINT");
	const char *mode = settings_env("AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE");

	if (own)
		return own;
	return mode && strcasecmp(mode, "ipv6") == 0 ? IMDS_V6 : IMDS_V4;
}

static bool imds_off(const char *variable)
{
	const char *v = settings_env(variable);

	return v && strcasecmp(v, "true") == 0;
}

static int imds_ask(struct aws *a, const char *method, const char *path, const char *header,
		    struct fetch_reply *ret)
{
	const char *timeout = settings_env("AWS_METADATA_SERVICE_TIMEOUT");
	const char *headers[2] = { header, NULL }, *base = imds_base();
	size_t n = strlen(base);
	char url[URL_MAX_LEN];
	int64_t limit = SECOND;
	struct fetch_request q = {
		.method = method, .url = url, .headers = headers, .direct = true
	};

	*ret = (struct fetch_reply){ .status = 0 };
	while (n && base[n - 1] == '/')
		n--;
	if (timeout && str_to_ns(timeout, 60, &limit) < 0)
		limit = SECOND;
	q.connect_ns = q.limit_ns = limit;
	if (str_format(url, sizeof(url), "%.*s%s", (int)n, base, path) < 0 ||
	    (!str_starts(url, "http://") && !str_starts(url, "https://")))
		return -EINVAL;
	return fetch_do(a->fetch, &q, ret, NULL);
}

/* The header that later questions need, "" for version 1. 0, or negative: nobody is there. */
static int imds_token(struct aws *a, struct buf *ret)
{
	struct fetch_reply w;
	int r = imds_ask(a, "PUT", "/latest/api/token",
			 "x-aws-ec2-metadata-token-ttl-seconds: 21600", &w);

	/* Where it is refused, version 1 may answer; where nobody answers, nobody will. */
	if (r == 0 && w.status == 200 && w.body.len && !strpbrk(w.body.p, "\r\n"))
		r = buf_addf(ret, "x-aws-ec2-metadata-token: %s", w.body.p);
	else if (r == 0 && (w.status == 400 || imds_off("AWS_EC2_METADATA_V1_DISABLED")))
		r = -EIO;
	fetch_reply_done(&w);
	return r;
}

/* The text at PATH. 1, 0 (none), or negative. */
static int imds_text(struct aws *a, const char *path, const char *header, struct buf *ret)
{
	struct fetch_reply w;
	int r = imds_ask(a, "GET", path, header, &w);

	if (r == 0 && w.status == 200 && w.body.len)
		r = buf_add(ret, w.body.p, w.body.len) < 0 ? -EMSGSIZE : 1;
	fetch_reply_done(&w);
	return r;
}

#define ROLES "/latest/meta-data/iam/security-credentials/"

int creds_imds(struct aws *a, struct aws_creds *ret, struct err *e)
{
	char path[512], source[CREDS_SOURCE_MAX];
	AUTO_BUF header, role, doc;
	AUTO_JSN *j = NULL;
	int r;

	buf_init(&header, HEADER_MAX);
	buf_init(&role, 256);
	buf_init(&doc, CREDS_FILE_MAX);
	if (imds_off("AWS_EC2_METADATA_DISABLED") || imds_token(a, &header) < 0)
		return 0;
	r = imds_text(a, ROLES, header.p, &role);
	if (r <= 0)
		return 0; /* an instance without a role */
	role.p[strcspn(role.p, "\r\n")] = '\0';
	if (strpbrk(role.p, "/?# ") || str_format(path, sizeof(path), ROLES "%s", role.p) < 0)
		return 0;
	r = imds_text(a, path, header.p, &doc);
	if (r <= 0)
		return err_set(e, ERR_DENIED, r < 0 ? -r : 0, "instance role %.100s", role.p);
	j = jsn_parse(doc.p, doc.len, NULL);
	ignore_result(
		str_format(source, sizeof(source), "instance role %.100s", role.p)); /* it fits */
	return creds_from_json(ret, j, &members, source, e);
}

int creds_imds_region(struct aws *a, char *ret, size_t size)
{
	AUTO_BUF header, region;

	buf_init(&header, HEADER_MAX);
	buf_init(&region, 256);
	if (imds_off("AWS_EC2_METADATA_DISABLED") || imds_token(a, &header) < 0 ||
	    imds_text(a, "/latest/meta-data/placement/region", header.p, &region) != 1)
		return 0;
	return str_format(ret, size, "%s", region.p) < 0 ? 0 : 1;
}
