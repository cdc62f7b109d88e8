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

union control {
	struct cmsghdr h;
	char room[CMSG_SPACE(sizeof(int))];
};

int sock_send_fd(int fd, const void *p, size_t n, int pass)
{
	union control c;
	struct iovec v = { .iov_len = n };
	struct msghdr m = { .msg_iov = &v, .msg_iovlen = 1 };
	ssize_t k;

	memcpy(&v.iov_base, &p, sizeof(p)); /* const, but that struct iovec is for readers too */
	if (pass >= 0) {
		memset(&c, 0, sizeof(c));
		m.msg_control = &c;
		m.msg_controllen = sizeof(c);
		c.h.cmsg_level = SOL_SOCKET;
		c.h.cmsg_type = SCM_RIGHTS;
		c.h.cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(&c.h), &pass, sizeof(pass));
	}
	k = sendmsg(fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
	if (k < 0)
		return -errno;
	return (size_t)k == n ? 0 : -EAGAIN;
}

ssize_t sock_recv_fd(int fd, void *p, size_t n, int *ret_pass)
{
	union control c;
	struct iovec v = { .iov_base = p, .iov_len = n };
	struct msghdr m = {
		.msg_iov = &v, .msg_iovlen = 1, .msg_control = &c, .msg_controllen = sizeof(c)
	};
	const struct cmsghdr *h;
	ssize_t k = recvmsg(fd, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

	*ret_pass = -1;
	if (k < 0)
		return -errno;
	h = CMSG_FIRSTHDR(&m);
	if (h && h->cmsg_type == SCM_RIGHTS && h->cmsg_len == CMSG_LEN(sizeof(int)))
		memcpy(ret_pass, CMSG_DATA(h), sizeof(*ret_pass));
	return k;
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
