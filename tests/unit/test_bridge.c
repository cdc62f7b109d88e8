/* SPDX-License-Identifier: Apache-2.0 */
/* How the ends of a stream arrive at the socket it is joined to. */
#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "../../lib/bridge.h"
#include "chan_pair.h"

static int ended;

static void on_ended(struct bridge *b, int error)
{
	(void)b;
	(void)error;
	ended++;
}

/* The guest answers, ends its half and resets, while our side has more to say than anybody takes:
 * the answer and its end must arrive, not the reset, however late they are read. */
static void answer_before_the_end(void)
{
	static const char question[1 << 16];
	static struct user none;
	struct bridge b;
	struct chan_stream *s;
	char in[64];
	ssize_t k;
	int sv[2];

	pair(sv);
	ok_int(chan_connect(host.c, 9, &bridge_ops, &b, &s), 0, "connect");
	ok_int(bridge_start(&b, &loop, s, sv[0], on_ended), 0, "bridge");
	UNTIL(guest.n_users == 1);
	while ((k = write(sv[1], question, sizeof(question))) > 0) /* more than fits */
		if (loop_once(&loop, 20) < 0)
			break;
	ok(chan_write(guest.users[0].s, "enough", 6) == 6, "answer");
	chan_write_end(guest.users[0].s);
	UNTIL(chan_drained(guest.users[0].s));
	chan_reset(guest.users[0].s);
	guest.users[0] = none;
	UNTIL(ended);
	k = read(sv[1], in, sizeof(in));
	ok(k == 6 && memcmp(in, "enough", 6) == 0, "an early answer arrives");
	ok_int((int)read(sv[1], in, sizeof(in)), 0, "and its end");
	fd_close(&sv[1]);
}

/* A stream that is cut in the middle is no end. */
static void cut(void)
{
	struct bridge b;
	struct chan_stream *s;
	char in[64];
	int sv[2];

	ended = 0;
	pair(sv);
	ok_int(chan_connect(host.c, 9, &bridge_ops, &b, &s), 0, "connect");
	ok_int(bridge_start(&b, &loop, s, sv[0], on_ended), 0, "bridge");
	UNTIL(guest.n_users == 2);
	ok_int((int)write(sv[1], "xy", 2), 2, "write");
	chan_reset(guest.users[1].s);
	UNTIL(ended);
	ok_int(ended, 1, "told once");
	ok(read(sv[1], in, sizeof(in)) <= 0, "nothing comes");
	fd_close(&sv[1]);
}

static void tcp_pair(int sv[2])
{
	const struct sockaddr_in any = { .sin_family = AF_INET,
					 .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct sockaddr_in to;
	socklen_t len = sizeof(to);
	int l = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (l < 0 || bind(l, (const struct sockaddr *)&any, sizeof(any)) < 0 || listen(l, 1) < 0 ||
	    getsockname(l, (struct sockaddr *)&to, &len) < 0)
		exit(1);
	sv[1] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (sv[1] < 0 || connect(sv[1], (struct sockaddr *)&to, sizeof(to)) < 0)
		exit(1);
	sv[0] = accept4(l, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	close(l);
}

/* Of a service in the guest: what came is there, and then no end of file. */
static void cut_tcp(void)
{
	struct bridge b;
	struct chan_stream *s;
	char in[64];
	int sv[2];

	ended = 0;
	tcp_pair(sv);
	ok_int(chan_connect(host.c, 9, &bridge_ops, &b, &s), 0, "connect");
	ok_int(bridge_start(&b, &loop, s, sv[0], on_ended), 0, "bridge");
	UNTIL(guest.n_users == 3);
	ok(chan_write(guest.users[2].s, "half", 4) == 4, "the half of something");
	UNTIL(recv(sv[1], in, sizeof(in), MSG_PEEK | MSG_DONTWAIT) == 4);
	chan_reset(guest.users[2].s);
	UNTIL(ended);
	ok_int((int)read(sv[1], in, sizeof(in)), 4, "what had come");
	ok(read(sv[1], in, sizeof(in)) < 0 && errno == ECONNRESET, "and a reset");
	fd_close(&sv[1]);
}

int main(void)
{
	(void)signal(SIGPIPE, SIG_IGN);
	if (loop_init(&loop) < 0)
		return 1;
	wire();
	both_up("bridge");
	answer_before_the_end();
	cut();
	cut_tcp();
	unwire();
	loop_done(&loop);
	return tap_done();
}
