/* SPDX-License-Identifier: Apache-2.0 */
/* A client behind the handshake of a WebSocket. The first byte: into how many pieces the rest is cut. */
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fuzz/fuzz.h"
#include "lib/fd.h"
#include "lib/ws.h"

static struct ws ws;
static bool open_;

static void message(void *arg, bool text, const char *p, size_t n)
{
	(void)arg;
	if (p[n] != '\0')
		abort();
	if (n && p[0] == 'q')
		ws_close(&ws, WS_NORMAL, "enough");
	else
		ignore_result(ws_send(&ws, text, p, n));
}

static void writable(void *arg)
{
	(void)arg;
}

static void closed(void *arg, unsigned code)
{
	(void)arg;
	(void)code;
	open_ = false;
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	static const struct ws_config config = { .message_max = 65536,
						 .queue_max = 4096,
						 .ping_ns = 1000000000,
						 .stall_ns = 5000000000,
						 .message = message,
						 .writable = writable,
						 .closed = closed };
	struct loop l;
	size_t piece, head;
	int sv[2];

	(void)signal(SIGPIPE, SIG_IGN);
	if (n < 1 || loop_init(&l) < 0)
		return 0;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, sv) < 0)
		abort();
	piece = p[0] ? (n + p[0] - 1) / p[0] : n;
	p++;
	n--;
	head = p[-1] & 1 && n > 4 ? 3 : 0; /* some came with the head */
	if (ws_start(&ws, &l, sv[0], &config, (const char *)p, head) < 0)
		abort();
	open_ = true;
	for (size_t at = head; open_ && at < n; at += piece) {
		size_t k = n - at < piece ? n - at : piece;
		char sink[4096];

		if (write(sv[1], p + at, k) < 0)
			break;
		ignore_result(loop_once(&l, 0));
		while (read(sv[1], sink, sizeof(sink)) > 0)
			;
	}
	(void)shutdown(sv[1], SHUT_WR);
	for (int i = 0; open_ && i < 8; i++)
		ignore_result(loop_once(&l, 0));
	if (open_)
		ws_stop(&ws);
	loop_done(&l);
	(void)close(sv[0]);
	(void)close(sv[1]);
	return 0;
}
