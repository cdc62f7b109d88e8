/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fsop.h"
#include "lib/fd.h"
#include "lib/jsn.h"
#include "lib/str.h"
#include "worker.h"

/*
 * POST /v1/fs/list in the worker: entries go out as they are found, in the order of the directory,
 * so that memory stays flat. A directory whose entries cannot be read is listed with an "error"; a
 * read error in the middle of one cuts the answer, which then is no JSON: never silently short.
 */

#define FLUSH_AT (32UL << 10)

struct list {
	struct buf out, path;
	uint64_t left; /* entries that may follow */
	bool any, truncated;
};

static int flush(struct list *l, size_t above)
{
	int r = l->out.len > above ? work_write(l->out.p, l->out.len) : 0;

	if (l->out.len > above)
		buf_clear(&l->out);
	return r;
}

/* ERRNUM: why its entries do not follow, or 0. */
static int put(struct list *l, const struct stat *st, const char *target, int errnum)
{
	cJSON *o = fsop_entry(l->path.p, st, target);
	char *s = NULL;
	int r = -ENOMEM;

	if (o && (!errnum || jsn_add_str(o, "error", fsop_errno_name(errnum))))
		s = cJSON_PrintUnformatted(o);
	if (s)
		r = buf_addf(&l->out, "%s%s", l->any ? "," : "", s);
	l->any = true;
	cJSON_free(s);
	cJSON_Delete(o);
	return r < 0 ? r : flush(l, FLUSH_AT);
}

static int list_dir(struct list *l, int fd, unsigned depth);

static int list_one(struct list *l, int dir, const char *name, unsigned depth)
{
	char target[FSOP_PATH_MAX + 1];
	ssize_t n = -1;
	int r, sub = -1;
	struct stat st;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno; /* it has just been removed */
	if (S_ISLNK(st.st_mode))
		n = readlinkat(dir, name, target, sizeof(target) - 1);
	if (n >= 0)
		target[n] = '\0';
	if (S_ISDIR(st.st_mode) && depth > 1)
		sub = fsop_open_dir(dir, name, false);
	l->left--;
	r = put(l, &st, n >= 0 ? target : NULL,
		S_ISDIR(st.st_mode) && depth > 1 && sub < 0 ? -sub : 0);
	if (r < 0 || sub < 0) {
		if (sub >= 0)
			fd_close(&sub);
		return r;
	}
	return list_dir(l, sub, depth - 1);
}

/* FD is consumed. */
static int list_dir(struct list *l, int fd, unsigned depth)
{
	DIR *d = fdopendir(fd);
	int r = 0;

	if (!d) {
		r = -errno;
		fd_close(&fd);
		return r;
	}
	while (r == 0 && !l->truncated) {
		const struct dirent *e;
		size_t old;

		errno = 0;
		e = readdir(d);
		if (!e) {
			r = -errno;
			break;
		}
		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
			continue;
		if (l->left == 0) {
			l->truncated = true;
			break;
		}
		r = fsop_push(&l->path, e->d_name, &old);
		if (r == 0) {
			r = list_one(l, dirfd(d), e->d_name, depth);
			fsop_pop(&l->path, old);
		}
	}
	(void)closedir(d);
	return r;
}

int fsop_list(int argc, char **argv)
{
	static const char type[] = "application/json";
	struct list l = { .left = 0 };
	uint64_t depth = 0;
	int fd, r;

	if (argc != 3 || str_to_u64(argv[1], 1, FSOP_DEPTH_MAX, &depth) < 0 ||
	    str_to_u64(argv[2], 1, UINT64_MAX, &l.left) < 0)
		return EXIT_FAILURE;
	buf_init(&l.out, FLUSH_AT + (1UL << 20));
	buf_init(&l.path, 256UL << 10);
	fd = open(argv[0], O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 || buf_adds(&l.path, argv[0]) < 0)
		return work_error(0, fd < 0 ? errno : ENOMEM, "%s", argv[0]);
	r = work_begin(type, -1);
	if (r == 0)
		r = buf_adds(&l.out, "{\"entries\":[");
	if (r == 0)
		r = list_dir(&l, fd, (unsigned)depth);
	if (r == 0)
		r = buf_addf(&l.out, "],\"truncated\":%s}", l.truncated ? "true" : "false");
	return r < 0 || flush(&l, 0) < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
