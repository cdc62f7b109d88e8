/* SPDX-License-Identifier: Apache-2.0 */
#include "beneath.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "fd.h"

/*
 * openat2(2) with RESOLVE_BENEATH and without symbolic links does it in one call. Where it is missing (Linux before
 * 5.6, qemu-user) or forbidden by a filter that does not know it, every component is opened by itself with O_NOFOLLOW,
 * which is as safe: each step goes down by one name from a directory that is held.
 */

#define PLACE_FLAGS (O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

#ifdef ASB_TEST
int beneath_no_openat2;
#else
#define beneath_no_openat2 0
#endif

static int open_whole(int root, const char *rel, int *ret_fd)
{
	struct open_how how = { .flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
				.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS |
					   RESOLVE_NO_MAGICLINKS };
	long fd;

	if (beneath_no_openat2)
		return -ENOSYS;
	fd = syscall(SYS_openat2, root, *rel ? rel : ".", &how, sizeof(how));
	if (fd < 0)
		return -errno;
	*ret_fd = (int)fd;
	return 0;
}

/* One component. -ENOTDIR of a symbolic link becomes -ELOOP. */
static int step(int dir, const char *name, int *ret_fd)
{
	struct stat st;
	int fd = openat(dir, name, PLACE_FLAGS);

	if (fd >= 0) {
		*ret_fd = fd;
		return 0;
	}
	if (errno == ENOTDIR && fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0)
		return S_ISLNK(st.st_mode) ? -ELOOP : -ENOTDIR;
	return -errno;
}

/* Component by component; with MAKE missing ones are made. */
static int walk(int root, const char *rel, bool make, mode_t mode, int *ret_fd)
{
	AUTO_FD at = openat(root, ".", PLACE_FLAGS);

	if (at < 0)
		return -errno;
	while (*rel) {
		char name[256]; /* NAME_MAX and a NUL */
		size_t n = strcspn(rel, "/");
		int next = -1, r;

		if (n >= sizeof(name))
			return -ENAMETOOLONG;
		memcpy(name, rel, n);
		name[n] = '\0';
		r = step(at, name, &next);
		if (r == -ENOENT && make) {
			if (mkdirat(at, name, mode) < 0 && errno != EEXIST)
				return -errno;
			r = step(at, name, &next);
		}
		if (r < 0)
			return r;
		fd_close(&at);
		at = next;
		rel += n + (rel[n] == '/');
	}
	*ret_fd = fd_take(&at);
	return 0;
}

int beneath_open(int root, const char *rel, int *ret_fd)
{
	int r = open_whole(root, rel, ret_fd);

	/* EPERM: a container's filter for calls that it does not know. EAGAIN: something is being renamed. */
	return r == -ENOSYS || r == -EPERM || r == -EAGAIN ? walk(root, rel, false, 0, ret_fd) : r;
}

int beneath_make(int root, const char *rel, mode_t mode, int *ret_fd)
{
	int r = beneath_open(root, rel, ret_fd);

	return r == -ENOENT ? walk(root, rel, true, mode, ret_fd) : r;
}
