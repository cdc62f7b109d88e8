/* SPDX-License-Identifier: Apache-2.0 */
#include "host/aws/token.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host/aws/call.h"
#include "host/aws/ops.h"
#include "host/aws/sigv4.h"
#include "host/state/state.h"
#include "lib/fd.h"
#include "lib/pretty.h"
#include "lib/str.h"

#define FILE_MAX (64U << 10)

int token_url(const char *endpoint, bool own, char ret[static BACKEND_URL_MAX], struct err *e)
{
	static const char ok[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-.";
	const char *host = str_starts(endpoint, "https://") ? endpoint + 8 : endpoint;
	size_t n = strspn(host, ok);
	static const char aws[] = ".on.aws";
	uint64_t port;
	bool good = n > 0 && (!host[n] ||
			      (host[n] == ':' && str_to_u64(host + n + 1, 1, 65535, &port) == 0));

	if (good && own)
		good = !host[n] && n > strlen(aws) && strcmp(host + n - strlen(aws), aws) == 0;
	if (!good || str_format(ret, BACKEND_URL_MAX, "https://%s", host) < 0)
		return err_set(e, ERR_INVALID, 0, "'%.100s' is not the endpoint of a MicroVM",
			       endpoint);
	return 0;
}

/* --- the kept ones --- */

#define ID_HASH	   32 /* hexadecimal digits of the name of a file */
#define PORTS_HASH 16

static int open_dir(char ret[static PATH_MAX], struct err *e)
{
	const char *dir;
	int r = state_dir(&dir, e);

	if (r < 0)
		return r;
	if (str_format(ret, PATH_MAX, "%s/aws/tokens", dir) < 0 || fd_mkdirs(ret, 0700) < 0)
		return err_set(e, ERR_IO, errno ? errno : ENAMETOOLONG, "%s/aws/tokens", dir);
	return 0;
}

/* In order, so that the same set has the same file. */
static int by_number(const void *a, const void *b)
{
	return *(const uint16_t *)a - *(const uint16_t *)b;
}

static int file_path(const char *id, const struct backend_ports *ports, char ret[static PATH_MAX],
		     struct err *e)
{
	char of_id[SIGV4_HASH_LEN + 1], of_ports[SIGV4_HASH_LEN + 1];
	struct backend_ports sorted = *ports;
	size_t n;
	int r = open_dir(ret, e);

	if (r < 0)
		return r;
	qsort(sorted.port, sorted.len, sizeof(sorted.port[0]), by_number);
	sigv4_hash(id, strlen(id), of_id);
	sigv4_hash(sorted.port, sorted.len * sizeof(sorted.port[0]), of_ports);
	n = strlen(ret);
	if (str_format(ret + n, PATH_MAX - n, "/%.*s-%.*s.json", ID_HASH, of_id, PORTS_HASH,
		       of_ports) < 0)
		return err_set(e, ERR_IO, ENAMETOOLONG, "%s", ret);
	return 0;
}

void token_forget(const char *id)
{
	char path[PATH_MAX], hash[SIGV4_HASH_LEN + 1];
	DIR *dir = open_dir(path, NULL) == 0 ? opendir(path) : NULL;
	struct dirent *d;
	struct stat st;

	if (!dir)
		return;
	sigv4_hash(id, strlen(id), hash);
	while ((d = readdir(dir)))
		if (d->d_name[0] != '.' &&
		    (strncmp(d->d_name, hash, ID_HASH) == 0 ||
		     (fstatat(dirfd(dir), d->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		      aws_now_s() - st.st_mtime > TOKEN_MINUTES * 60)))
			(void)unlinkat(dirfd(dir), d->d_name, 0);
	(void)closedir(dir);
}

static int add_headers(const cJSON *o, struct backend_route *ret)
{
	const cJSON *h;
	size_t n = 0;
	AUTO_BUF b;

	buf_init(&b, FILE_MAX);
	cJSON_ArrayForEach(h, o)
	{
		const char *v = cJSON_GetStringValue(h);

		if (!v || n == BACKEND_ROUTE_HEADERS - 1 || strpbrk(v, "\r\n") ||
		    strpbrk(h->string, "\r\n:"))
			return -EBADMSG;
		if (buf_addf(&b, "%s: %s", h->string, v) < 0)
			return -EBADMSG;
		ret->headers[n] = buf_take(&b);
		if (!ret->headers[n++])
			return -ENOMEM;
	}
	return n ? 0 : -EBADMSG;
}

/* A WebSocket of a browser has no headers of its own; there the token is offered as subprotocols. */
static int add_protocols(uint16_t port, struct backend_route *ret)
{
	static const char auth[] = "X-aws-proxy-auth: ";
	AUTO_BUF b;

	buf_init(&b, FILE_MAX);
	for (size_t i = 0; ret->headers[i]; i++)
		if (strncasecmp(ret->headers[i], auth, strlen(auth)) == 0 &&
		    buf_addf(&b,
			     "lambda-microvms, lambda-microvms.authentication.%s, "
			     "lambda-microvms.port.%u",
			     ret->headers[i] + strlen(auth), port) < 0)
			return -ENOMEM;
	if (!b.len)
		return 0; /* a token of another kind */
	ret->protocols = buf_take(&b);
	return ret->protocols ? 0 : -ENOMEM;
}

static int add_port(uint16_t port, struct backend_route *ret)
{
	char text[40];
	size_t n = 0;

	while (ret->headers[n])
		n++;
	ignore_result(str_format(text, sizeof(text), "X-aws-proxy-port: %u", port)); /* it fits */
	ret->headers[n] = strdup(text);
	return ret->headers[n] ? 0 : -ENOMEM;
}

/* 1: RET is filled in. A file that is not as it should be is as if there were none. */
static int read_kept(const char *path, struct backend_route *ret)
{
	const char *url = NULL;
	uint64_t expires = 0;
	const cJSON *token = NULL;
	AUTO_BUF b;
	int r;

	buf_init(&b, FILE_MAX);
	if (fd_read_file(AT_FDCWD, path, &b) < 0 || b.len == 0)
		return 0;
	AUTO_JSN *j = jsn_parse(b.p, b.len, NULL);

	explicit_bzero(b.p, b.len);
	if (!j || jsn_str(j, "url", &url, NULL) != 1 || strcmp(url, ret->url) != 0 ||
	    jsn_u64(j, "expires", 0, 1ULL << 53, &expires, NULL) != 1 ||
	    (int64_t)expires - aws_now_s() < TOKEN_SPARE_S ||
	    (int64_t)expires - aws_now_s() > TOKEN_MINUTES * 60 ||
	    jsn_object(j, "token", &token, NULL) != 1)
		return 0;
	r = add_headers(token, ret);
	if (r < 0)
		backend_route_done(ret);
	return r == 0;
}

static void keep(const char *path, const char *url, cJSON *token)
{
	AUTO_JSN *j = cJSON_CreateObject();
	AUTO_BUF b;

	buf_init(&b, FILE_MAX);
	if (j && jsn_add_str(j, "url", url) &&
	    jsn_add_u64(j, "expires", (uint64_t)(aws_now_s() + TOKEN_MINUTES * 60)) &&
	    cJSON_AddItemReferenceToObject(j, "token", token) && pretty_json(j, &b) == 0)
		/* it only saves a call */
		ignore_result(fd_replace_file_lazy(path, b.p, b.len, 0600));
	if (b.p)
		explicit_bzero(b.p, b.len);
}

/* --- new ones --- */

static bool add_ports(cJSON *q, const struct backend_ports *ports)
{
	cJSON *list = cJSON_AddArrayToObject(q, "allowedPorts");

	for (size_t i = 0; list && i < ports->len; i++) {
		cJSON *one = cJSON_CreateObject();

		if (!one || !cJSON_AddItemToArray(list, one)) {
			cJSON_Delete(one);
			return false;
		}
		if (!jsn_add_u64(one, "port", ports->port[i]))
			return false;
	}
	return list != NULL;
}

static int mint(struct aws *a, const char *id, const struct backend_ports *ports, const char *path,
		struct backend_route *ret, struct err *e)
{
	AUTO_JSN *q = cJSON_CreateObject();
	struct aws_answer w = { .attempts = 0 };
	cJSON *token;
	int r;

	if (!q || !add_ports(q, ports) || !jsn_add_str(q, "microvmIdentifier", id) ||
	    !jsn_add_u64(q, "expirationInMinutes", TOKEN_MINUTES))
		return err_set(e, ERR_INTERNAL, ENOMEM, "asking for a token");
	r = ops_call(a, OP_CREATE_MICROVM_AUTH_TOKEN, q, &w, e);
	token = cJSON_GetObjectItemCaseSensitive(w.json, "authToken");
	if (r == 0) {
		r = add_headers(token, ret);
		if (r < 0)
			r = err_set(e, ERR_INTERNAL, -r, "the token that AWS gives");
	}
	if (r == 0)
		keep(path, ret->url, token);
	if (r == 0)
		backend_tell("got a token for %s, good for %d minutes", id, TOKEN_MINUTES);
	aws_answer_done(&w);
	return r;
}

static const char *const refusals[] = { "Request missing authentication",
					"Token authentication failed", "Access to port denied",
					NULL };

int token_route(struct aws *a, const char *id, const char *endpoint,
		const struct backend_ports *ports, bool fresh, struct backend_route *ret,
		struct err *e)
{
	char path[PATH_MAX];
	const char *own_endpoint;
	int r = settings_endpoint(&a->set, aws_lambda_microvms.name, &own_endpoint, e);

	*ret = (struct backend_route){ .ca_bundle = settings_ca_bundle(&a->set),
				       .reserved = "x-aws-proxy-",
				       .refusals = refusals };
	if (r == 0)
		r = token_url(endpoint, own_endpoint == NULL, ret->url, e);
	if (r == 0)
		r = file_path(id, ports, path, e);
	if (r < 0)
		return r;
	if (fresh)
		(void)unlink(path);
	if (fresh || read_kept(path, ret) != 1)
		r = mint(a, id, ports, path, ret, e);
	if (r == 0 && (add_protocols(ports->port[0], ret) < 0 || add_port(ports->port[0], ret) < 0))
		r = err_set(e, ERR_INTERNAL, ENOMEM, "the token");
	if (r < 0)
		backend_route_done(ret);
	return r;
}
