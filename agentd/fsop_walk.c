/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "fsop.h"

/* RESOLVE_NO_XDEV refuses what a plain openat(2) cannot see: a mount point. Kernels before 5.6 have no
 * openat2(2); there a mount point below what is removed is entered, as rm(1) does. */
int fsop_open_dir(int dir, const char *name, bool one_fs)
{
	struct open_how how = {
		.flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC,
		.resolve = RESOLVE_NO_SYMLINKS | RESOLVE_BENEATH | (one_fs ? RESOLVE_NO_XDEV : 0),
	};
	long fd = syscall(SYS_openat2, dir, name, &how, sizeof(how));

	if (fd < 0 &&
	    (errno == ENOSYS || errno == EPERM)) /* EPERM: a filter that does not know it */
		fd = openat(dir, name,
			    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	return fd < 0 ? -errno : (int)fd;
}

int fsop_push(struct buf *b, const char *name, size_t *ret_old)
{
	size_t old = b->len;
	bool slash = old == 0 || b->p[old - 1] != '/';
	int r = slash ? buf_adds(b, "/") : 0;

	if (r == 0)
		r = buf_adds(b, name);
	if (r < 0) {
		fsop_pop(b, old);
		return r == -ENOSPC ? -ENAMETOOLONG : r;
	}
	*ret_old = old;
	return 0;
}

void fsop_pop(struct buf *b, size_t old)
{
	if (b->p) {
		b->len = old;
		b->p[old] = '\0';
	}
}

int fsop_next(DIR *d, struct buf *b, const char **ret_name, size_t *ret_old)
{
	const struct dirent *e;
	int r;

	do {
		errno = 0;
		e = readdir(d);
		if (!e)
			return -errno;
	} while (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."));
	r = fsop_push(b, e->d_name, ret_old);
	if (r < 0)
		return r;
	*ret_name = e->d_name;
	return 1;
}
