/* SPDX-License-Identifier: Apache-2.0 */
#include "loop.h"

#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "fd.h"
#include "proc.h"

/*
 * Stale events: epoll_wait returns a batch, and the callback of one watch may free another whose event is
 * still in the batch. loop_del therefore walks what is left of the batch and forgets the watch there.
 *
 * Timers are a list sorted by time. There are a few hundred at most (two for each running command), and nearly
 * all are armed at the far end, where insertion from the back would be O(1); insertion walks from the front
 * because the short ones (kill grace, linger) are the ones that are re-armed often.
 */

#define NS_PER_MS 1000000LL
#define NS_PER_S  1000000000LL
#define FINE_NS	  NS_PER_S /* longer waits are not that exact */

int64_t loop_now(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

int loop_init(struct loop *l)
{
	*l = (struct loop){ .epfd = epoll_create1(EPOLL_CLOEXEC), .sigwatch = LOOP_WATCH_INIT };
	return l->epfd < 0 ? -errno : 0;
}

void loop_done(struct loop *l)
{
	int sigfd = l->sigwatch.fd;

	loop_del(&l->sigwatch);
	fd_close(&sigfd);
	while (l->timers)
		loop_disarm(l->timers);
	fd_close(&l->epfd);
}

int loop_add(struct loop *l, struct loop_watch *w, int fd, uint32_t events)
{
	struct epoll_event e = { .events = events, .data.ptr = w };

	if (epoll_ctl(l->epfd, EPOLL_CTL_ADD, fd, &e) < 0)
		return -errno;
	w->fd = fd;
	w->events = events;
	w->loop = l;
	return 0;
}

int loop_set(struct loop_watch *w, uint32_t events)
{
	struct epoll_event e = { .events = events, .data.ptr = w };

	if (!w->loop)
		return -EBADF;
	if (w->events == events)
		return 0;
	if (epoll_ctl(w->loop->epfd, EPOLL_CTL_MOD, w->fd, &e) < 0)
		return -errno;
	w->events = events;
	return 0;
}

void loop_del(struct loop_watch *w)
{
	struct loop *l = w->loop;

	if (!l)
		return;
	(void)epoll_ctl(l->epfd, EPOLL_CTL_DEL, w->fd, NULL);
	for (int i = l->batch_at; i < l->batch_len; i++)
		if (l->batch[i] == w)
			l->batch[i] = NULL;
	w->fd = -1;
	w->loop = NULL;
}

void loop_arm(struct loop *l, struct loop_timer *t, int64_t after_ns)
{
	int64_t now = loop_now();
	struct loop_timer **at = &l->timers, *prev = NULL;

	loop_disarm(t);
	if (after_ns < 0)
		after_ns = 0;
	t->at_ns = after_ns > INT64_MAX - now ? INT64_MAX : now + after_ns;
	while (*at && (*at)->at_ns <= t->at_ns) {
		prev = *at;
		at = &prev->next;
	}
	t->loop = l;
	t->prev = prev;
	t->next = *at;
	if (*at)
		(*at)->prev = t;
	*at = t;
}

void loop_disarm(struct loop_timer *t)
{
	if (!t->loop)
		return;
	if (t->prev)
		t->prev->next = t->next;
	else
		t->loop->timers = t->next;
	if (t->next)
		t->next->prev = t->prev;
	t->loop = NULL;
	t->next = t->prev = NULL;
}

void loop_add_prepare(struct loop *l, struct loop_prepare *p)
{
	p->next = l->prepares;
	l->prepares = p;
}

void loop_del_prepare(struct loop *l, struct loop_prepare *p)
{
	struct loop_prepare **at = &l->prepares;

	while (*at && *at != p)
		at = &(*at)->next;
	if (*at)
		*at = p->next;
}

static void on_sigfd(struct loop_watch *w, uint32_t events)
{
	struct loop *l = w->arg;
	struct signalfd_siginfo si;

	(void)events;
	while (read(w->fd, &si, sizeof(si)) == (ssize_t)sizeof(si))
		l->on_signal(l->signal_arg, &si);
}

int loop_signals(struct loop *l, const sigset_t *set, void (*fn)(void *arg, const void *siginfo),
		 void *arg)
{
	AUTO_FD fd = -1;
	int r;

	if (sigprocmask(SIG_BLOCK, set, NULL) < 0)
		return -errno;
	if (sigismember(set, SIGCHLD))
		proc_keep_children();
	fd = signalfd(-1, set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (fd < 0)
		return -errno;
	l->on_signal = fn;
	l->signal_arg = arg;
	l->sigwatch.fn = on_sigfd;
	l->sigwatch.arg = l;
	r = loop_add(l, &l->sigwatch, fd, EPOLLIN);
	if (r == 0)
		(void)fd_take(&fd);
	return r;
}

/* Longest wait that timers, preparers and the caller allow, in ns; -1 for ever. */
static int64_t wait_ns(struct loop *l, int max_ms)
{
	int64_t ns = max_ms < 0 ? -1 : max_ms * NS_PER_MS;

	for (struct loop_prepare *p = l->prepares; p; p = p->next) {
		int want = p->fn(p->arg);

		if (want >= 0 && (ns < 0 || want * NS_PER_MS < ns))
			ns = want * NS_PER_MS;
	}
	if (l->timers) {
		int64_t left = l->timers->at_ns - loop_now();

		if (left < 0)
			left = 0;
		if (ns < 0 || left < ns)
			ns = left;
	}
	return ns;
}

/* Waits are short of a ms where a pipe is left to fill. Older kernels than 5.11 and emulators of user space only know whole ones,
 * which are then rounded up. */
static int wait_events(int epfd, struct epoll_event *ev, int64_t ns)
{
	struct {
		int64_t s, ns;
	} t = { ns / NS_PER_S, ns % NS_PER_S }; /* struct __kernel_timespec */
	int64_t ms = (ns + NS_PER_MS - 1) / NS_PER_MS;
	int n;

	if (ns > 0 && ns < FINE_NS) {
		n = (int)syscall(SYS_epoll_pwait2, epfd, ev, LOOP_BATCH, &t, NULL, 0);
		if (n >= 0 || errno == EINTR)
			return n;
	}
	return epoll_wait(epfd, ev, LOOP_BATCH, ns < 0 ? -1 : ms > INT_MAX ? INT_MAX : (int)ms);
}

static void fire_timers(struct loop *l)
{
	int64_t now = loop_now();

	while (l->timers && l->timers->at_ns <= now) {
		struct loop_timer *t = l->timers;

		loop_disarm(t);
		t->fn(t);
	}
}

int loop_once(struct loop *l, int max_ms)
{
	struct epoll_event ev[LOOP_BATCH];
	int n = wait_events(l->epfd, ev, wait_ns(l, max_ms));

	if (n < 0)
		return errno == EINTR ? 0 : -errno;
	for (int i = 0; i < n; i++)
		l->batch[i] = ev[i].data.ptr;
	l->batch_len = n;
	for (int i = 0; i < n; i++) {
		struct loop_watch *w = l->batch[i];

		l->batch_at = i + 1;
		if (w)
			w->fn(w, ev[i].events);
	}
	l->batch_len = l->batch_at = 0;
	fire_timers(l);
	return 0;
}

int loop_run(struct loop *l)
{
	int r = 0;

	l->stop = false;
	while (!l->stop && r == 0)
		r = loop_once(l, -1);
	return r;
}

void loop_stop(struct loop *l)
{
	l->stop = true;
}
