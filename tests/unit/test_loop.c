/* SPDX-License-Identifier: Apache-2.0 */
#include "../../lib/loop.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../../lib/fd.h"
#include "../lib/tap.h"

static struct loop l;
static char order[64];

static void note(char c)
{
	size_t n = strlen(order);

	if (n + 1 < sizeof(order)) {
		order[n] = c;
		order[n + 1] = '\0';
	}
}

static void on_timer(struct loop_timer *t)
{
	note(*(const char *)t->arg);
}

static void on_stop(struct loop_timer *t)
{
	note('.');
	loop_stop(t->arg);
}

static void test_timers(void)
{
	struct loop_timer a = { .fn = on_timer, .arg = (char[]){ 'a' } };
	struct loop_timer b = { .fn = on_timer, .arg = (char[]){ 'b' } };
	struct loop_timer c = { .fn = on_timer, .arg = (char[]){ 'c' } };
	struct loop_timer never = { .fn = on_timer, .arg = (char[]){ 'n' } };
	struct loop_timer stop = { .fn = on_stop, .arg = &l };

	order[0] = '\0';
	loop_arm(&l, &stop, 30000000);
	loop_arm(&l, &c, 20000000);
	loop_arm(&l, &b, 1000000);
	loop_arm(&l, &a, -5);
	loop_arm(&l, &never, INT64_MAX);
	loop_arm(&l, &b, 10000000); /* again: moves it */
	ok_int(loop_run(&l), 0, "the loop runs until it is stopped");
	ok_str(order, "abc.", "timers fire once, in the order of their times");
	ok(never.loop == &l, "a timer in the far future is still armed");
	loop_disarm(&never);
	loop_disarm(&never);
	ok(!l.timers, "disarming twice is fine, and none is left");
}

/* Waits are not rounded up to a ms: the shortest of many is shorter. */
static void test_short_timer(void)
{
	int64_t shortest = INT64_MAX;

	for (int i = 0; i < 200; i++) {
		struct loop_timer t = { .fn = on_timer, .arg = (char[]){ 't' } };
		int64_t start = loop_now(), took;

		loop_arm(&l, &t, 100000);
		while (t.loop)
			if (loop_once(&l, -1) < 0)
				abort();
		took = loop_now() - start;
		shortest = took < shortest ? took : shortest;
	}
	ok(shortest >= 100000, "a timer of 0.1 ms is never early");
	if (syscall(SYS_epoll_pwait2, -1, NULL, 0, NULL, NULL, 0) < 0 && errno == ENOSYS)
		skip("the kernel cannot wait for less than a ms");
	else
		ok(shortest < 1000000, "nor always a ms late");
}

struct pair {
	struct loop_watch w;
	int rd, wr;
	struct pair *other;
};

static void on_pair(struct loop_watch *w, uint32_t events)
{
	struct pair *p = w->arg;

	(void)events;
	note(p->other ? '1' : '?');
	loop_del(&p->other->w); /* its event is in the same batch */
	loop_del(w);
}

static void test_stale(void)
{
	struct pair x = { .w = LOOP_WATCH_INIT }, y = { .w = LOOP_WATCH_INIT };
	int p[2];

	order[0] = '\0';
	ok(pipe2(p, O_CLOEXEC) == 0, "a pipe");
	x.rd = p[0], x.wr = p[1];
	ok(pipe2(p, O_CLOEXEC) == 0, "another");
	y.rd = p[0], y.wr = p[1];
	x.other = &y, y.other = &x;
	x.w.fn = y.w.fn = on_pair;
	x.w.arg = &x, y.w.arg = &y;
	ok_int(loop_add(&l, &x.w, x.rd, EPOLLIN), 0, "watch one");
	ok_int(loop_add(&l, &y.w, y.rd, EPOLLIN), 0, "watch the other");
	ok_int(fd_write_all(x.wr, "x", 1) + fd_write_all(y.wr, "y", 1), 0, "both become readable");
	ok_int(loop_once(&l, 1000), 0, "one turn");
	ok_str(order, "1", "the watch that was removed during the batch is not called");
	fd_close(&x.rd), fd_close(&x.wr), fd_close(&y.rd), fd_close(&y.wr);
}

static void on_signal(void *arg, const void *info)
{
	const struct signalfd_siginfo *si = info;

	*(int *)arg = (int)si->ssi_signo;
}

static int prepare_ms(void *arg)
{
	++*(int *)arg;
	return 5;
}

int main(void)
{
	int got = 0, asked = 0;
	sigset_t set;
	struct loop_prepare prep = { .fn = prepare_ms, .arg = &asked };
	int64_t t;

	ok_int(loop_init(&l), 0, "a loop");
	test_timers();
	test_short_timer();
	test_stale();
	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGUSR1);
	ok_int(loop_signals(&l, &set, on_signal, &got), 0, "signals are taken");
	(void)kill(getpid(), SIGUSR1);
	ok_int(loop_once(&l, 1000), 0, "one turn");
	ok_int(got, SIGUSR1, "the signal arrives in the loop");
	loop_add_prepare(&l, &prep);
	t = loop_now();
	ok_int(loop_once(&l, -1), 0, "one turn with nothing to do");
	ok(asked == 1 && loop_now() - t >= 5000000, "waits as long as the preparer said");
	loop_done(&l);
	return tap_done();
}
