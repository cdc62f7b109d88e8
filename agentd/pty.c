/* SPDX-License-Identifier: Apache-2.0 */
#include "pty.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <termios.h>
#include <unistd.h>

#include "lib/fd.h"

#ifndef TIOCGPTPEER
#define TIOCGPTPEER _IO('T', 0x41) /* Linux 4.13: asm-generic/ioctls.h */
#endif
#ifndef TIOCSIG
#define TIOCSIG _IOW('T', 0x36, int)
#endif

#define SLAVE_FLAGS (O_RDWR | O_NOCTTY | O_CLOEXEC)

/* From the master itself where the kernel can: a path may lead into another mount of devpts. */
static int open_slave(int master)
{
	int unlock = 0, number = 0, fd;
	char path[32];

	if (ioctl(master, TIOCSPTLCK, &unlock) < 0)
		return -errno;
	fd = ioctl(master, TIOCGPTPEER, SLAVE_FLAGS);
	if (fd >= 0)
		return fd;
	/* by the system call: the libraries do not agree on the sign of a request */
	if (syscall(SYS_ioctl, master, TIOCGPTN, &number) < 0)
		return -errno;
	(void)snprintf(path, sizeof(path), "/dev/pts/%d", number);
	fd = open(path, SLAVE_FLAGS);
	return fd < 0 ? -errno : fd;
}

/* The line discipline erases whole characters only when it knows that they may have several bytes. */
static int set_utf8(int fd)
{
	struct termios t;

	if (tcgetattr(fd, &t) < 0)
		return -errno;
	t.c_iflag |= IUTF8;
	return tcsetattr(fd, TCSANOW, &t) < 0 ? -errno : 0;
}

int pty_open(uint16_t rows, uint16_t cols, uid_t owner, int *ret_master, int *ret_slave)
{
	AUTO_FD master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
	AUTO_FD slave = -1;
	int r;

	if (master < 0)
		return -errno;
	slave = open_slave(master);
	if (slave < 0)
		return slave;
	r = set_utf8(slave);
	if (r == 0)
		r = pty_resize(master, rows, cols);
	if (r == 0 && owner != (uid_t)-1 && fchown(slave, owner, (gid_t)-1) < 0)
		r = -errno;
	if (r < 0)
		return r;
	*ret_master = fd_take(&master);
	*ret_slave = fd_take(&slave);
	return 0;
}

int pty_resize(int master, uint16_t rows, uint16_t cols)
{
	struct winsize w = { .ws_row = rows, .ws_col = cols };

	return ioctl(master, TIOCSWINSZ, &w) < 0 ? -errno : 0;
}

int pty_signal(int master, int sig)
{
	pid_t group = 0;

	/* by the kernel itself for those that a keyboard can send (tty_ioctl(4)) */
	if (ioctl(master, TIOCSIG, sig) == 0)
		return 0;
	if (ioctl(master, TIOCGPGRP, &group) < 0)
		return -errno;
	if (group <= 1)
		return -ESRCH;
	return kill(-group, sig) < 0 ? -errno : 0;
}

char pty_eof_char(int master)
{
	struct termios t;

	if (tcgetattr(master, &t) < 0 || !(t.c_lflag & ICANON))
		return 0;
	return (char)t.c_cc[VEOF];
}
