/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "app.h"
#include "fsop.h"
#include "lib/fd.h"
#include "lib/jsn.h"
#include "lib/str.h"
#include "limits.h"
#include "worker.h"

/*
 * POST /v1/fs/{list,stat,exists,mkdir,remove,copy,rename,chmod,symlink}. What is one or two system
 * calls is done here. What may last (a directory of any size, a tree, the bytes of a file) goes to a
 * worker, whose half is in fsop_*.c.
 */

struct call {
	struct httpd_req *r;
	cJSON *body;	 /* owned */
	char *path, *to; /* owned; FROM is path */
};

struct op {
	char name[8];
	void (*fn)(struct call *c);
	bool writes;
	char first[5], second[3]; /* members that are paths; SECOND may be "" */
	char members[4][12];	  /* the others */
};

/* --- members --- */
static void refuse(struct call *c, const struct err *e)
{
	httpd_reply_error(c->r, err_http_status(e->code), "%s", e->msg);
}

/* False when R has been answered. */
static bool get_bool(struct call *c, const char *name, bool *ret)
{
	struct err e = ERR_INIT;

	if (jsn_bool(c->body, name, ret, &e) >= 0)
		return true;
	refuse(c, &e);
	return false;
}

static bool get_u64(struct call *c, const char *name, uint64_t min, uint64_t max, uint64_t *ret)
{
	struct err e = ERR_INIT;

	if (jsn_u64(c->body, name, min, max, ret, &e) >= 0)
		return true;
	refuse(c, &e);
	return false;
}

/* A mode is a string, for a JSON number of octal digits would be read as decimal by everybody.
 * *RET_GIVEN: was there one? */
static bool get_mode(struct call *c, mode_t *ret, bool *ret_given)
{
	struct err e = ERR_INIT;
	const char *s = NULL;
	int r = jsn_str(c->body, "mode", &s, &e);

	*ret_given = r > 0;
	if (r == 0 || (r > 0 && fsop_mode(s, ret) == 0))
		return true;
	httpd_reply_error(c->r, 400,
			  "\"mode\" must be a string of octal digits, at most \"07777\"");
	return false;
}

static void done(struct call *c, int status, const char *name, bool value)
{
	cJSON *o = cJSON_CreateObject();

	if (o && name && !jsn_add_bool(o, name, value))
		jsn_free(&o);
	httpd_reply_json(c->r, status, o);
}

static void done_or_fail(struct call *c, int r, const char *path)
{
	if (r < 0)
		fsop_fail(c->r, -r, path);
	else
		done(c, 200, NULL, false);
}

/* --- reading --- */
static void op_stat(struct call *c)
{
	char target[FSOP_PATH_MAX + 1];
	bool follow = true;
	struct stat st;
	ssize_t n = -1;
	cJSON *o;

	if (!get_bool(c, "follow", &follow))
		return;
	if (fstatat(AT_FDCWD, c->path, &st, follow ? 0 : AT_SYMLINK_NOFOLLOW) < 0) {
		fsop_fail(c->r, errno, c->path);
		return;
	}
	if (S_ISLNK(st.st_mode))
		n = readlink(c->path, target, sizeof(target) - 1);
	if (n >= 0)
		target[n] = '\0';
	o = fsop_entry(c->path, &st, n >= 0 ? target : NULL);
	httpd_reply_json(c->r, 200, o);
}

static void op_exists(struct call *c)
{
	bool follow = true, there;
	struct stat st;
	cJSON *o;

	if (!get_bool(c, "follow", &follow))
		return;
	there = fstatat(AT_FDCWD, c->path, &st, follow ? 0 : AT_SYMLINK_NOFOLLOW) == 0;
	if (!there && errno != ENOENT && errno != ENOTDIR) {
		fsop_fail(c->r, errno, c->path);
		return;
	}
	o = cJSON_CreateObject();
	if (o && !(jsn_add_bool(o, "exists", there) &&
		   jsn_add_str(o, "type", there ? fsop_type(st.st_mode) : NULL)))
		jsn_free(&o);
	httpd_reply_json(c->r, 200, o);
}

