/* SPDX-License-Identifier: Apache-2.0 */
#include "ws_peer.h"

/* Messages both ways, queues that are full, and time. */

static void test_messages(void)
{
	static struct bytes b;
	const char *p;
	size_t n;

	b.n = 0;
	m_fragments(&b);
	begin(b.p, b.n); /* behind the head, in the same packet */
	got_len = 0;
	run(20);
	ok_int(messages, 1, "early bytes are a message");
	ok(last_text && last_len == 6 && !strcmp(last, "a\xe2\x82\xac z"), "fragments are joined");
	ok(frame_at(0, &p, &n) == PONG && n == 1 && *p == 'p',
	   "a ping is answered with its own bytes");
	ok_int(ws_send(&ws, true, "h\xc3\xa4", 3), 0, "text goes out");
	ok_int(ws_send(&ws, false, zeros, 300), 0, "binary goes out");
	ok_int(ws_send(&ws, true, "\xff", 1), -EINVAL, "text that is not UTF-8 does not");
	run(20);
	ok(frame_at(1, &p, &n) == TEXT && n == 3 && !memcmp(p, "h\xc3\xa4", 3), "and arrives");
	ok(frame_at(2, &p, &n) == BINARY && n == 300, "both do");
	ws_close(&ws, WS_GOING_AWAY, "bye");
	ok_int(ws_send(&ws, true, "x", 1), -EPIPE, "nothing is sent behind a close");
	run(20);
	ok_int(sent_close(), 1001, "close from here");
	ok_int(closes, 0, "the client has time to read it");
	push(b.p, b.n); /* dropped */
	(void)shutdown(peer, SHUT_WR);
	run(1000);
	ok(closes == 1 && close_code == 1001 && messages == 1, "closed once, with our code");
	end();
	begin(NULL, 0);
	fd_close(&peer);
	run(1000);
	ok(closes == 1 && close_code == WS_BROKEN, "an end without a close frame is 1006");
	end();
}

static void test_flow(void)
{
	static struct bytes b, pings;
	size_t sent = 0;
	int r;

	begin(NULL, 0);
	got_len = 0;
	while ((r = ws_send(&ws, false, zeros, 16000)) == 0 && sent < (8U << 20))
		sent += 16000;
	ok_int(r, -ENOSPC, "a client that does not read fills the queue");
	ok(ws.queue.len <= QUEUE && ws_room(&ws, 16000) < 16000, "which is bounded");
	pings.n = 0;
	for (int i = 0; i < 500; i++)
		frame(&pings, PING, FILL(100));
	for (int i = 0; i < 4; i++) {
		(void)send(peer, pings.p, pings.n, MSG_DONTWAIT | MSG_NOSIGNAL);
		run(5);
		got_len = 0;
	}
	ok(ws.state == WS_OPEN && ws.queue.len <= QUEUE && ws.in.len <= 16384,
	   "nor do its pings grow anything (%zu queued, %zu read)", ws.queue.len, ws.in.len);
	for (int i = 0; i < 1000 && !rooms; i++) {
		got_len = 0;
		run(1);
	}
	ok_int(rooms, 1, "room is told once");
	end();

	/* a paused reader */
	begin(NULL, 0);
	b.n = 0;
	for (int i = 0; i < 3; i++)
		frame(&b, TEXT, S("one"));
	pause_at_message = true;
	push(b.p, b.n);
	ok_int(messages, 1, "a pause in a message holds the next one back");
	ws_pause(&ws, false);
	turn(10);
	ok_int(messages, 2, "which comes when it is over");
	pause_at_message = false;
	ws_pause(&ws, false);
	turn(10);
	ok_int(messages, 3, "and the last");
	ws_pause(&ws, true);
	for (sent = 0; sent < (64U << 20);) {
		ssize_t k = send(peer, pings.p, pings.n, MSG_DONTWAIT | MSG_NOSIGNAL);

		turn(0);
		if (k < 0)
			break;
		sent += (size_t)k;
	}
	ok(sent < (64U << 20) && ws.in.len <= 16384, "while paused nothing is read");
	end();
}

static void test_time(void)
{
	const char *p;
	size_t n;

	config.ping_ns = 20 * MS;
	config.stall_ns = 400 * MS;
	begin(NULL, 0);
	got_len = 0;
	run(100);
	ok(frame_at(0, &p, &n) == PING && n == 0, "a silent client is pinged");
	run(5000);
	ok(closes == 1 && close_code == WS_BROKEN, "and cut when it stays silent");
	end();
	begin(NULL, 0);
	ws_pause(&ws, true);
	for (int i = 0; i < 700; i++)
		turn(1);
	ok_int(closes, 0, "not while it is us who do not listen");
	while (ws_send(&ws, false, zeros, 16000) == 0)
		;
	for (int i = 0; i < 5000 && !closes; i++)
		turn(1);
	ok(closes == 1 && close_code == WS_BROKEN,
	   "a client that takes nothing is cut all the same");
	end();
	config.ping_ns = 15000 * MS;
	config.stall_ns = 300000 * MS;
	begin(NULL, 0);
	ws_close(&ws, WS_NORMAL, NULL);
	for (int i = 0; i < 5000 && !closes; i++)
		turn(1);
	ok(closes == 1 && close_code == WS_NORMAL,
	   "a client that does not close is not waited for long");
	end();
}

int main(void)
{
	peer = -1;
	memset(zeros, 'z', sizeof(zeros));
	if (loop_init(&loop) < 0)
		return 1;
	test_messages();
	test_flow();
	test_time();
	loop_done(&loop);
	return tap_done();
}
