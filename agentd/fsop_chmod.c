/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fsop.h"
#include "lib/fd.h"
#include "lib/jsn.h"
#include "lib/str.h"
#include "worker.h"

/*
 * POST /v1/fs/chmod of a tree, in the worker: owner, then mode, of everything below and last of the directory itself. A
 * link has an owner of its own and no mode; what it points to is left alone. The file is held (O_PATH) while it
 * is changed, so that nobody can put a link in its place.
 */

struct change {
	struct buf path;
	bool set_mode;
	mode_t mode;
	uid_t uid;
	gid_t gid;
	uint64_t count;
};

/* FD: O_PATH, or open for reading. */
static int change_fd(struct change *c, int fd)
{
	char self[32];
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	if ((c->uid != (uid_t)-1 || c->gid != (gid_t)-1) &&
	    fchownat(fd, "", c->uid, c->gid, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	if (c->set_mode && !S_ISLNK(st.st_mode)) {
		(void)snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
		if (fchmod(fd, c->mode) < 0 && (errno != EBADF || chmod(self, c->mode) < 0))
			return -errno;
	}
	c->count++;
	return 0;
}

static int change_dir(struct change *c, int fd, unsigned depth);

static int change_one(struct change *c, int dir, const char *name, unsigned depth)
{
	AUTO_FD fd = openat(dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;
	int sub;

	if (fd < 0 || fstat(fd, &st) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (!S_ISDIR(st.st_mode))
		return change_fd(c, fd);
	if (depth == FSOP_DEPTH_MAX)
		return -ELOOP;
	sub = fsop_open_dir(dir, name, false);
	return sub < 0 ? sub : change_dir(c, sub, depth + 1);
}

/* FD is consumed. The path stays where an error was. */
static int change_dir(struct change *c, int fd, unsigned depth)
{
	DIR *d = fdopendir(fd);
	const char *name;
	size_t old;
	int r;

	if (!d) {
		r = -errno;
		fd_close(&fd);
		return r;
	}
	while ((r = fsop_next(d, &c->path, &name, &old)) > 0) {
		work_alive();
		r = change_one(c, dirfd(d), name, depth);
		if (r < 0)
			break;
		fsop_pop(&c->path, old);
	}
	if (r == 0)
		r = change_fd(c, dirfd(d));
	(void)closedir(d);
	return r;
}

/* The path itself is followed, as without "recursive". */
static int change_tree(struct change *c, const char *path)
{
	AUTO_FD fd = open(path, O_PATH | O_CLOEXEC);
	struct stat st;
	int dir;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISDIR(st.st_mode))
		return change_fd(c, fd);
	dir = open(path, O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC);
	return dir < 0 ? -errno : change_dir(c, dir, 0);
}

int fsop_chmod(int argc, char **argv)
{
	struct change c = { .count = 0 };
	uint64_t uid = 0, gid = 0;
	cJSON *o;
	int r;

	if (argc != 4 || str_to_u64(argv[2], 0, UINT32_MAX, &uid) < 0 ||
	    str_to_u64(argv[3], 0, UINT32_MAX, &gid) < 0)
		return EXIT_FAILURE;
	c.set_mode = strcmp(argv[1], "-") != 0;
	c.uid = (uid_t)uid;
	c.gid = (gid_t)gid;
	if (c.set_mode && fsop_mode(argv[1], &c.mode) < 0)
		return EXIT_FAILURE;
	buf_init(&c.path, 256UL << 10);
	r = buf_adds(&c.path, argv[0]);
	if (r == 0)
		r = change_tree(&c, argv[0]);
	if (r < 0)
		return work_error(0, -r, "%s", c.path.p ? c.path.p : argv[0]);
	o = cJSON_CreateObject();
	if (o && !jsn_add_u64(o, "count", c.count))
		jsn_free(&o);
	return work_reply(200, o);
}
