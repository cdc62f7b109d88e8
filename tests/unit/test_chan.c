/* SPDX-License-Identifier: Apache-2.0 */
#include <signal.h>

#include "chan_pair.h"

static struct user users[300];

static void test_basic(void)
{
	struct user *u = &users[0];

	wire();
	ok_int(chan_connect(host.c, 80, &user_ops, u, &u->s), -ENOTCONN,
	       "no connect before the hello");
	both_up("basic");
	echo_works("basic");
	dial(u, 1);
	UNTIL(u->closed);
	ok_int(u->error, -ECONNREFUSED, "a refusal is told as such");
	ok_int(u->opened, 0, "and is no opening");
	ok_int(host.down, 0, "the session stays");
	unwire();
}

static void test_half_close(void)
{
	struct user *u = &users[0], *g = &guest.users[0];

	wire();
	both_up("half-close");
	dial(u, 2); /* read by the guest, which ends when it likes */
	chan_write_end(u->s);
	UNTIL(g->eofs);
	ok_int(g->eofs, 1, "the guest sees the end of the host's bytes");
	ok_int(chan_write(g->s, "later", 5), 5, "and can still write");
	UNTIL(u->got == 5);
	ok_int(u->got, 5, "which arrives");
	ok_int(u->closed, 0, "the stream is still there");
	chan_write_end(g->s);
	UNTIL(u->closed && g->closed);
	ok(u->error == 0 && g->error == 0 && u->eofs == 1, "then both ends are told of the end");
	unwire();
}

static void test_reset(void)
{
	struct user *u = &users[0], *g;

	wire();
	both_up("reset");
	dial(u, 2);
	UNTIL(u->opened);
	g = &guest.users[0];
	chan_reset(u->s);
	UNTIL(g->closed);
	ok_int(g->error, -ECONNRESET, "the guest is told of a reset");
	ok_int(u->closed, 0, "the one who reset is not");
	dial(u, 2);
	UNTIL(u->opened);
	g = &guest.users[1];
	ok_int(chan_write(g->s, "last words", 10), 10, "the guest writes");
	chan_write_end(g->s);
	UNTIL(u->eofs);
	chan_reset(g->s);
	UNTIL(u->closed);
	ok(u->got == 10 && u->eofs == 1 && u->closed == 1, "bytes before a reset arrive");
	dial(u, 80);
	u->reset_on_data = true;
	ok_int(chan_write(u->s, "x", 1), 1, "write");
	UNTIL(!u->s);
	ok(!u->s, "a stream may be reset by its own callback");
	echo_works("afterwards");
	unwire();
}

/* A CONNECT that is answered after the host has given it up, or after the session has gone. */
static void test_late_answer(void)
{
	struct user *u = &users[0];

	wire();
	both_up("late answer");
	dial(u, 7);
	UNTIL(guest.held);
	ok(guest.held != NULL, "the guest holds a CONNECT");
	ok_int(chan_write(u->s, "early", 5), 5, "the host may write before the answer");
	chan_reset(u->s);
	echo_works("meanwhile");
	ok_int(chan_accept(guest.held, &user_ops, &guest.users[5]), -ECONNRESET, "too late");
	guest.held = NULL;
	dial(u, 7);
	ok_int(chan_write(u->s, "early", 5), 5, "write");
	UNTIL(guest.held);
	guest.users[6] = (struct user){ .s = guest.held, .echo = true, .allowed = SIZE_MAX };
	ok_int(chan_accept(guest.held, &user_ops, &guest.users[6]), 0, "accept later");
	UNTIL(u->got == 5);
	ok_int(u->got, 5, "what was written before is there");
	dial(u, 7);
	guest.held = NULL;
	UNTIL(guest.held);
	ok_int(fd_write_all(relay_fd[1], (char[CHAN_BREAK]){ 0 }, CHAN_BREAK), 0, "break");
	UNTIL(guest.down);
	chan_refuse(guest.held, ECONNREFUSED);
	both_up("after a break");
	echo_works("after a break");
	unwire();
}

static size_t count_closed(int from, int to)
{
	size_t n = 0;

	for (int i = from; i < to; i++)
		n += users[i].closed == 1;
	return n;
}

