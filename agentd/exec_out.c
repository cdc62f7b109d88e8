/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "exec.h"
#include "lib/fd.h"
#include "lib/proto.h"

/*
 * From the pipes of a command into its log (native) or its capture (compatible).
 *
 * Pace. The log is bounded, and two wishes collide: nothing that a live reader will fetch may be
 * lost, and nobody may hold the command for ever. A byte at or behind the anchor (the offset of the
 * fastest follower, or of the last one when there is none) has not been fetched by anybody. While
 * the log is full of such bytes the pipes are not read and the command stands, until pace_until: 10
 * s from its start or from the end of the last follower (time to attach, or to come back), 300 s
 * from the last progress of a follower. After that the oldest bytes go, readers get a gap, and the
 * result says truncated. The fastest follower sets the pace, so that a slow one holds up nobody
 * else.
 *
 * Rest. A command that writes small pieces in a row would wake agentd, its client, and in a VM the channel and the
 * host for each of them. So after a small read that follows another one closely, the pipe is left to fill: for as long as that
 * takes at the pace of that read, a ms at most. The first bytes after a silence go on at once, and so do large reads.
 *
 * Linger. After the leader's end: each pipe is read until it has been found empty once (or as much
 * as it can hold has been read), which is all that the leader itself wrote; then until both have
 * ended, or nothing came for 100 ms, or 500 ms are over. While the command stands for a slow reader
 * this clock does not run out, because a pipe that is not read is not drained.
 *
 * After that (EXITED) what background children write is thrown away, slowly.
 */

static char scratch[LIMIT_READ]; /* between read(2) and a log; agentd has one thread */
static size_t captured;		 /* bytes in the captures of all execs */

static void on_readable(struct loop_watch *w, uint32_t events);
static void linger_check(struct exec *e);

/* --- start and end --- */
static int open_pipe(struct exec_pipe *p, int *ret_child)
{
	int fd[2];

	if (pipe2(fd, O_CLOEXEC) < 0)
		return -errno;
	p->fd = fd[0];
	*ret_child = fd[1];
	return fcntl(fd[0], F_SETFL, O_NONBLOCK) < 0 ? -errno : 0;
}

int exec_out_open(struct exec *e, int child_fd[2])
{
	int r = open_pipe(&e->out[0], &child_fd[0]);

	if (r < 0)
		return r;
	r = open_pipe(&e->out[1], &child_fd[1]);
	if (r < 0)
		fd_close(&child_fd[0]);
	return r;
}

static void on_linger(struct loop_timer *t)
{
	linger_check(t->arg);
}

static void close_pipe(struct exec_pipe *p)
{
	loop_del(&p->watch);
	loop_disarm(&p->spill);
	fd_close(&p->fd);
}

static int watch_pipe(struct exec_pipe *p)
{
	if (p->fd < 0 || p->watch.loop)
		return 0;
	return loop_add(p->e->loop, &p->watch, p->fd, EPOLLIN);
}

static void read_again(struct exec *e)
{
	loop_disarm(&e->pace);
	e->paused = false;
	for (int i = 0; i < 2; i++)
		if (watch_pipe(&e->out[i]) < 0)
			close_pipe(&e->out[i]); /* no memory for a watch */
}

static void on_pace(struct loop_timer *t)
{
	read_again(t->arg);
}

static void on_spill(struct loop_timer *t)
{
	struct exec_pipe *p = t->arg;

	if (watch_pipe(p) < 0)
		close_pipe(p);
}

int exec_out_start(struct exec *e)
{
	int r = 0;

	for (int i = 0; i < 2 && r == 0; i++) {
		struct exec_pipe *p = &e->out[i];

		p->e = e;
		p->stream = i == 0 ? PROTO_STREAM_STDOUT : PROTO_STREAM_STDERR;
		p->watch = (struct loop_watch)LOOP_WATCH_INIT;
		p->watch.fn = on_readable;
		p->watch.arg = p->spill.arg = p;
		p->spill.fn = on_spill;
		r = watch_pipe(p);
	}
	e->linger.fn = on_linger;
	e->pace.fn = on_pace;
	e->linger.arg = e->pace.arg = e;
	return r;
}

