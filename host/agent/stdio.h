/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_AGENT_STDIO_H
#define ASB_AGENT_STDIO_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "lib/buf.h"
#include "lib/compiler.h"
#include "lib/loop.h"

/*
 * The caller's standard streams inside a loop, without ever blocking in read(2) or write(2) and
 * without O_NONBLOCK on descriptors that other processes share.
 */
enum stdio_kind {
	STDIO_PLAIN,   /* a file or a device that does not block for long: used as it is */
	STDIO_PRIVATE, /* a pipe or terminal, opened again for us alone with O_NONBLOCK */
	STDIO_SOCKET,  /* MSG_DONTWAIT */
	STDIO_POLLED   /* poll(2) first, then few bytes */
};

#define SINK_PENDING_MAX (1U << 20)

/* Where output goes. */
struct sink {
	int fd; /* borrowed, or owned when private */
	enum stdio_kind kind;
	struct loop *loop;
	struct loop_watch watch;
	struct buf pending;	  /* taken, not yet written */
	int error;		  /* negative errno: nothing more is written */
	void (*ready)(void *arg); /* pending has become empty, or an error came */
	void *arg;
};

int sink_init(struct sink *s, struct loop *l, int fd, void (*ready)(void *arg), void *arg)
	MUST_CHECK;
void sink_done(struct sink *s);
/* Takes all N bytes (at most SINK_PENDING_MAX while something is pending) or fails: -EPIPE,
 * -ENOSPC, … */
int sink_write(struct sink *s, const void *p, size_t n) MUST_CHECK;
bool sink_idle(const struct sink *s);

/* Where input comes from. */
struct source {
	int fd; /* borrowed, or owned when private */
	enum stdio_kind kind;
	struct loop *loop;
	struct loop_watch watch;
	struct loop_timer now; /* for what epoll(7) does not take: regular files are always ready */
	void (*ready)(void *arg);
	void *arg;
};

void source_init(struct source *s, struct loop *l, int fd, void (*ready)(void *arg), void *arg);
void source_done(struct source *s);
bool source_ready(const struct source *s); /* a read would not wait */
/* Calls READY once when there is something to read, or the end. 0 or negative errno. */
int source_wait(struct source *s) MUST_CHECK;
/* > 0 bytes, 0 at the end, -EAGAIN, or another negative errno. */
ssize_t source_read(struct source *s, void *p, size_t n) MUST_CHECK;

/* Whether FD gives anything at all: false for /dev/null, a closed descriptor, one not open for
 * reading. */
bool source_useful(int fd);

#endif
