/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Both ends of the VM channel against an arbitrary peer. The first byte chooses the end; for the guest a good hello goes before
 * the rest, so that the fuzzer spends its time behind it.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fuzz/fuzz.h"
#include "lib/chan.h"
#include "lib/fd.h"

static void nothing(void *arg)
{
	(void)arg;
}

static void down(void *arg, const char *why)
{
	(void)arg;
	(void)why;
}

static size_t take_all(void *arg, const void *p, size_t n)
{
	(void)arg;
	(void)p;
	return n;
}

static void closed(void *arg, int error)
{
	(void)arg;
	(void)error;
}

static const struct chan_stream_ops stream_ops = {
	.opened = nothing, .data = take_all, .writable = nothing, .closed = closed
};

static void on_connect(void *arg, struct chan_stream *s, uint16_t port)
{
	(void)arg;
	if (port & 1)
		ignore_result(chan_accept(s, &stream_ops, NULL));
	else
		chan_refuse(s, ECONNREFUSED);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	static const struct chan_ops ops = { .up = nothing, .down = down, .connect = on_connect };
	static const char hello[] = "ASB1 HELLO 00112233445566778899aabbccddeeff\n";
	struct loop l;
	struct chan *c;
	int sv[2];

	(void)signal(SIGPIPE, SIG_IGN);
	if (n < 1 || loop_init(&l) < 0)
		return 0;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, sv) < 0)
		abort();
	if (chan_start(&l, p[0] & 1 ? CHAN_HOST : CHAN_GUEST, sv[0], &ops, NULL, &c) < 0)
		abort();
	if (!(p[0] & 1) && write(sv[1], hello, sizeof(hello) - 1) < 0)
		abort();
	for (int i = 0; i < 3; i++)
		ignore_result(loop_once(&l, 0));
	if (write(sv[1], p + 1, n - 1) < 0)
		n = 1;
	for (int i = 0; i < 16; i++) {
		char sink[4096];

		ignore_result(loop_once(&l, 0));
		while (read(sv[1], sink, sizeof(sink)) > 0)
			;
	}
	chan_free(c);
	loop_done(&l);
	(void)close(sv[0]);
	(void)close(sv[1]);
	return 0;
}