void exec_out_close(struct exec *e)
{
	loop_disarm(&e->linger);
	loop_disarm(&e->pace);
	for (int i = 0; i < 2; i++) {
		close_pipe(&e->out[i]);
		captured -= e->cap[i].len;
		buf_done(&e->cap[i]);
	}
}

void exec_out_hang_up(struct exec *e)
{
	close_pipe(&e->out[0]);
}

/* A terminal gives 4 KiB at a time, a pipe up to LIMIT_READ. */
static int read_rounds(const struct exec *e)
{
	return e->pty ? LIMIT_READ_ROUNDS * 16 : LIMIT_READ_ROUNDS;
}

/* --- pace --- */
static uint64_t anchor(const struct exec *e)
{
	uint64_t most = 0;

	if (!e->followers)
		return e->anchor;
	for (const struct exec_follower *f = e->followers; f; f = f->next) {
		uint64_t at = f->bounded ? f->sure : f->offset;

		if (at > most)
			most = at;
	}
	return most;
}

/* How much may be read now. 0: the command must wait, and the pipes are not watched until it may go
 * on. */
static size_t may_read(struct exec *e)
{
	size_t room;
	int64_t now;

	if (e->capture || e->state == EXEC_EXITED)
		return LIMIT_READ;
	room = outlog_room(&e->log, anchor(e));
	if (room >= LIMIT_READ)
		return LIMIT_READ;
	now = loop_now();
	if (now >= e->pace_until)
		return LIMIT_READ;
	if (room > 0)
		return room;
	e->paused = true;
	for (int i = 0; i < 2; i++)
		loop_del(&e->out[i].watch); /* not only its events: EPOLLHUP would come all the same
					     */
	loop_arm(e->loop, &e->pace, e->pace_until - now);
	return 0;
}

void exec_follow(struct exec *e, struct exec_follower *f)
{
	f->e = e;
	f->next = e->followers;
	e->followers = f;
	e->pace_until = loop_now() + LIMIT_STALL_NS;
	if (e->paused)
		read_again(e);
}

void exec_unfollow(struct exec_follower *f)
{
	struct exec *e = f->e;
	struct exec_follower **at;

	if (!e)
		return;
	e->anchor = anchor(e);
	for (at = &e->followers; *at != f; at = &(*at)->next)
		;
	*at = f->next;
	f->e = NULL;
	if (e->followers)
		return;
	e->pace_until = loop_now() + LIMIT_ATTACH_NS;
	if (e->paused)
		loop_arm(e->loop, &e->pace, LIMIT_ATTACH_NS);
}

void exec_fetched(struct exec_follower *f, size_t n)
{
	struct exec *e = f->e;

	f->offset += n;
	e->pace_until = loop_now() + LIMIT_STALL_NS;
	/* To go on for every few bytes of room would cost two changes of the running process each time. */
	if (e->paused && outlog_room(&e->log, anchor(e)) >= outlog_room(&e->log, e->log.end) / 4)
		read_again(e);
}

void exec_wake_followers(struct exec *e)
{
	for (struct exec_follower *f = e->followers; f; f = f->next)
		f->wake(f);
}

/* --- bytes --- */
static void capture(struct exec *e, int i, const char *p, size_t n)
{
	size_t left = LIMIT_CAPTURE_SUM - captured;

	if (n > left || buf_add(&e->cap[i], p, n) < 0) {
		e->truncated = true;
		return;
	}
	captured += n;
}

static void keep(struct exec_pipe *p, size_t n)
{
	struct exec *e = p->e;
	uint64_t unread = anchor(e);

	p->bytes += n;
	if (e->capture) {
		capture(e, p == &e->out[1], scratch, n);
		return;
	}
	if (outlog_add(&e->log, p->stream, scratch, n) && e->log.start > unread)
		e->truncated = true;
}

