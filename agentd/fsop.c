/* SPDX-License-Identifier: Apache-2.0 */
#include "fsop.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/b64.h"
#include "lib/buf.h"
#include "lib/jsn.h"
#include "lib/str.h"

#define LINKS_MAX 40 /* as the kernel, path_resolution(7) */

/* --- paths --- */
int fsop_path_check(const char *name, const char *p, size_t n, struct err *e)
{
	if (n == 0)
		(void)err_set(e, ERR_INVALID, 0, "\"%s\" is empty", name);
	else if (memchr(p, '\0', n))
		(void)err_set(e, ERR_INVALID, 0, "\"%s\" contains a NUL", name);
	else if (n > FSOP_PATH_MAX)
		(void)err_set(e, ERR_INVALID, 0, "\"%s\" is longer than %d bytes", name,
			      FSOP_PATH_MAX);
	else if (p[0] != '/')
		(void)err_set(e, ERR_INVALID, 0, "\"%s\" must be an absolute path", name);
	else
		return 0;
	return -EINVAL;
}

/* Strict base64 of either alphabet; a query turns '+' into a space. N bytes at S, changed in place;
 * -EINVAL when a byte is none of it. */
static int decode(char *s, size_t *n)
{
	for (size_t i = 0; i < *n; i++) {
		char c = s[i];

		s[i] = c == '-' || c == ' ' ? '+' : c == '_' ? '/' : c;
		if (!strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=",
			    s[i]))
			return -EINVAL;
	}
	return b64_decode(s, *n, s, n);
}

/* TEXT or B64 (one of them, or NULL) as bytes; *RET is allocated. */
static int take(const char *name, const char *text, const char *b64, bool path, char **ret,
		struct err *e)
{
	const char *from = text ? text : b64;
	size_t n = from ? strlen(from) : 0;
	char *s;
	int r = 0;

	if (!from || (text && b64)) {
		(void)err_set(e, ERR_INVALID, 0,
			      from ? "both \"%s\" and \"%s_b64\" are given"
				   : "\"%s\" is missing (\"%s_b64\" would do as well)",
			      name, name);
		return -EINVAL;
	}
	s = malloc(n + 4);
	if (!s)
		return err_set(e, ERR_UNAVAILABLE, ENOMEM, "\"%s\"", name);
	memcpy(s, from, n + 1);
	if (!text && decode(s, &n) < 0) {
		(void)err_set(e, ERR_INVALID, 0, "\"%s_b64\" is not base64", name);
		r = -EINVAL;
	}
	s[n] = '\0';
	if (r == 0 && path)
		r = fsop_path_check(name, s, n, e);
	else if (r == 0 && (n == 0 || n > FSOP_PATH_MAX || memchr(s, '\0', n)))
		r = err_set(e, ERR_INVALID, 0, "\"%s\" must have 1 to %d bytes and no NUL", name,
			    FSOP_PATH_MAX);
	if (r < 0) {
		free(s);
		return r;
	}
	*ret = s;
	return 0;
}

static int b64_name(char *out, size_t size, const char *name)
{
	return str_format(out, size, "%s_b64", name);
}

int fsop_path_query(struct httpd_req *r, const char *name, char **ret, struct err *e)
{
	char b64[32];

	if (b64_name(b64, sizeof(b64), name) < 0)
		return -EINVAL;
	return take(name, httpd_query(r, name), httpd_query(r, b64), true, ret, e);
}

static int member(const cJSON *o, const char *name, bool path, char **ret, struct err *e)
{
	const char *text = NULL, *coded = NULL;
	char b64[32];

	if (b64_name(b64, sizeof(b64), name) < 0 || jsn_str(o, name, &text, e) < 0 ||
	    jsn_str(o, b64, &coded, e) < 0)
		return -EINVAL;
	return take(name, text, coded, path, ret, e);
}

int fsop_path_member(const cJSON *o, const char *name, char **ret, struct err *e)
{
	return member(o, name, true, ret, e);
}

int fsop_bytes_member(const cJSON *o, const char *name, char **ret, struct err *e)
{
	return member(o, name, false, ret, e);
}

int fsop_mode(const char *s, mode_t *ret)
{
	mode_t v = 0;
	size_t n = strlen(s);

	if (n == 0 || n > 5)
		return -EINVAL;
	for (; *s; s++) {
		if (*s < '0' || *s > '7')
			return -EINVAL;
		v = v * 8 + (mode_t)(*s - '0');
	}
	if (v > 07777)
		return -EINVAL;
	*ret = v;
	return 0;
}

/* PATH with its last component replaced by TARGET, as the kernel follows a link. NULL: too long. */
static char *follow(const char *path, const char *target)
{
	const char *slash = strrchr(path, '/');
	size_t dir = target[0] == '/' || !slash ? 0 : (size_t)(slash - path) + 1;
	AUTO_BUF b = { .cap = FSOP_PATH_MAX };

	if (buf_add(&b, path, dir) < 0 || buf_adds(&b, target) < 0)
		return NULL;
	return buf_take(&b);
}

