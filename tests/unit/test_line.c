/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/line.h"
#include "lib/sock.h"
#include "tap.h"

static void test_splits(void)
{
	static const char text[] = "one\n\nthree 3\n";
	static const char *const want[] = { "one", "", "three 3" };
	bool good = true;

	for (size_t cut = 0; cut < sizeof(text); cut++) {
		struct line_cutter c;
		size_t n = 0, len;
		char *s;

		line_cutter_init(&c, 16);
		good = good && line_feed(&c, text, cut) == 0;
		for (; (s = line_next(&c, &len)); n++)
			good = good && n < 3 && !strcmp(s, want[n]) && strlen(s) == len;
		good = good && line_feed(&c, text + cut, sizeof(text) - 1 - cut) == 0;
		for (; (s = line_next(&c, &len)); n++)
			good = good && n < 3 && !strcmp(s, want[n]) && strlen(s) == len;
		good = good && n == 3;
		line_cutter_done(&c);
	}
	ok(good, "three lines, cut at every offset");
}

static void test_bytes(void)
{
	static const char text[] = "a\nbc\n\n";
	struct line_cutter c;
	size_t len, n = 0;

	line_cutter_init(&c, 4);
	for (size_t i = 0; i < sizeof(text) - 1; i++) {
		ok_int(line_feed(&c, text + i, 1), 0, "one byte");
		while (line_next(&c, &len))
			n++;
	}
	ok_int(n, 3, "three lines, byte by byte");
	line_cutter_done(&c);
}

static void test_caps(void)
{
	struct line_cutter c;
	size_t len;
	char *s;

	line_cutter_init(&c, 4);
	ok_int(line_feed(&c, "1234\n", 5), 0, "a line of the longest length");
	ok_int(line_feed(&c, "1234", 4), 0, "and an open one behind it");
	ok_int(line_feed(&c, "5", 1), -EMSGSIZE, "one byte more");
	line_cutter_done(&c);
	line_cutter_init(&c, 4);
	ok_int(line_feed(&c, "x\n12345\n", 8), -EMSGSIZE, "too long behind a good one");
	line_cutter_done(&c);
	line_cutter_init(&c, 4);
	ok_int(line_feed(&c, "a\0b\n", 4), 0, "a NUL is a byte");
	s = line_next(&c, &len);
	ok(s && len == 3 && strlen(s) == 1, "and the length tells of it");
	line_cutter_done(&c);
}

/* --- peers: A echoes what B sends --- */
static struct loop loop;
static struct line_peer *heap_peer;
static int lines, closes, last_error;
static char last[64];

static void echo(struct line_peer *p, char *s, size_t len)
{
	(void)len;
	lines++;
	(void)snprintf(last, sizeof(last), "%s", s);
	if (!strcmp(s, "close")) {
		line_close(p);
		free(p); /* as an owner may: the loop must not touch it again */
		heap_peer = NULL;
		return;
	}
	if (!strcmp(s, "pause"))
		line_pause(p, true);
	ok_int(line_send(p, s), 0, "an answer is queued");
}

static void closed(struct line_peer *p, int error)
{
	(void)p;
	closes++;
	last_error = error;
}

static const struct line_ops ops = { echo, closed };

static int make(void)
{
	int sv[2];

	lines = closes = last_error = 0;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, sv) < 0)
		abort();
	heap_peer = calloc(1, sizeof(*heap_peer));
	if (!heap_peer || line_open(&loop, heap_peer, sv[0], 100, &ops, NULL) < 0)
		abort();
	return sv[1];
}

static void drop(int fd)
{
	if (heap_peer)
		line_close(heap_peer);
	free(heap_peer);
	heap_peer = NULL;
	(void)close(fd);
}

static void spin(int ms)
{
	int64_t end = loop_now() + ms * 1000000LL;

	while (loop_now() < end)
		if (loop_once(&loop, 5) < 0)
			abort();
}

static void put(int fd, const char *s)
{
	if (write(fd, s, strlen(s)) != (ssize_t)strlen(s))
		abort();
}

