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
#include "worker.h"

/*
 * POST /v1/fs/remove of a tree, in the worker. No link is followed, and no other file system is entered: what is
 * mounted below is EXDEV, and stays.
 *
 * Each level holds a descriptor, so their number is bounded. A tree may be deeper: what lies below the deepest level is
 * moved up into the topmost directory, which is gone through again until a pass has found nothing to move.
 */

struct removal {
	int top; /* borrowed */
	struct buf path;
	uint64_t count;
	unsigned moved;
	bool again;
};

static int empty(struct removal *x, int fd, unsigned depth);

static int move_up(struct removal *x, int dir, const char *name)
{
	char to[48];

	(void)snprintf(to, sizeof(to), ".agentd-rm-%ld-%u", (long)getpid(), x->moved++);
	x->again = true;
	return renameat(dir, name, x->top, to) < 0 ? -errno : 0;
}

static int remove_one(struct removal *x, int dir, const char *name, unsigned depth)
{
	int r, sub;

	if (unlinkat(dir, name, 0) == 0) {
		x->count++;
		return 0;
	}
	r = -errno;
	if (r == -ENOENT)
		return 0;
	if (r != -EISDIR && r != -EPERM)
		return r;
	if (depth == FSOP_DEPTH_MAX)
		return move_up(x, dir, name);
	sub = fsop_open_dir(dir, name, true);
	if (sub < 0)
		return sub == -ENOENT ? 0 : sub == -ENOTDIR || sub == -ELOOP ? r : sub;
	r = empty(x, sub, depth + 1);
	if (r == 0 && unlinkat(dir, name, AT_REMOVEDIR) < 0 && errno != ENOENT)
		r = -errno;
	x->count += r == 0;
	return r;
}

/* FD is consumed. The path stays where an error was. */
static int empty(struct removal *x, int fd, unsigned depth)
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
	do {
		x->again = depth == 0 ? false : x->again;
		rewinddir(d);
		while ((r = fsop_next(d, &x->path, &name, &old)) > 0) {
			work_alive();
			r = remove_one(x, dirfd(d), name, depth);
			if (r < 0)
				break;
			fsop_pop(&x->path, old);
		}
	} while (r == 0 && depth == 0 && x->again);
	(void)closedir(d);
	return r;
}

static bool is_root(const struct stat *st)
{
	struct stat root;

	return stat("/", &root) == 0 && root.st_dev == st->st_dev && root.st_ino == st->st_ino;
}

static int remove_tree(struct removal *x, const char *path)
{
	const char *base = strrchr(path, '/') + 1;
	struct stat st;
	int fd, r;

	if (!strcmp(base, ".") || !strcmp(base, ".."))
		return -EINVAL;
	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) < 0 || is_root(&st)) {
		fd_close(&fd);
		return -EBUSY;
	}
	x->top = fd;
	r = empty(x, fd, 0);
	if (r == 0 && rmdir(path) < 0 && errno != ENOENT)
		r = -errno;
	x->count += r == 0;
	return r;
}

int fsop_remove(int argc, char **argv)
{
	struct removal x = { .top = -1 };
	cJSON *o;
	int r;

	if (argc != 1)
		return EXIT_FAILURE;
	buf_init(&x.path, 256UL << 10);
	r = buf_adds(&x.path, argv[0]);
	if (r == 0)
		r = remove_tree(&x, argv[0]);
	if (r < 0)
		return work_error(0, -r, "%s", x.path.p ? x.path.p : argv[0]);
	o = cJSON_CreateObject();
	if (o && !(jsn_add_bool(o, "removed", true) && jsn_add_u64(o, "count", x.count)))
		jsn_free(&o);
	return work_reply(200, o);
}
