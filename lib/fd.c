/* SPDX-License-Identifier: Apache-2.0 */
#include "fd.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define TREE_DEPTH_MAX 128
#define SUFFIX	       "XXXXXX" /* of a temporary file: for mkostemp(3) */

void fd_close(int *fd)
{
	int saved = errno;

	if (*fd >= 0)
		(void)close(*fd);
	*fd = -1;
	errno = saved;
}

int fd_take(int *fd)
{
	int v = *fd;

	*fd = -1;
	return v;
}

int fd_set_nonblock(int fd, bool on)
{
	int fl = fcntl(fd, F_GETFL);

	if (fl < 0)
		return -errno;
	fl = on ? fl | O_NONBLOCK : fl & ~O_NONBLOCK;
	return fcntl(fd, F_SETFL, fl) < 0 ? -errno : 0;
}

int fd_set_cloexec(int fd, bool on)
{
	return fcntl(fd, F_SETFD, on ? FD_CLOEXEC : 0) < 0 ? -errno : 0;
}

int fd_write_all(int fd, const void *p, size_t n)
{
	const char *c = p;

	while (n) {
		ssize_t k = write(fd, c, n);

		if (k >= 0) {
			c += k;
			n -= (size_t)k;
		} else if (errno == EAGAIN) {
			struct pollfd pf = { .fd = fd, .events = POLLOUT };

			if (poll(&pf, 1, -1) < 0 && errno != EINTR)
				return -errno;
		} else if (errno != EINTR) {
			return -errno;
		}
	}
	return 0;
}

int fd_pwrite_all(int fd, const void *p, size_t n, off_t offset)
{
	const char *c = p;

	while (n) {
		ssize_t k = pwrite(fd, c, n, offset);

		if (k < 0 && errno == EINTR)
			continue;
		if (k <= 0)
			return k < 0 ? -errno : -EIO;
		c += k;
		n -= (size_t)k;
		offset += k;
	}
	return 0;
}

ssize_t fd_pread_all(int fd, void *p, size_t n, off_t offset)
{
	size_t done = 0;

	while (done < n) {
		ssize_t k = pread(fd, (char *)p + done, n - done, offset + (off_t)done);

		if (k < 0 && errno == EINTR)
			continue;
		if (k < 0)
			return -errno;
		if (k == 0)
			break;
		done += (size_t)k;
	}
	return (ssize_t)done;
}

int fd_read_all(int fd, struct buf *b)
{
	for (;;) {
		size_t room;
		ssize_t k;
		char probe;
		int r;

		if (b->len == b->cap) { /* full: only EOF is still fine */
			k = read(fd, &probe, 1);
			if (k < 0 && errno == EINTR)
				continue;
			return k < 0 ? -errno : k == 0 ? 0 : -ENOSPC;
		}
		room = b->cap - b->len < 4096 ? b->cap - b->len : 4096;
		r = buf_reserve(b, room);
		if (r < 0)
			return r;
		k = read(fd, b->p + b->len, b->size - b->len - 1);
		if (k < 0 && errno == EINTR)
			continue;
		if (k < 0)
			return -errno;
		if (k == 0)
			return 0;
		b->len += (size_t)k;
		b->p[b->len] = '\0';
	}
}

int fd_read_file(int dirfd, const char *path, struct buf *b)
{
	AUTO_FD fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC);

	return fd < 0 ? -errno : fd_read_all(fd, b);
}

int fd_write_str(int dirfd, const char *path, const char *s)
{
	AUTO_FD fd = openat(dirfd, path, O_WRONLY | O_CLOEXEC);
	ssize_t k;

	if (fd < 0)
		return -errno;
	do
		k = write(fd, s, strlen(s));
	while (k < 0 && errno == EINTR);
	return k < 0 ? -errno : 0;
}

