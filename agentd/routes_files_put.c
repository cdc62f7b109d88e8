/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "app.h"
#include "fsop.h"
#include "fsop_new.h"
#include "lib/fd.h"
#include "lib/jsn.h"
#include "lib/str.h"
#include "worker.h"

/*
 * PUT /v1/files: the body goes into a new file (fsop_new.h), which takes the place of the old one
 * when it is complete. The directory is held open: renaming it meanwhile, or putting another in its
 * place, does not redirect us.
 *
 * The new file gets mode and owner of the old one. What a replacement does not keep: other hard
 * links (they keep the old content), access control lists and attributes.
 *
 * With append or offset the file is written in place, and a body that is cut stays written as far
 * as it came.
 */

struct put {
	struct httpd_req *r;
	char *path;	      /* owned; as the caller wrote it */
	char *target;	      /* owned; with links followed */
	const char *base;     /* points into target */
	int dir;	      /* owned */
	struct fsop_new file; /* owned; in place only its descriptor */
	bool in_place, append, existed, sync, answered;
	bool set_mode, set_owner;
	mode_t mode;
	uid_t uid;
	gid_t gid;
	uint64_t at, size; /* offset of the next byte in place; bytes of the body so far */
};

static void free_put(void *arg)
{
	struct put *u = arg;

	fsop_new_done(&u->file);
	fd_close(&u->dir);
	free(u->path);
	free(u->target);
	free(u);
}

/* --- what is asked for --- */
static int flag(struct httpd_req *r, const char *name, bool *ret, struct err *e)
{
	const char *v = httpd_query(r, name);

	if (v && strcmp(v, "0") != 0 && strcmp(v, "1") != 0)
		return err_set(e, ERR_INVALID, 0, "\"%s\" must be 0 or 1", name);
	*ret = v && v[0] == '1';
	return 0;
}

/* An id of a user or group; 1 when there was one. 2^32-1 means "leave it" to chown(2). */
static int id(struct httpd_req *r, const char *name, uint32_t *ret, struct err *e)
{
	const char *v = httpd_query(r, name);
	uint64_t n;

	if (!v)
		return 0;
	if (str_to_u64(v, 0, UINT32_MAX - 1, &n) < 0)
		return err_set(e, ERR_INVALID, 0, "\"%s\" must be a number, 0 to 4294967294", name);
	*ret = (uint32_t)n;
	return 1;
}

static int read_query(struct put *u, bool *ret_parents, struct err *e)
{
	const char *mode = httpd_query(u->r, "mode"), *offset = httpd_query(u->r, "offset");
	int uid, gid;

	u->uid = (uid_t)-1;
	u->gid = (gid_t)-1;
	uid = id(u->r, "uid", &u->uid, e);
	gid = uid < 0 ? uid : id(u->r, "gid", &u->gid, e);
	if (gid < 0 || flag(u->r, "append", &u->append, e) < 0 ||
	    flag(u->r, "sync", &u->sync, e) < 0 || flag(u->r, "parents", ret_parents, e) < 0)
		return -EINVAL;
	if (mode && fsop_mode(mode, &u->mode) < 0)
		return err_set(e, ERR_INVALID, 0, "\"mode\" must be octal, at most 07777");
	if (offset && str_to_u64(offset, 0, INT64_MAX, &u->at) < 0)
		return err_set(e, ERR_INVALID, 0, "\"offset\" must be a number of bytes");
	if (offset && u->append)
		return err_set(e, ERR_INVALID, 0, "\"offset\" and \"append\" exclude each other");
	u->set_mode = mode != NULL;
	u->set_owner = uid || gid;
	u->in_place = offset || u->append;
	return 0;
}

/* --- the file --- */
static mode_t new_mode(void)
{
	mode_t mask = umask(0);

	(void)umask(mask);
	return 0666 & ~mask;
}

