/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "exec.h"
#include "lib/fd.h"
#include "pty.h"

/*
 * A command with a terminal. Its master is read as a pipe is (exec_out.c), and written through a second
 * descriptor of it (exec_in.c): each has a watch of its own, so that an end of the input, or output that
 * must wait for a reader, leaves the other direction alone.
 *
 * agentd keeps the slave open while the leader lives. A leader that lets go of its terminal for a moment
 * (exec >/dev/null; later /dev/tty) would otherwise end the output for good.
 *
 * When the leader ends the kernel hangs the terminal up, which only its foreground group is told of; so
 * the rest of the session is told by us, as a terminal emulator that closes would.
 */

int exec_tty_open(struct exec *e, const struct spec *s)
{
	int r = pty_open(s->rows, s->cols, s->user ? s->user->uid : (uid_t)-1, &e->out[0].fd,
			 &e->tty);

	if (r < 0)
		return r;
	e->in.fd = fcntl(e->out[0].fd, F_DUPFD_CLOEXEC, 3);
	if (e->in.fd < 0)
		return -errno;
	e->in.wanted = e->pty = true;
	e->rows = s->rows;
	e->cols = s->cols;
	return 0;
}

void exec_tty_leader_ended(struct exec *e)
{
	tree_hangup(&e->tree);
	fd_close(&e->tty);
}

int exec_tty_signal(struct exec *e, int sig)
{
	int r = e->out[0].fd < 0 ? -ESRCH : pty_signal(e->out[0].fd, sig);

	/* no foreground group, or none that is left: the leader's own */
	if (r < 0)
		r = kill(-e->child.pid, sig) < 0 ? -errno : 0;
	return r;
}

int exec_resize(struct exec *e, uint16_t rows, uint16_t cols)
{
	int r;

	if (!e->pty)
		return -ENOTTY;
	if (e->leader_ended || e->out[0].fd < 0)
		return -ESRCH;
	r = pty_resize(e->out[0].fd, rows, cols);
	if (r == 0) {
		e->rows = rows;
		e->cols = cols;
	}
	return r;
}

/* In the middle of a line the character only hands that part of the line over; a second one is the
 * end. */
int exec_tty_eof(struct exec *e)
{
	char c = e->in.fd < 0 ? 0 : pty_eof_char(e->in.fd);
	uint64_t offset = e->in.offset;

	while (c) {
		bool middle = e->in.last != '\n' && e->in.last != c && e->in.last;
		ssize_t k = exec_write(e, &c, 1);

		e->in.offset = offset; /* counts what the caller has sent */
		if (k <= 0)
			return k < 0 ? (int)k : -EAGAIN;
		if (!middle)
			break;
	}
	return e->in.fd < 0 ? -EPIPE : 0;
}
