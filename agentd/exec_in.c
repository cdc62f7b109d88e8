/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "exec.h"
#include "lib/fd.h"

/*
 * Standard input of a command: /dev/null, or a pipe whose write end is here. It is watched only
 * while somebody has bytes that the pipe did not take. A command that never reads leaves its feeder
 * waiting, and nobody else.
 */

static void on_writable(struct loop_watch *w, uint32_t events);

static int copy_input(struct exec_input *in, const struct spec *s)
{
	if (!s->input)
		return 0;
	in->own = malloc(s->input_len + 1);
	if (!in->own)
		return -ENOMEM;
	memcpy(in->own, s->input, s->input_len);
	in->own_len = s->input_len;
	return 0;
}

void exec_in_init(struct exec *e)
{
	e->in.fd = -1;
	e->in.watch = (struct loop_watch)LOOP_WATCH_INIT;
	e->in.watch.fn = on_writable;
	e->in.watch.arg = e;
}

int exec_in_open(struct exec *e, const struct spec *s, int *ret_child_fd)
{
	struct exec_input *in = &e->in;
	int fd[2], r;

	in->wanted = s->want_stdin;
	if (!s->want_stdin)
		return 0;
	r = copy_input(in, s);
	if (r < 0)
		return r;
	if (pipe2(fd, O_CLOEXEC) < 0)
		return -errno;
	*ret_child_fd = fd[0];
	in->fd = fd[1];
	return fd_set_nonblock(fd[1], true);
}

static void close_end(struct exec_input *in)
{
	loop_del(&in->watch);
	fd_close(&in->fd);
	free(in->own);
	in->own = NULL;
}

void exec_in_close(struct exec *e)
{
	struct exec_feeder *f = e->in.feeder;

	close_end(&e->in);
	e->in.feeder = NULL;
	if (f)
		f->closed(f);
}

static void want_room(struct exec *e)
{
	if (!e->in.watch.loop && loop_add(e->loop, &e->in.watch, e->in.fd, EPOLLOUT) < 0)
		exec_in_close(e); /* no memory for a watch: the feeder is told */
}

ssize_t exec_write(struct exec *e, const char *p, size_t n)
{
	struct exec_input *in = &e->in;
	size_t done = 0;

	while (done < n && in->fd >= 0) {
		ssize_t k = write(in->fd, p + done, n - done);

		if (k >= 0) {
			done += (size_t)k;
			in->last = k ? p[done - 1] : in->last;
			in->offset += (size_t)k;
		} else if (errno == EAGAIN) {
			want_room(e);
			return (ssize_t)done;
		} else if (errno != EINTR) {
			close_end(in);
		}
	}
	return in->fd < 0 && done < n ? -EPIPE : (ssize_t)done;
}

/* Input that came with the request: all of it, then the end. */
static void write_own(struct exec *e)
{
	struct exec_input *in = &e->in;
	ssize_t k = exec_write(e, in->own + in->own_at, in->own_len - in->own_at);

	if (k < 0)
		return;
	in->own_at += (size_t)k;
	if (in->own_at == in->own_len) {
		in->eof = true;
		close_end(in);
	}
}

static void on_writable(struct loop_watch *w, uint32_t events)
{
	struct exec *e = w->arg;

	(void)events;
	loop_del(w);
	if (e->in.own)
		write_own(e);
	else if (e->in.feeder)
		e->in.feeder->writable(e->in.feeder);
}

void exec_in_start(struct exec *e)
{
	if (e->in.own)
		write_own(e);
}

void exec_feed(struct exec *e, struct exec_feeder *f)
{
	struct exec_feeder *old = e->in.feeder;

	loop_del(&e->in.watch);
	e->in.feeder = f;
	if (old)
		old->closed(old);
}

void exec_unfeed(struct exec *e, struct exec_feeder *f)
{
	if (e->in.feeder != f)
		return;
	loop_del(&e->in.watch);
	e->in.feeder = NULL;
}
