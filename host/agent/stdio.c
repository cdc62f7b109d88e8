/* SPDX-License-Identifier: Apache-2.0 */
#include "host/agent/stdio.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "lib/fd.h"

/*
 * O_NONBLOCK belongs to the open file, not to the descriptor: set on our stdin it would be set for
 * the shell too, and for every other process that got the same terminal or pipe. Opening
 * /proc/self/fd/N gives an open file of our own for the same pipe or terminal. Where that is
 * refused (a pipe of another user, no /proc), poll(2) is asked before each transfer: after POLLOUT
 * a pipe takes PIPE_BUF bytes without blocking, after POLLIN a read returns what there is.
 */

#define POLLED_MAX 4096 /* PIPE_BUF of Linux */

static enum stdio_kind classify(int *fd, int flags)
{
	struct stat st;
	char path[32];
	int own;

	if (fstat(*fd, &st) < 0)
		return STDIO_PLAIN;
	if (S_ISSOCK(st.st_mode))
		return STDIO_SOCKET;
	if (!S_ISFIFO(st.st_mode) && !isatty(*fd))
		return STDIO_PLAIN;
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", *fd);
	own = open(path, flags | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (own < 0)
		return STDIO_POLLED;
	*fd = own;
	return STDIO_PRIVATE;
}

static bool is_ready(int fd, short events)
{
	struct pollfd p = { .fd = fd, .events = events };

	return poll(&p, 1, 0) > 0;
}

/* --- output --- */

static ssize_t write_some(const struct sink *s, const void *p, size_t n)
{
	ssize_t k;

	if (s->kind == STDIO_POLLED) {
		if (!is_ready(s->fd, POLLOUT))
			return -EAGAIN;
		if (n > POLLED_MAX)
			n = POLLED_MAX;
	}
	do
		k = s->kind == STDIO_SOCKET ? send(s->fd, p, n, MSG_DONTWAIT | MSG_NOSIGNAL)
					    : write(s->fd, p, n);
	while (k < 0 && errno == EINTR);
	return k < 0 ? -errno : k;
}

/* Writes what can be written now; returns how much, or a negative errno other than -EAGAIN. */
static ssize_t write_now(const struct sink *s, const char *p, size_t n)
{
	size_t at = 0;

	while (at < n) {
		ssize_t k = write_some(s, p + at, n - at);

		if (k == -EAGAIN)
			break;
		if (k < 0)
			return k;
		at += (size_t)k;
	}
	return (ssize_t)at;
}

static int sink_fail(struct sink *s, int error)
{
	s->error = error;
	buf_clear(&s->pending);
	loop_del(&s->watch);
	return error;
}

static void on_writable(struct loop_watch *w, uint32_t events)
{
	struct sink *s = w->arg;
	ssize_t k = write_now(s, s->pending.p, s->pending.len);

	(void)events;
	if (k < 0)
		(void)sink_fail(s, (int)k);
	else
		buf_drop(&s->pending, (size_t)k);
	if (s->pending.len > 0)
		return;
	loop_del(&s->watch);
	s->ready(s->arg);
}

int sink_init(struct sink *s, struct loop *l, int fd, void (*ready)(void *arg), void *arg)
{
	*s = (struct sink){
		.fd = fd, .loop = l, .watch = LOOP_WATCH_INIT, .ready = ready, .arg = arg
	};
	buf_init(&s->pending, SINK_PENDING_MAX);
	s->watch.fn = on_writable;
	s->watch.arg = s;
	s->kind = classify(&s->fd, O_WRONLY);
	return 0;
}

void sink_done(struct sink *s)
{
	loop_del(&s->watch);
	buf_done(&s->pending);
	if (s->kind == STDIO_PRIVATE)
		fd_close(&s->fd);
}

bool sink_idle(const struct sink *s)
{
	return s->pending.len == 0;
}

int sink_write(struct sink *s, const void *p, size_t n)
{
	ssize_t k = 0;
	int r;

	if (s->error)
		return s->error;
	if (sink_idle(s)) {
		k = write_now(s, p, n);
		if (k < 0)
			return sink_fail(s, (int)k);
	}
	if ((size_t)k == n)
		return 0;
	r = buf_add(&s->pending, (const char *)p + k, n - (size_t)k);
	if (r == 0 && !s->watch.loop)
		r = loop_add(s->loop, &s->watch, s->fd, EPOLLOUT);
	return r < 0 ? sink_fail(s, r) : 0;
}

/* --- input --- */

static void on_readable(struct loop_watch *w, uint32_t events)
{
	struct source *s = w->arg;

	(void)events;
	loop_del(w);
	s->ready(s->arg);
}

static void on_now(struct loop_timer *t)
{
	struct source *s = t->arg;

	s->ready(s->arg);
}

void source_init(struct source *s, struct loop *l, int fd, void (*ready)(void *arg), void *arg)
{
	*s = (struct source){ .fd = fd,
			      .loop = l,
			      .watch = LOOP_WATCH_INIT,
			      .now = LOOP_TIMER_INIT,
			      .ready = ready,
			      .arg = arg };
	s->watch.fn = on_readable;
	s->watch.arg = s;
	s->now.fn = on_now;
	s->now.arg = s;
	s->kind = classify(&s->fd, O_RDONLY);
}

void source_done(struct source *s)
{
	loop_del(&s->watch);
	loop_disarm(&s->now);
	if (s->kind == STDIO_PRIVATE)
		fd_close(&s->fd);
}

int source_wait(struct source *s)
{
	int r;

	if (s->watch.loop || s->now.loop)
		return 0;
	r = loop_add(s->loop, &s->watch, s->fd, EPOLLIN);
	if (r != -EPERM)
		return r;
	loop_arm(s->loop, &s->now, 0);
	return 0;
}

bool source_ready(const struct source *s)
{
	return is_ready(s->fd, POLLIN);
}

ssize_t source_read(struct source *s, void *p, size_t n)
{
	ssize_t k;

	if (s->kind == STDIO_POLLED && !is_ready(s->fd, POLLIN))
		return -EAGAIN;
	do
		k = s->kind == STDIO_SOCKET ? recv(s->fd, p, n, MSG_DONTWAIT) : read(s->fd, p, n);
	while (k < 0 && errno == EINTR);
	return k < 0 ? -errno : k;
}

bool source_useful(int fd)
{
	struct stat st;
	int flags = fcntl(fd, F_GETFL);

	if (flags < 0 || (flags & O_ACCMODE) == O_WRONLY || fstat(fd, &st) < 0)
		return false;
	return !(S_ISCHR(st.st_mode) &&
		 st.st_rdev == makedev(1, 3)); /* devices.txt: 1:3 is /dev/null */
}