static void op_list(struct call *c)
{
	uint64_t depth = 1, limit = LIMIT_LIST;
	char words[2][24];
	const char *args[] = { c->path, words[0], words[1] };

	if (!get_u64(c, "depth", 1, FSOP_DEPTH_MAX, &depth) ||
	    !get_u64(c, "limit", 1, LIMIT_LIST_MOST, &limit))
		return;
	(void)snprintf(words[0], sizeof(words[0]), "%llu", (unsigned long long)depth);
	(void)snprintf(words[1], sizeof(words[1]), "%llu", (unsigned long long)limit);
	worker_serve(c->r, "list", args, 3, WORKER_NO_INPUT);
}

/* --- writing --- */
/* "/a/" is what "/a" is: with its slash a link would be followed, and no name be left. */
static void cut_slashes(char *path)
{
	for (size_t n = strlen(path); n > 1 && path[n - 1] == '/';)
		path[--n] = '\0';
}

static int make_dir(struct call *c, bool parents, mode_t mode, bool set_mode, bool *ret_created)
{
	char *slash = strrchr(c->path, '/');
	struct stat st;
	int r = 0;

	*ret_created = stat(c->path, &st) < 0;
	if (!*ret_created)
		return !parents ? -EEXIST : S_ISDIR(st.st_mode) ? 0 : -ENOTDIR;
	if (parents && slash != c->path) {
		*slash = '\0';
		r = fd_mkdirs(c->path, 0777); /* less the umask */
		*slash = '/';
	}
	if (r == 0 && slash[1] && mkdir(c->path, mode) < 0)
		r = -errno;
	if (r == 0 && set_mode && chmod(c->path, mode) < 0) /* what was asked for, umask or not */
		r = -errno;
	return r;
}

static void op_mkdir(struct call *c)
{
	bool parents = false, set_mode, created = false;
	mode_t mode = 0777;
	int r;

	if (!get_bool(c, "parents", &parents) || !get_mode(c, &mode, &set_mode))
		return;
	cut_slashes(c->path);
	r = make_dir(c, parents, mode, set_mode, &created);
	if (r < 0)
		fsop_fail(c->r, -r, c->path);
	else
		done(c, created ? 201 : 200, "created", created);
}

static void op_remove(struct call *c)
{
	bool recursive = false, force = false;
	const char *args[] = { c->path };
	int r = 0;

	if (!get_bool(c, "recursive", &recursive) || !get_bool(c, "force", &force))
		return;
	cut_slashes(c->path);
	if (unlink(c->path) < 0)
		r = -errno;
	if (r == -EISDIR || r == -EPERM) { /* POSIX says EPERM, Linux EISDIR */
		if (recursive) {
			worker_serve(c->r, "remove", args, 1, WORKER_NO_INPUT);
			return;
		}
		r = rmdir(c->path) == 0 ? 0 : errno == ENOTDIR ? r : -errno;
	}
	if (r < 0 && !(force && r == -ENOENT))
		fsop_fail(c->r, -r, c->path);
	else
		done(c, 200, "removed", r == 0);
}

static void op_copy(struct call *c)
{
	bool recursive = false, overwrite = false;
	const char *args[] = { c->path, c->to, "", "" };

	if (!get_bool(c, "recursive", &recursive) || !get_bool(c, "overwrite", &overwrite))
		return;
	args[2] = recursive ? "1" : "0";
	args[3] = overwrite ? "1" : "0";
	worker_serve(c->r, "copy", args, 4, WORKER_NO_INPUT);
}

/* rename(2) that refuses to replace. */
static int rename_new(const char *from, const char *to)
{
	struct stat st;

	if (syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 1 /* RENAME_NOREPLACE */) == 0)
		return 0;
	if (errno != EINVAL && errno != ENOSYS)
		return -errno;
	/* a file system or a kernel without it, or a directory into itself, which fails again */
	if (lstat(to, &st) == 0)
		return -EEXIST;
	return rename(from, to) < 0 ? -errno : 0;
}

static void op_rename(struct call *c)
{
	bool overwrite = false;
	struct stat st;
	int r;

	if (!get_bool(c, "overwrite", &overwrite))
		return;
	if (overwrite)
		r = rename(c->path, c->to) < 0 ? -errno : 0;
	else
		r = rename_new(c->path, c->to);
	/* which of the two is the trouble? */
	done_or_fail(c, r,
		     r == -EEXIST || r == -ENOTEMPTY || r == -EISDIR || lstat(c->path, &st) == 0
			     ? c->to
			     : c->path);
}