static void test_peer(void)
{
	char b[200];
	int fd = make();
	ssize_t k;

	put(fd, "hello\nwor");
	spin(20);
	put(fd, "ld\n");
	spin(20);
	k = read(fd, b, sizeof(b));
	ok(k == 12 && !memcmp(b, "hello\nworld\n", 12), "two lines come back");
	put(fd, "last\n");
	(void)shutdown(fd, SHUT_WR);
	spin(20);
	k = read(fd, b, sizeof(b));
	ok(k == 5, "a half-closed peer still gets its answer");
	ok(closes == 1 && last_error == 0 && heap_peer->fd < 0, "and then the end is told, once");
	drop(fd);
}

static void test_close_inside(void)
{
	int fd = make();

	put(fd, "close\nnever\n");
	spin(20);
	ok(lines == 1 && closes == 0 && !heap_peer, "closed and freed inside its own callback");
	drop(fd);
}

static void test_pause(void)
{
	int fd = make();

	put(fd, "pause\nnext\n");
	spin(20);
	ok_int(lines, 1, "no line is given while paused");
	line_pause(heap_peer, false);
	ok_int(lines, 1, "nor from inside the call that ends the pause");
	spin(20);
	ok(lines == 2 && !strcmp(last, "next"), "but then from the loop");
	put(fd, "pause\n");
	spin(20);
	(void)close(fd);
	spin(20);
	ok(closes == 1, "the end is noticed while paused");
	drop(-1);
}

static void test_limits(void)
{
	char *big = calloc(1, LINE_OUT_MAX + 1);
	int fd = make();

	line_deadline(heap_peer, 20 * 1000000LL);
	spin(60);
	ok(closes == 1 && last_error == -ETIMEDOUT, "the deadline");
	drop(fd);

	fd = make();
	for (int i = 0; i < 11; i++)
		put(fd, "0123456789");
	spin(20);
	ok(closes == 1 && last_error == -EMSGSIZE, "a line over the cap");
	drop(fd);

	fd = make();
	memset(big, 'x', LINE_OUT_MAX);
	ok_int(line_send(heap_peer, big), -ENOSPC, "a message over the queue");
	big[LINE_OUT_MAX - 1] = '\0';
	ok_int(line_send(heap_peer, big), 0, "one that just fits, to a peer that does not read");
	ok_int(line_send(heap_peer, big), -ENOSPC, "and the next does not");
	drop(fd);
	free(big);

	fd = make();
	(void)close(fd);
	spin(20);
	ok(closes == 1 && line_send(heap_peer, "x") == -ENOTCONN, "a closed peer takes nothing");
	drop(-1);
}

static void test_sock(void)
{
	char path[] = "/tmp/asb-test-line.XXXXXX", long_path[200];
	struct stat st;
	int l, c, s;

	if (mkstemp(path) < 0)
		abort();
	(void)umask(0);
	ok_int(sock_listen(path, 0600, &l), 0, "listens where a file was");
	ok(stat(path, &st) == 0 && S_ISSOCK(st.st_mode) && (st.st_mode & 0777) == 0600,
	   "mode 0600");
	ok_int(sock_accept(l, &s), -EAGAIN, "nobody there yet");
	ok_int(sock_connect(path, &c), 0, "connects");
	ok_int(sock_accept(l, &s), 0, "and is accepted");
	(void)close(c);
	(void)close(s);
	(void)close(l);
	ok_int(sock_connect(path, &c), -ECONNREFUSED, "nobody listens any more");
	(void)unlink(path);
	ok_int(sock_connect(path, &c), -ENOENT, "nothing there");
	memset(long_path, 'x', sizeof(long_path));
	long_path[sizeof(long_path) - 1] = '\0';
	ok_int(sock_listen(long_path, 0600, &l), -ENAMETOOLONG, "a path that does not fit");
	ok_int(sock_connect("", &l), -ENOENT, "no path");
}

int main(void)
{
	if (loop_init(&loop) < 0)
		return 1;
	test_splits();
	test_bytes();
	test_caps();
	test_peer();
	test_close_inside();
	test_pause();
	test_limits();
	test_sock();
	loop_done(&loop);
	return tap_done();
}
