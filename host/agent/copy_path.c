/* SPDX-License-Identifier: Apache-2.0 */
#include <cJSON.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "host/agent/ask.h"
#include "host/agent/copy_int.h"
#include "lib/b64.h"
#include "lib/jsn.h"
#include "lib/str.h"

#define LINKS_MAX 40 /* as the kernel */

int copy_split(const char *path, struct copy_path *ret, struct err *e)
{
	size_t n = strlen(path), len;
	const char *slash, *base;

	*ret = (struct copy_path){ .slash = n > 0 && path[n - 1] == '/' };
	while (n > 1 && path[n - 1] == '/')
		n--;
	slash = memrchr(path, '/', n);
	base = slash ? slash + 1 : path;
	len = n - (size_t)(base - path);
	if (strlen(path) > COPY_PATH_MAX || len >= sizeof(ret->base))
		return err_set(e, ERR_INVALID, ENAMETOOLONG, "%.100s...", path);
	ret->dir = slash ? (size_t)(slash - path) : 0;
	while (ret->dir > 1 && path[ret->dir - 1] == '/') /* "a//b" */
		ret->dir--;
	if (slash && ret->dir == 0) /* "/x" */
		ret->dir = 1;
	memcpy(ret->base, len ? base : ".", len ? len : 1);
	if (!strcmp(ret->base, ".") || !strcmp(ret->base, ".."))
		ret->slash = true;
	return 0;
}

int copy_plan(const char *path, struct copy_plan **ret, struct err *e)
{
	size_t n = strlen(path);

	if (n > COPY_PATH_MAX)
		return err_set(e, ERR_INVALID, ENAMETOOLONG, "%.100s...", path);
	*ret = calloc(1, sizeof(**ret));
	if (!*ret)
		return err_set(e, ERR_INTERNAL, ENOMEM, "copying");
	memcpy((*ret)->path, path, n);
	return 0;
}

int copy_table(struct copy_plan *p, struct err *e)
{
	int r = copy_split(p->path, &p->dst, e);

	if (r < 0)
		return r;
	if (p->to == COPY_DIR) {
		p->into = p->path;
		p->as = p->base;
		return 0;
	}
	if (p->to == COPY_FILE && (p->from == COPY_DIR || p->dst.slash))
		return err_set(e, ERR_INVALID, ENOTDIR, "%.400s", p->path);
	if (p->to == COPY_MISSING && p->dst.slash &&
	    (p->from != COPY_DIR || !strcmp(p->dst.base, ".") || !strcmp(p->dst.base, "..")))
		return err_set(e, ERR_NOT_FOUND, 0, "%.400s: there is no such directory", p->path);
	memcpy(p->dir, p->dst.dir ? p->path : ".", p->dst.dir ? p->dst.dir : 1);
	p->into = p->dir;
	p->as = p->dst.base;
	return 0;
}

int copy_local_kind(const char *path, bool links, enum copy_kind *ret, struct err *e)
{
	struct stat st;
	int r = links ? stat(path, &st) : lstat(path, &st);

	if (r == 0)
		*ret = S_ISDIR(st.st_mode) ? COPY_DIR : COPY_FILE;
	else if (errno == ENOENT)
		*ret = COPY_MISSING;
	else
		return err_set(e, ERR_IO, errno, "%.400s", path);
	return 0;
}

/* --- the guest --- */
/* 0 with the entry, -ENOENT, or another negative errno with E. */
static int guest_stat(const struct copy_spec *s, const char *path, bool follow, cJSON **ret,
		      struct err *e)
{
	char coded[B64_LEN(COPY_PATH_MAX) + 1];
	AUTO_BUF text = { .cap = sizeof(coded) + 64 };
	struct ask a = {
		.backend = s->backend, .id = s->id, .method = "POST", .path = "/v1/fs/stat"
	};

	b64_encode(path, strlen(path), coded);
	if (buf_addf(&text, "{\"path_b64\":\"%s\",\"follow\":%s}", coded,
		     follow ? "true" : "false") < 0)
		return err_set(e, ERR_INTERNAL, ENOMEM, "asking the agent");
	a.body = text.p;
	return agent_ask(&a, ret, e);
}

