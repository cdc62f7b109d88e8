/* SPDX-License-Identifier: Apache-2.0 */
/* LINK: host/local/qmp.c */
/* A QEMU that a guest has taken over, on the supervisor's QMP socket. */
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fuzz/fuzz.h"
#include "host/local/qmp.h"

static int asked, answered;

static void on_done(void *arg, const cJSON *ret, const char *why)
{
	(void)arg;
	if (!ret == !why)
		abort();
	answered++;
}

static void ready(void *arg)
{
	asked += qmp_send(arg, "query-status", on_done, arg) == 0;
}

static void event(void *arg, const char *name, const cJSON *data)
{
	(void)data;
	if (!name)
		abort();
	asked += qmp_send(arg, name, on_done, arg) == 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	struct qmp q;
	struct loop l;
	int sv[2];

	(void)signal(SIGPIPE, SIG_IGN);
	if (n > 60000 || loop_init(&l) < 0)
		return 0;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, sv) < 0)
		abort();
	memset(&q, 0, sizeof(q));
	q.arg = &q;
	q.ready = ready;
	q.event = event;
	asked = answered = 0;
	if (qmp_open(&q, &l, sv[0]) < 0)
		abort();
	for (size_t sent = 0, i = 0; i < 100 && sent < n; i++) {
		char sink[4096];
		ssize_t k = send(sv[1], p + sent, n - sent, MSG_DONTWAIT | MSG_NOSIGNAL);

		sent += k > 0 ? (size_t)k : 0;
		ignore_result(loop_once(&l, 0));
		while (recv(sv[1], sink, sizeof(sink), MSG_DONTWAIT) > 0)
			;
	}
	qmp_close(&q);
	if (asked != answered) /* each command has one end */
		abort();
	loop_done(&l);
	(void)close(sv[1]);
	return 0;
}