static void test_many(void)
{
	size_t open = 0, done = 0;

	wire();
	both_up("many");
	dial(&users[0], 9); /* the guest never reads it */
	users[0].to_send = 8 << 20;
	push(&users[0]);
	dial(&users[1], 10); /* the host never reads it */
	users[1].allowed = 0;
	for (int i = 2; i < 100; i++) {
		dial(&users[i], 80);
		users[i].to_send = 300000;
		push(&users[i]);
	}
	UNTIL((done = count_closed(2, 100)) == 98);
	ok_int(done, 98, "98 streams end while two stand still");
	for (int i = 2; i < 100; i++)
		open += users[i].got != 300000 || users[i].error;
	ok_int(open, 0, "each byte of them came back");
	ok(users[0].to_send > (6 << 20), "what the guest does not read is held back (%zu left)",
	   users[0].to_send);
	ok_int(users[1].got, 0, "the other stream gave nothing");
	users[1].allowed = SIZE_MAX;
	chan_resume(users[1].s);
	UNTIL(users[1].eofs);
	ok_int(users[1].got, 4 << 20, "and gives everything when it is read at last");
	for (int i = 2; i < 254; i++)
		ok_int(chan_connect(host.c, 2, &user_ops, &users[i], &users[i].s), 0, "connect");
	ok_int(chan_connect(host.c, 2, &user_ops, &users[256], &users[256].s), 0, "the 254th");
	ok_int(chan_connect(host.c, 2, &user_ops, &users[257], &users[257].s), 0, "the 255th");
	ok_int(chan_connect(host.c, 2, &user_ops, &users[258], &users[258].s), -EMFILE,
	       "one more than the limit");
	unwire();
}

static void test_split(void)
{
	wire();
	relay_step = 1;
	both_up("byte by byte");
	echo_works("byte by byte");
	unwire();
	for (size_t step = 2; step < 70; step += 3) {
		wire();
		relay_step = step;
		UNTIL(chan_is_up(host.c));
		echo_works("split");
		unwire();
	}
}

static void test_garbage(void)
{
	static const char nl[] =
		"\n\n\n\nASB1 HELLO \nASB1 HELLO xyz\nASB1 READY 00000000000000000000000000000000\n";
	static char junk[70000];

	for (size_t i = 0; i < sizeof(junk); i++)
		junk[i] = (char)(i * 2654435761U >> 13);
	wire();
	ok_int(fd_write_all(relay_fd[0], junk, sizeof(junk)), 0, "garbage for the host");
	ok_int(fd_write_all(relay_fd[0], nl, sizeof(nl) - 1), 0, "and half hellos");
	ok_int(fd_write_all(relay_fd[1], nl, sizeof(nl) - 1), 0, "for the guest too");
	ok_int(fd_write_all(relay_fd[1], junk, sizeof(junk)), 0, "and garbage");
	both_up("garbage before the hello");
	echo_works("garbage before the hello");
	/* in mid-session, with a stream open */
	dial(&users[0], 2);
	UNTIL(users[0].opened);
	ok_int(fd_write_all(relay_fd[0], junk, 20000), 0, "garbage for the host in mid-session");
	UNTIL(host.down == 1 && guest.down == 1);
	ok(users[0].closed == 1 && users[0].error == -ECONNRESET, "the stream is cut");
	both_up("after garbage");
	echo_works("after garbage");
	unwire();
}

/* Forgets what is on its way out of FD's socket, so that nothing follows the cut but the new
 * session. */
static void drain(int fd)
{
	char p[4096];

	while (read(fd, p, sizeof(p)) > 0)
		;
}

/* Each end is replaced in the middle of a large transfer, cut at many offsets of a frame. */
static void test_restart(void)
{
	for (size_t cut = 1; cut < 60000; cut += 4999) {
		struct user *u = &users[0];

		wire();
		UNTIL(chan_is_up(host.c) && chan_is_up(guest.c));
		dial(u, 80);
		u->to_send = 1 << 20;
		push(u);
		relay_left[1] = cut; /* towards the guest */
		UNTIL(relay_left[1] == 0);
		chan_free(host.c); /* the supervisor dies, another one takes its place */
		drain(relay_fd[0]);
		relay_left[1] = SIZE_MAX;
		end_start(&host, CHAN_HOST, host.fd);
		UNTIL(chan_is_up(host.c));
		echo_works("the host began anew");
		dial(u, 10);
		relay_left[0] = cut; /* towards the host */
		UNTIL(relay_left[0] == 0);
		chan_free(guest.c);
		drain(relay_fd[1]);
		relay_left[0] = SIZE_MAX;
		end_start(&guest, CHAN_GUEST, guest.fd);
		UNTIL(u->closed && chan_is_up(guest.c) && chan_is_up(host.c));
		ok_int(u->error, -ECONNRESET, "the guest began anew: its stream is cut");
		echo_works("the guest began anew");
		unwire();
	}
}