int fsop_resolve(const char *path, char **ret, struct stat *st)
{
	char target[FSOP_PATH_MAX + 1], *at = strdup(path), *next;

	for (int i = 0; at && i <= LINKS_MAX; i++) {
		ssize_t n;

		if (lstat(at, st) < 0) {
			if (errno != ENOENT)
				break;
			st->st_mode = 0;
		}
		if (!S_ISLNK(st->st_mode)) {
			*ret = at;
			return 0;
		}
		n = readlink(at, target, sizeof(target));
		if (n < 0)
			break;
		target[(size_t)n < sizeof(target) ? (size_t)n : sizeof(target) - 1] = '\0';
		errno = ELOOP;
		next = (size_t)n < sizeof(target) && i < LINKS_MAX ? follow(at, target) : NULL;
		free(at);
		at = next;
	}
	free(at);
	return errno ? -errno : -ENOMEM;
}

/* --- descriptions --- */
const char *fsop_type(mode_t mode)
{
	switch (mode & S_IFMT) {
	case S_IFREG:
		return "file";
	case S_IFDIR:
		return "dir";
	case S_IFLNK:
		return "symlink";
	case S_IFIFO:
		return "fifo";
	case S_IFSOCK:
		return "socket";
	case S_IFCHR:
		return "char";
	default:
		return "block";
	}
}

bool fsop_add_bytes(cJSON *o, const char *name, const char *s)
{
	AUTO_BUF b = { .cap = B64_LEN(FSOP_PATH_MAX + 256) + 1 };
	size_t n = strlen(s);
	char b64[32];

	if (str_is_utf8(s, n))
		return jsn_add_str(o, name, s);
	return b64_name(b64, sizeof(b64), name) == 0 && b64_append(&b, s, n) == 0 &&
	       jsn_add_text(o, name, s, n) && jsn_add_str(o, b64, b.p);
}

cJSON *fsop_entry(const char *path, const struct stat *st, const char *target)
{
	const char *slash = strrchr(path, '/');
	cJSON *o = cJSON_CreateObject();
	char mode[8];
	int64_t ms = (int64_t)st->st_mtim.tv_sec * 1000 + st->st_mtim.tv_nsec / 1000000;

	ignore_result(str_format(mode, sizeof(mode), "%04o", (unsigned)st->st_mode & 07777));
	if (o && fsop_add_bytes(o, "name", slash && slash[1] ? slash + 1 : path) &&
	    fsop_add_bytes(o, "path", path) && jsn_add_str(o, "type", fsop_type(st->st_mode)) &&
	    jsn_add_u64(o, "size", (uint64_t)st->st_size) && jsn_add_str(o, "mode", mode) &&
	    jsn_add_u64(o, "uid", st->st_uid) && jsn_add_u64(o, "gid", st->st_gid) &&
	    jsn_add_i64(o, "mtime_ms", ms) && (!target || fsop_add_bytes(o, "target", target)))
		return o;
	cJSON_Delete(o);
	return NULL;
}

/* --- errors --- */
static const struct {
	short errnum, status;
	char name[14]; /* as in err.c */
} errors[] = {
	{ ENOENT, 404, "ENOENT" },
	{ EACCES, 403, "EACCES" },
	{ EPERM, 403, "EPERM" },
	{ EROFS, 403, "EROFS" },
	{ EEXIST, 409, "EEXIST" },
	{ ENOTEMPTY, 409, "ENOTEMPTY" },
	{ EBUSY, 409, "EBUSY" },
	{ ETXTBSY, 409, "ETXTBSY" },
	{ ENOTDIR, 400, "ENOTDIR" },
	{ EISDIR, 400, "EISDIR" },
	{ ELOOP, 400, "ELOOP" },
	{ EINVAL, 400, "EINVAL" },
	{ ENAMETOOLONG, 400, "ENAMETOOLONG" },
	{ EXDEV, 400, "EXDEV" },
	{ ENOSPC, 507, "ENOSPC" },
	{ EDQUOT, 507, "EDQUOT" },
	{ EFBIG, 413, "EFBIG" },
	{ EMFILE, 503, "EMFILE" },
	{ ENFILE, 503, "ENFILE" },
	{ ENOMEM, 503, "ENOMEM" },
	{ EAGAIN, 503, "EAGAIN" }, /* a lease is being broken: open(2) */
	{ EIO, 500, "EIO" },
	{ ENXIO, 500, "ENXIO" },
	{ ENODEV, 500, "ENODEV" },
	{ EMLINK, 500, "EMLINK" },
	{ ENOSYS, 500, "ENOSYS" },
	{ EOPNOTSUPP, 500, "EOPNOTSUPP" },
	{ ESTALE, 500, "ESTALE" },
};

int fsop_status(int errnum)
{
	for (size_t i = 0; i < ARRAY_LEN(errors); i++)
		if (errors[i].errnum == errnum)
			return errors[i].status;
	return 500;
}

const char *fsop_errno_name(int errnum)
{
	for (size_t i = 0; i < ARRAY_LEN(errors); i++)
		if (errors[i].errnum == errnum)
			return errors[i].name;
	return NULL;
}

cJSON *fsop_error(int errnum, const char *path)
{
	AUTO_BUF b = { .cap = FSOP_PATH_MAX + 512 };
	cJSON *o = cJSON_CreateObject();

	if (o && buf_addf(&b, "%s: %s", path, strerror(errnum)) == 0 &&
	    jsn_add_text(o, "detail", b.p, b.len) &&
	    jsn_add_str(o, "errno", fsop_errno_name(errnum)))
		return o;
	cJSON_Delete(o);
	return NULL;
}

void fsop_fail(struct httpd_req *r, int errnum, const char *path)
{
	httpd_reply_json(r, fsop_status(errnum), fsop_error(errnum, path));
}
