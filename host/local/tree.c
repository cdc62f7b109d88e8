/* SPDX-License-Identifier: Apache-2.0 */
#include "host/local/tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/fd.h"

#define DEPTH_MAX 512

static uint64_t own(int dirfd, const char *name, int depth)
{
	struct stat st;
	struct dirent *d;
	uint64_t sum;
	DIR *dir;
	int fd;

	if (depth > DEPTH_MAX || fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	sum = S_ISDIR(st.st_mode) || st.st_nlink == 1 ? (uint64_t)st.st_blocks * 512 : 0;
	if (!S_ISDIR(st.st_mode))
		return sum;
	fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	dir = fd < 0 ? NULL : fdopendir(fd);
	if (!dir) {
		fd_close(&fd);
		return sum;
	}
	while ((d = readdir(dir)))
		if (strcmp(d->d_name, ".") != 0 && strcmp(d->d_name, "..") != 0)
			sum += own(fd, d->d_name, depth + 1);
	(void)closedir(dir);
	return sum;
}

uint64_t tree_own(int dirfd, const char *name)
{
	return own(dirfd, name, 0);
}

/* Makes every folder below one that can be emptied. */
static void open_up(int dirfd, const char *name, int depth)
{
	struct stat st;
	struct dirent *d;
	DIR *dir;
	int fd;

	if (depth > DEPTH_MAX || fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
	    !S_ISDIR(st.st_mode))
		return;
	if ((st.st_mode & 0700) != 0700)
		(void)fchmodat(dirfd, name, 0700, 0);
	fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	dir = fd < 0 ? NULL : fdopendir(fd);
	if (!dir) {
		fd_close(&fd);
		return;
	}
	while ((d = readdir(dir)))
		if (strcmp(d->d_name, ".") != 0 && strcmp(d->d_name, "..") != 0)
			open_up(fd, d->d_name, depth + 1);
	(void)closedir(dir);
}

int tree_remove(const char *path)
{
	int r = fd_remove_tree(path);

	if (r != -EACCES)
		return r;
	open_up(AT_FDCWD, path, 0);
	return fd_remove_tree(path);
}