/* The directory of the target, made when PARENTS says so. */
static int open_dir(struct put *u, bool parents)
{
	char *slash = strrchr(u->target, '/'), keep = slash[1];
	int r = 0;

	slash[1] = '\0'; /* the directory, with its slash */
	if (parents)
		r = fd_mkdirs(u->target, 0777); /* less the umask */
	if (r == 0)
		u->dir = open(u->target, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (r == 0 && u->dir < 0)
		r = -errno;
	slash[1] = keep;
	u->base = slash + 1;
	return r;
}

/* Is there room for N more bytes? Unknown is yes. Blocks are counted, for bytes may overflow. */
static bool has_room(int fd, uint64_t n)
{
	struct statvfs v;
	uint64_t left;

	if (n == 0 || fstatvfs(fd, &v) < 0 || v.f_blocks == 0 || v.f_frsize == 0)
		return true;
	left = geteuid() == 0 ? v.f_bfree : v.f_bavail;
	return (n - 1) / v.f_frsize < left;
}

static int open_target(struct put *u, bool parents, struct stat *old)
{
	int64_t len = httpd_content_length(u->r);
	int r = fsop_resolve(u->path, &u->target, old);

	if (r == 0)
		r = open_dir(u, parents);
	if (r == 0 && parents) /* the parents may have been missing until now */
		old->st_mode =
			fstatat(u->dir, u->base, old, AT_SYMLINK_NOFOLLOW) < 0 ? 0 : old->st_mode;
	if (r < 0)
		return r;
	u->existed = old->st_mode != 0;
	if (!*u->base || S_ISDIR(old->st_mode))
		return -EISDIR;
	if (u->existed && !S_ISREG(old->st_mode))
		return -ENXIO;
	if (u->in_place) {
		u->file.fd = openat(u->dir, u->base,
				    O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC |
					    O_NOCTTY | (u->append ? O_APPEND : 0),
				    u->set_mode ? u->mode : 0666);
		r = u->file.fd < 0 || fstat(u->file.fd, old) < 0 ? -errno
		    : S_ISREG(old->st_mode)			 ? 0
								 : -ENXIO;
	} else {
		r = fsop_new_open(&u->file, u->dir);
	}
	if (r == 0 && len > 0 && !has_room(u->file.fd, (uint64_t)len))
		r = -ENOSPC;
	return r;
}

/* Mode and owner: those asked for, else those of the file that is replaced, else what a new file has.
 * The owner first, for it takes the set-user-ID bit away. */
static int set_attributes(struct put *u)
{
	if (u->set_owner && fchown(u->file.fd, u->uid, u->gid) < 0)
		return -errno;
	if (u->set_mode && fchmod(u->file.fd, u->mode) < 0)
		return -errno;
	return 0;
}

static void inherit(struct put *u, const struct stat *old)
{
	if (u->in_place)
		return;
	/* Of what belongs to others, a user can only make a copy of his own. */
	if (u->existed)
		ignore_result(fchown(u->file.fd, old->st_uid, old->st_gid));
	if (!u->set_mode)
		u->mode = u->existed ? old->st_mode & 07777 : new_mode();
	u->set_mode = true;
}

/* --- the body --- */
static void fail(struct put *u, int errnum)
{
	fsop_new_done(&u->file);
	u->answered = true;
	if (errnum == ENXIO)
		httpd_reply_error(u->r, 400, "%s: not a regular file", u->path);
	else
		fsop_fail(u->r, errnum, u->path);
}

/* fsync(2) takes as long as the disk wants: a worker does it and answers. U is gone afterwards. */
static void sync_and_answer(struct put *u, uint64_t size)
{
	struct httpd_req *r = u->r;
	char *target = u->target, *path = u->path, number[24];
	const char *args[] = { target, path, number, u->existed ? "200" : "201" };

	(void)snprintf(number, sizeof(number), "%llu", (unsigned long long)size);
	u->target = u->path = NULL;
	httpd_end_now(r);
	worker_serve(r, "sync", args, ARRAY_LEN(args), WORKER_NO_INPUT);
	free(target);
	free(path);
}

static void finish(struct put *u)
{
	int r = set_attributes(u);
	uint64_t size = u->size;
	struct stat st;
	cJSON *o;

	if (r == 0 && u->in_place)
		size = fstat(u->file.fd, &st) < 0 ? 0 : (uint64_t)st.st_size;
	else if (r == 0)
		r = fsop_new_commit(&u->file, u->base, true);
	if (r < 0) {
		fail(u, -r);
		return;
	}
	if (u->sync) {
		sync_and_answer(u, size);
		return;
	}
	u->answered = true;
	o = cJSON_CreateObject();
	if (o && !(jsn_add_u64(o, "size", size) && fsop_add_bytes(o, "path", u->path)))
		jsn_free(&o);
	httpd_reply_json(u->r, u->existed ? 200 : 201, o);
}

static ssize_t sink(void *arg, const char *p, size_t n)
{
	struct put *u = arg;

	if (u->answered)
		return (ssize_t)n;
	if (n == 0) {
		finish(u);
		return 0;
	}
	for (size_t done = 0; done < n;) {
		ssize_t k = u->append ? write(u->file.fd, p + done, n - done)
				      : pwrite(u->file.fd, p + done, n - done, (off_t)u->at);

		if (k == 0 || (k < 0 && errno != EINTR)) {
			/* an offset beyond 2^63; a file system (FUSE) that takes nothing */
			fail(u, k == 0 ? EIO : errno == EINVAL ? EFBIG : errno);
			return 0;
		}
		done += k > 0 ? (size_t)k : 0;
		u->at += k > 0 ? (uint64_t)k : 0;
	}
	u->size += n;
	return (ssize_t)n;
}

static void begin(struct put *u)
{
	struct err e = ERR_INIT;
	struct stat old = { 0 };
	bool parents = false;
	int r;

	if (fsop_path_query(u->r, "path", &u->path, &e) < 0 || read_query(u, &parents, &e) < 0) {
		httpd_reply_error(u->r, err_http_status(e.code), "%s", e.msg);
		return;
	}
	r = open_target(u, parents, &old);
	if (r < 0) {
		fail(u, -r);
		return;
	}
	inherit(u, &old);
	httpd_set_sink(u->r, sink, u);
	httpd_in_bulk(u->r);
}

void route_files_put(struct httpd_req *r)
{
	struct put *u;

	if (!app_admits(r))
		return;
	u = calloc(1, sizeof(*u));
	if (!u) {
		httpd_reply_error(r, 503, "out of memory");
		return;
	}
	u->r = r;
	u->dir = u->file.fd = -1;
	if (app_enter(r, free_put, u) < 0)
		free_put(u);
	else
		begin(u);
}