static void test_hello_in_session(void)
{
	static const char hello[] = "ASB1 HELLO 0123456789abcdef0123456789abcdef\n";
	struct user *u = &users[0];

	wire();
	both_up("hello in mid-session");
	ok_int(fd_write_all(relay_fd[1], hello, sizeof(hello) - 1), 0,
	       "a hello between two frames");
	UNTIL(guest.down);
	ok(guest.down >= 1, "ends the session of the guest");
	UNTIL(host.down);
	both_up("the host says hello again");
	echo_works("afterwards");
	/* the same text as user data is nothing special */
	dial(u, 80);
	for (int i = 0; i < 100; i++)
		ok_int(chan_write(u->s, hello, sizeof(hello) - 1), sizeof(hello) - 1,
		       "hello as data");
	chan_write_end(u->s);
	UNTIL(u->closed);
	ok_int(u->got, 100 * (sizeof(hello) - 1), "comes back");
	unwire();
}

static void test_quiesce(void)
{
	struct user *u = &users[0];
	char p[64];

	wire();
	ok_int(chan_quiesce(host.c), -ENOTCONN, "nothing to quiesce");
	both_up("quiesce");
	dial(u, 10);
	UNTIL(u->got > 100000);
	ok_int(chan_quiesce(host.c), 0, "quiesce in the middle of a transfer");
	ok_int(chan_quiesce(host.c), -EBUSY, "once");
	ok_int(chan_connect(host.c, 80, &user_ops, &users[1], &users[1].s), -ENOTCONN,
	       "no new streams");
	UNTIL(host.down && guest.down);
	ok(host.down == 1 && guest.down == 1, "both ends are down");
	ok_str(host.why, "quiesced", "for the reason asked for");
	ok_str(guest.why, "quiesced", "on both ends");
	ok_int(u->error, -ECONNRESET, "the stream was cut");
	for (int i = 0; i < 20; i++)
		(void)!loop_once(&loop, 10);
	ok(recv(relay_fd[0], p, 1, MSG_DONTWAIT) < 0 && recv(relay_fd[1], p, 1, MSG_DONTWAIT) < 0 &&
		   recv(host.fd, p, 1, MSG_DONTWAIT) < 0 && recv(guest.fd, p, 1, MSG_DONTWAIT) < 0,
	   "nothing is in flight, and nothing is said");
	ok(host.up == 1 && !chan_is_up(host.c), "the host stays silent");
	chan_hello(host.c);
	both_up("hello");
	echo_works("after the hello");
	for (int i = 0; i < 20; i++)
		(void)!loop_once(&loop, 10);
	ok_int(chan_quiesce(host.c), 0, "quiesce with no stream open");
	UNTIL(host.down == 2 && guest.down == 2);
	ok(host.down == 2 && guest.down == 2, "both ends are down");
	ok_str(host.why, "quiesced", "for the reason asked for");
	chan_hello(host.c);
	both_up("hello");
	unwire();
}

static void test_host_gone(void)
{
	int turns = 0;
	int64_t end;

	wire();
	both_up("the pipe ends");
	dial(&users[0], 2);
	UNTIL(users[0].opened);
	loop_del(&relay_watch[1]);
	fd_close(&relay_fd[1]);
	UNTIL(guest.down);
	ok_int(guest.down, 1, "the guest's session ends");
	for (end = loop_now() + 300000000; loop_now() < end; turns++)
		(void)!loop_once(&loop, 100);
	ok(turns < 30, "the guest waits without spinning (%d turns in 300 ms)", turns);
	loop_del(&relay_watch[0]);
	fd_close(&relay_fd[0]);
	host.free_on_down = true;
	UNTIL(!host.c);
	ok(!host.c && users[0].closed == 1, "the host is told, and may free the channel in down()");
	host.free_on_down = false;
	unwire();
}

int main(void)
{
	(void)signal(SIGPIPE, SIG_IGN);
	if (loop_init(&loop) < 0)
		return 1;
	test_basic();
	test_half_close();
	test_reset();
	test_late_answer();
	test_many();
	test_split();
	test_garbage();
	test_restart();
	test_hello_in_session();
	test_quiesce();
	test_host_gone();
	loop_done(&loop);
	return tap_done();
}