/* Reads once. False when there is nothing more to do for now. */
static bool read_pipe(struct exec_pipe *p)
{
	struct exec *e = p->e;
	size_t max = may_read(e);
	ssize_t n;

	if (max == 0)
		return false;
	n = read(p->fd, scratch, max);
	if (n < 0 && errno == EINTR)
		return true;
	if (n < 0 && errno == EAGAIN) {
		p->drained = e->leader_ended;
		return false;
	}
	if (n <= 0) {
		close_pipe(p);
		return false;
	}
	if ((size_t)n >= LIMIT_REST_BELOW && !p->grown && !e->pty) {
		/* smaller where the system's limit for users is reached */
		(void)fcntl(p->fd, F_SETPIPE_SZ, LIMIT_PIPE);
		p->grown = true;
	}
	if (e->state == EXEC_EXITED) { /* nobody will see it */
		loop_del(&p->watch);
		loop_arm(e->loop, &p->spill, LIMIT_SPILL_NS);
		return false;
	}
	keep(p, (size_t)n);
	e->last_data = e->leader_ended ? loop_now() : 0;
	p->since_end += e->leader_ended ? (size_t)n : 0;
	return true;
}

void exec_out_release(struct exec *e)
{
	if (e->state == EXEC_EXITED && !e->id[0] && e->out[0].fd < 0 && e->out[1].fd < 0)
		exec_forget(e, true);
}

void exec_take_capture(struct exec *e, int i, struct buf *to)
{
	*to = e->cap[i];
	buf_init(&e->cap[i], 0);
}

void exec_capture_done(struct buf *b)
{
	captured -= b->len;
	buf_done(b);
}

/* GOT bytes came since the turn before: at that pace, how long until there is enough for a large read? */
static int64_t time_to_fill(int64_t since, uint64_t got)
{
	int64_t want = LIMIT_REST_FILL - (int64_t)got;

	if (got == 0 || want > LIMIT_REST_NS / since * (int64_t)got)
		return LIMIT_REST_NS;
	return since * want / (int64_t)got;
}

static void rest(struct exec_pipe *p, uint64_t got)
{
	int64_t now = loop_now(), since = now - p->last_turn;

	p->last_turn = now;
	if (since <= 0 || since >= LIMIT_BURST_NS || got >= LIMIT_REST_BELOW ||
	    p->e->state != EXEC_RUNNING || !p->watch.loop)
		return;
	loop_del(&p->watch);
	loop_arm(p->e->loop, &p->spill, time_to_fill(since, got));
}

static void on_readable(struct loop_watch *w, uint32_t events)
{
	struct exec_pipe *p = w->arg;
	struct exec *e = p->e;
	uint64_t before = p->bytes;

	(void)events;
	for (int i = 0; i < read_rounds(e) && read_pipe(p); i++)
		;
	if (p->bytes != before)
		exec_wake_followers(e);
	rest(p, p->bytes - before);
	if (e->state == EXEC_LINGER)
		linger_check(e);
	else
		exec_out_release(e);
}

/* --- linger --- */
/* All that the leader itself wrote has been read from P. */
static bool leaders_bytes_read(const struct exec_pipe *p)
{
	int size;

	if (p->fd < 0 || p->drained)
		return true;
	size = fcntl(p->fd, F_GETPIPE_SZ);
	return p->since_end >= (size > 0 ? (uint64_t)size : 65536);
}

static void linger_check(struct exec *e)
{
	int64_t now = loop_now(), quiet, left;

	if (e->state != EXEC_LINGER)
		return;
	if (e->out[0].fd < 0 && e->out[1].fd < 0) {
		loop_disarm(&e->linger);
		exec_finish(e);
		return;
	}
	if (!leaders_bytes_read(&e->out[0]) || !leaders_bytes_read(&e->out[1]))
		return; /* on_readable comes back here */
	quiet = (e->last_data ? e->last_data : e->end_ns) + LIMIT_QUIET_NS - now;
	left = e->end_ns + LIMIT_LINGER_NS - now;
	if (left <= 0 || quiet <= 0) {
		loop_disarm(&e->linger);
		exec_finish(e);
		return;
	}
	loop_arm(e->loop, &e->linger, quiet < left ? quiet : left);
}

/* What the leader left is read here and now as far as the pace allows: for most commands that is
 * all, and the answer goes out without another turn of the loop. */
void exec_out_leader_ended(struct exec *e)
{
	bool more = false;

	e->last_data = 0;
	for (int i = 0; i < 2; i++)
		for (int k = 0; k < read_rounds(e) && e->out[i].fd >= 0 && !e->paused; k++)
			if (!read_pipe(&e->out[i]))
				break;
			else
				more = true;
	if (more)
		exec_wake_followers(e);
	linger_check(e);
}