static void op_chmod(struct call *c)
{
	bool recursive = false, set_mode;
	uint64_t uid = UINT32_MAX, gid = UINT32_MAX; /* "leave it", chown(2) */
	mode_t mode = 0;
	char words[3][16];
	const char *args[] = { c->path, words[0], words[1], words[2] };
	int r = 0;

	if (!get_bool(c, "recursive", &recursive) || !get_mode(c, &mode, &set_mode) ||
	    !get_u64(c, "uid", 0, UINT32_MAX - 1, &uid) ||
	    !get_u64(c, "gid", 0, UINT32_MAX - 1, &gid))
		return;
	if (!set_mode && uid == UINT32_MAX && gid == UINT32_MAX) {
		httpd_reply_error(c->r, 400, "one of \"mode\", \"uid\", \"gid\" is wanted");
		return;
	}
	if (recursive) {
		(void)snprintf(words[0], sizeof(words[0]), set_mode ? "%o" : "-", (unsigned)mode);
		(void)snprintf(words[1], sizeof(words[1]), "%lu", (unsigned long)uid);
		(void)snprintf(words[2], sizeof(words[2]), "%lu", (unsigned long)gid);
		worker_serve(c->r, "chmod", args, 4, WORKER_NO_INPUT);
		return;
	}
	if ((uid != UINT32_MAX || gid != UINT32_MAX) && chown(c->path, (uid_t)uid, (gid_t)gid) < 0)
		r = -errno;
	if (r == 0 && set_mode && chmod(c->path, mode) < 0)
		r = -errno;
	done_or_fail(c, r, c->path);
}

static void op_symlink(struct call *c)
{
	struct err e = ERR_INIT;

	if (fsop_bytes_member(c->body, "target", &c->to, &e) < 0)
		refuse(c, &e);
	else if (symlink(c->to, c->path) < 0)
		fsop_fail(c->r, errno, c->path);
	else
		done(c, 201, NULL, false);
}

static const struct op ops[] = {
	{ "list", op_list, false, "path", "", { "depth", "limit" } },
	{ "stat", op_stat, false, "path", "", { "follow" } },
	{ "exists", op_exists, false, "path", "", { "follow" } },
	{ "mkdir", op_mkdir, true, "path", "", { "parents", "mode" } },
	{ "remove", op_remove, true, "path", "", { "recursive", "force" } },
	{ "copy", op_copy, true, "from", "to", { "recursive", "overwrite" } },
	{ "rename", op_rename, true, "from", "to", { "overwrite" } },
	{ "chmod", op_chmod, true, "path", "", { "mode", "uid", "gid", "recursive" } },
	{ "symlink", op_symlink, true, "path", "", { "target", "target_b64" } },
};

/* --- dispatch --- */
static bool is_path_member(const char *name, const char *path)
{
	size_t n = strlen(path);

	return n && !strncmp(name, path, n) && (!name[n] || !strcmp(name + n, "_b64"));
}

static int check_members(const struct op *op, const cJSON *body, struct err *e)
{
	const cJSON *m;

	if (!cJSON_IsObject(body))
		return err_set(e, ERR_INVALID, 0, "the body must be a JSON object");
	cJSON_ArrayForEach(m, body)
	{
		bool known = is_path_member(m->string, op->first) ||
			     is_path_member(m->string, op->second);

		for (size_t i = 0; !known && i < ARRAY_LEN(op->members) && op->members[i][0]; i++)
			known = !strcmp(m->string, op->members[i]);
		if (!known)
			return err_set(e, ERR_INVALID, 0, "unknown member \"%.100s\"", m->string);
	}
	return 0;
}

static void run(struct call *c, const struct op *op)
{
	struct err e = ERR_INIT;
	size_t n;
	const char *text = httpd_body_data(c->r, &n);

	c->body = jsn_parse(text, n, &e);
	if (!c->body || check_members(op, c->body, &e) < 0 ||
	    fsop_path_member(c->body, op->first, &c->path, &e) < 0 ||
	    (op->second[0] && fsop_path_member(c->body, op->second, &c->to, &e) < 0))
		refuse(c, &e);
	else
		op->fn(c);
}

void route_fsop(struct httpd_req *r)
{
	const char *name = strrchr(httpd_path(r), '/') + 1;
	struct call c = { .r = r };

	for (size_t i = 0; i < ARRAY_LEN(ops); i++) {
		if (strcmp(ops[i].name, name) != 0)
			continue;
		if (!ops[i].writes || app_admits(r))
			run(&c, &ops[i]);
	}
	cJSON_Delete(c.body);
	free(c.path);
	free(c.to);
}