/* fsync(2) of the directory that holds PATH, so that the rename itself survives a crash. */
static int sync_parent(const char *path)
{
	const char *slash = strrchr(path, '/');
	char *dir = strndup(path, slash ? (size_t)(slash - path) : 0);
	int fd, r;

	if (!dir)
		return -ENOMEM;
	fd = open(*dir ? dir : slash ? "/" : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	r = fd < 0 || fsync(fd) < 0 ? -errno : 0;
	fd_close(&fd);
	free(dir);
	return r;
}

static int replace(const char *path, const void *p, size_t n, mode_t mode, bool durable)
{
	char tmp[4096];
	AUTO_FD fd = -1;
	int r;

	if (snprintf(tmp, sizeof(tmp), "%s." SUFFIX, path) >= (int)sizeof(tmp))
		return -ENAMETOOLONG;
	fd = mkostemp(tmp, O_CLOEXEC);
	if (fd < 0)
		return -errno;
	r = fd_write_all(fd, p, n);
	if (r == 0 && fchmod(fd, mode) < 0)
		r = -errno;
	if (r == 0 && durable && fsync(fd) < 0)
		r = -errno;
	if (r == 0 && rename(tmp, path) < 0)
		r = -errno;
	if (r < 0) {
		(void)unlink(tmp);
		return r;
	}
	return durable ? sync_parent(path) : 0;
}

int fd_replace_file(const char *path, const void *p, size_t n, mode_t mode)
{
	return replace(path, p, n, mode, true);
}

int fd_replace_file_lazy(const char *path, const void *p, size_t n, mode_t mode)
{
	return replace(path, p, n, mode, false);
}

/* NAME is BASE, a dot, and what mkostemp puts for SUFFIX. */
static bool is_temporary(const char *name, const char *base)
{
	size_t n = strlen(base);

	return strncmp(name, base, n) == 0 && name[n] == '.' &&
	       strlen(name + n + 1) == sizeof(SUFFIX) - 1 && !strchr(name + n + 1, '.');
}

void fd_replace_collect(const char *path)
{
	const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
	char *dir = strndup(path, slash ? (size_t)(slash - path) : 0);
	DIR *d = dir ? opendir(*dir ? dir : slash ? "/" : ".") : NULL;
	struct dirent *e;

	while (d && (e = readdir(d)))
		if (is_temporary(e->d_name, base))
			(void)unlinkat(dirfd(d), e->d_name, 0);
	if (d)
		(void)closedir(d);
	free(dir);
}

int fd_sync_at(int dirfd, const char *path)
{
	AUTO_FD fd = openat(dirfd, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

	return fd < 0 || fsync(fd) < 0 ? -errno : 0;
}

int fd_rewrite_file(const char *path, const void *p, size_t n, mode_t mode)
{
	AUTO_FD fd = open(path, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat st;
	int r;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size == 0)
		return fd_replace_file_lazy(path, p, n, mode);
	r = fd_write_all(fd, p, n);
	if (r == 0 && st.st_size > (off_t)n && ftruncate(fd, (off_t)n) < 0)
		r = -errno;
	return r;
}

int fd_mkdirs(const char *path, mode_t mode)
{
	char p[4096];
	size_t n = strlen(path);

	if (n == 0 || n >= sizeof(p))
		return n ? -ENAMETOOLONG : -ENOENT;
	memcpy(p, path, n + 1);
	for (char *s = p + 1;; s++) {
		char c = *s;
		struct stat st;

		if (c != '/' && c != '\0')
			continue;
		*s = '\0';
		if (mkdir(p, mode) < 0 && errno != EEXIST)
			return -errno;
		if (c == '\0')
			return stat(p, &st) < 0 ? -errno : S_ISDIR(st.st_mode) ? 0 : -ENOTDIR;
		*s = c;
	}
}

/* Bottom-up; the depth cap bounds the recursion. Somebody else may be at it, too. */
static int remove_children(int fd, int depth)
{
	DIR *d = depth < TREE_DEPTH_MAX ? fdopendir(fd) : NULL;
	struct dirent *e;
	int r = 0;

	if (!d) {
		r = depth < TREE_DEPTH_MAX ? -errno : -ELOOP;
		fd_close(&fd);
		return r;
	}
	while (r == 0 && (e = readdir(d))) {
		int sub;

		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
			continue;
		if (unlinkat(dirfd(d), e->d_name, 0) == 0 || errno == ENOENT)
			continue;
		if (errno != EISDIR && errno != EPERM) {
			r = -errno;
			break;
		}
		sub = openat(dirfd(d), e->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (sub < 0 && errno == ENOENT)
			continue;
		r = sub < 0 ? -errno : remove_children(sub, depth + 1);
		if (r == 0 && unlinkat(dirfd(d), e->d_name, AT_REMOVEDIR) < 0 && errno != ENOENT)
			r = -errno;
	}
	(void)closedir(d);
	return r;
}

int fd_remove_children(int fd)
{
	return remove_children(fd, 0);
}

int fd_remove_tree_at(int dirfd, const char *path)
{
	int fd, r;

	if (unlinkat(dirfd, path, 0) == 0 || errno == ENOENT)
		return 0;
	if (errno != EISDIR && errno != EPERM)
		return -errno;
	fd = openat(dirfd, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	r = remove_children(fd, 0);
	if (r == 0 && unlinkat(dirfd, path, AT_REMOVEDIR) < 0 && errno != ENOENT)
		r = -errno;
	return r;
}

int fd_remove_tree(const char *path)
{
	return fd_remove_tree_at(AT_FDCWD, path);
}

void fd_close_from(int first)
{
	DIR *d;
	struct dirent *e;

	if (syscall(SYS_close_range, (unsigned)first, ~0U, 0) == 0)
		return;
	d = opendir("/proc/self/fd");
	if (!d) {
		for (int fd = first; fd < 1024; fd++)
			(void)close(fd);
		return;
	}
	while ((e = readdir(d))) {
		long fd = strtol(e->d_name, NULL, 10);

		if (fd >= first && fd != dirfd(d))
			(void)close((int)fd);
	}
	(void)closedir(d);
}
