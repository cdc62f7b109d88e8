/* SPDX-License-Identifier: Apache-2.0 */
#include "sock.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "fd.h"

#define BACKLOG 64

static int address(const char *path, struct sockaddr_un *a)
{
	size_t n = strlen(path);

	if (n == 0)
		return -ENOENT;
	if (n >= sizeof(a->sun_path))
		return -ENAMETOOLONG;
	*a = (struct sockaddr_un){ .sun_family = AF_UNIX };
	memcpy(a->sun_path, path, n + 1);
	return 0;
}

/*
 * The mode of the new socket: fchmod(2) on the socket before bind is what bind(2) takes for the
 * inode (unix(7) does not promise it, Linux does it: fs/af_unix makes it with the mode of the
 * socket's own inode, less the umask).
 */
int sock_listen(const char *path, mode_t mode, int *ret_fd)
{
	struct sockaddr_un a;
	AUTO_FD fd = -1;
	int r = address(path, &a);

	if (r < 0)
		return r;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 || fchmod(fd, mode) < 0)
		return -errno;
	if (unlink(path) < 0 && errno != ENOENT)
		return -errno;
	if (bind(fd, (struct sockaddr *)&a, sizeof(a)) < 0)
		return -errno;
	if (chmod(path, mode) < 0 || listen(fd, BACKLOG) < 0) {
		r = -errno;
		(void)unlink(path);
		return r;
	}
	*ret_fd = fd_take(&fd);
	return 0;
}

int sock_connect(const char *path, int *ret_fd)
{
	struct sockaddr_un a;
	AUTO_FD fd = -1;
	int r = address(path, &a);

	if (r < 0)
		return r;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	if (connect(fd, (struct sockaddr *)&a, sizeof(a)) < 0)
		return -errno;
	*ret_fd = fd_take(&fd);
	return 0;
}

int sock_accept(int listen_fd, int *ret_fd)
{
	int fd;

	do
		fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	while (fd < 0 && (errno == EINTR || errno == ECONNABORTED));
	if (fd < 0)
		return -errno;
	*ret_fd = fd;
	return 0;
}