/* The target of a link as bytes. 0, or -EINVAL. */
static int link_target(const cJSON *entry, struct buf *ret)
{
	const char *text = NULL;
	size_t n;
	int r;

	if (jsn_str(entry, "target_b64", &text, NULL) != 1)
		return jsn_str(entry, "target", &text, NULL) == 1 && *text ? buf_adds(ret, text)
									   : -EINVAL;
	r = buf_reserve(ret, strlen(text) + 1);
	if (r == 0)
		r = b64_decode(text, strlen(text), ret->p, &n);
	if (r == 0)
		ret->len = n;
	return r == 0 && (n == 0 || memchr(ret->p, '\0', n)) ? -EINVAL : r;
}

/* Replaces PATH by what the link that it is names. */
static int go_on(char *path, const cJSON *entry, struct err *e)
{
	AUTO_BUF target = { .cap = 2 * COPY_PATH_MAX }, next = { .cap = COPY_PATH_MAX };
	struct copy_path at;
	int r = copy_split(path, &at, e);

	if (r < 0)
		return r;
	r = link_target(entry, &target);
	if (r == 0 && target.p[0] != '/')
		r = buf_addf(&next, "%.*s/", (int)at.dir, path);
	if (r == 0)
		r = buf_add(&next, target.p, target.len);
	if (r < 0 || !next.p)
		return err_set(e, ERR_INVALID, ELOOP, "%.400s", path);
	memcpy(path, next.p, next.len);
	path[next.len] = '\0';
	return 0;
}

int copy_guest_kind(const struct copy_spec *s, char *path, bool links, enum copy_kind *ret,
		    struct err *e)
{
	for (int i = 0; i < LINKS_MAX; i++) {
		AUTO_JSN *j = NULL;
		const char *type = "";
		int r = guest_stat(s, path, false, &j, e);

		if (r == -ENOENT) {
			*ret = COPY_MISSING;
			return 0;
		}
		if (r == 0)
			r = jsn_str(j, "type", &type, e);
		if (r < 0)
			return r;
		*ret = !strcmp(type, "dir") ? COPY_DIR : COPY_FILE;
		if (strcmp(type, "symlink") != 0 || !links)
			return 0;
		r = go_on(path, j, e);
		if (r < 0)
			return r;
	}
	return err_set(e, ERR_INVALID, ELOOP, "%.400s", path);
}

/* --- requests --- */
int copy_request(struct buf *b, const char *path, const char *more, struct err *e)
{
	static const char plain[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~/";
	int r = buf_adds(b, "/v1/archive?path=");

	for (const char *p = path; *p && r == 0; p++)
		r = strchr(plain, *p) ? buf_add(b, p, 1)
				      : buf_addf(b, "%%%02X", (unsigned)(unsigned char)*p);
	if (r == 0)
		r = buf_adds(b, more);
	return r < 0 ? err_set(e, ERR_INVALID, ENAMETOOLONG, "%.100s...", path) : 0;
}

int copy_open(const struct copy_spec *s, const char *method, const char *path, const char *more,
	      struct stream **ret, struct err *e)
{
	AUTO_BUF request = { .cap = 3 * COPY_PATH_MAX + 128 };
	struct stream_spec t = { .backend = s->backend,
				 .id = s->id,
				 .method = method,
				 .upload = !strcmp(method, "PUT"),
				 .cancel = s->cancel };
	int r = copy_request(&request, path, more, e);

	if (r < 0)
		return r;
	t.path = request.p;
	return stream_open(&t, ret, e);
}

static void moved(struct copy_flow *f, size_t n)
{
	f->bytes += n;
	if (f->spec->progress)
		f->spec->progress(f->spec->arg, f->bytes);
}

int copy_flow_write(void *flow, const void *p, size_t n)
{
	struct copy_flow *f = flow;
	int r = stream_write(f->stream, p, n);

	if (r == 0)
		moved(f, n);
	return r;
}

ssize_t copy_flow_read(void *flow, void *p, size_t n)
{
	struct copy_flow *f = flow;
	ssize_t k = stream_read(f->stream, p, n);

	if (k > 0)
		moved(f, (size_t)k);
	return k;
}
