/* SPDX-License-Identifier: Apache-2.0 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "fd.h"
#include "httpd.h"

/* Listening sockets. Addresses are numbers, never names: no resolver in a guest. */

#define BACKLOG 511

static int bind_listen(int family, const struct sockaddr *sa, socklen_t len, int *ret_fd)
{
	AUTO_FD fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int on = 1, off = 0;

	if (fd < 0)
		return -errno;
	if (family != AF_UNIX && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0)
		return -errno;
	if (family == AF_INET6)
		(void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
	if (bind(fd, sa, len) < 0 || listen(fd, BACKLOG) < 0)
		return -errno;
	*ret_fd = fd_take(&fd);
	return 0;
}

int httpd_listen_tcp(const char *addr, uint16_t port, int *ret_fd)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(port) };
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6, .sin6_port = htons(port) };

	if (!addr) {
		int r = bind_listen(AF_INET6, (struct sockaddr *)&in6, sizeof(in6), ret_fd);

		/* a kernel without IPv6, or one where it is switched off */
		return r == -EAFNOSUPPORT || r == -EADDRNOTAVAIL
			       ? bind_listen(AF_INET, (struct sockaddr *)&in, sizeof(in), ret_fd)
			       : r;
	}
	if (inet_pton(AF_INET, addr, &in.sin_addr) == 1)
		return bind_listen(AF_INET, (struct sockaddr *)&in, sizeof(in), ret_fd);
	if (inet_pton(AF_INET6, addr, &in6.sin6_addr) == 1)
		return bind_listen(AF_INET6, (struct sockaddr *)&in6, sizeof(in6), ret_fd);
	return -EINVAL;
}

int httpd_listen_unix(const char *path, mode_t mode, int *ret_fd)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	size_t n = strlen(path);
	mode_t old;
	int r;

	if (n == 0 || n >= sizeof(un.sun_path))
		return -ENAMETOOLONG;
	memcpy(un.sun_path, path, n);
	if (path[0] == '@') {
		un.sun_path[0] = '\0';
		return bind_listen(AF_UNIX, (struct sockaddr *)&un,
				   (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n), ret_fd);
	}
	if (unlink(path) < 0 && errno != ENOENT)
		return -errno;
	old = umask((mode_t)(~mode & 0777)); /* so that MODE holds from the first moment on */
	r = bind_listen(AF_UNIX, (struct sockaddr *)&un, sizeof(un), ret_fd);
	(void)umask(old);
	return r;
}
