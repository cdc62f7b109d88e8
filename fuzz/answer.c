/* SPDX-License-Identifier: Apache-2.0 */
/* LINK: hooks/agent.c */
/*
 * What asb-hooks is answered on agentd's private socket, in pieces of the length that the first byte says; then the
 * connection ends. Whatever comes, the question is answered once, and only an object with "ok": true is a yes.
 */
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fuzz/confined.h"
#include "fuzz/fuzz.h"
#include "hooks/agent.h"
#include "lib/jsn.h"
#include "lib/sock.h"

#define SOCKET "build/fuzz/answer.sock"
#define TURNS  64

static struct loop loop;
static int listener;
static unsigned answers;

static void on_done(void *arg, int result, const struct cJSON *answer, const char *why)
{
	bool yes = false;

	(void)arg;
	answers++;
	if (!why || (result == 0) != (answer != NULL))
		abort();
	if (answer && (jsn_bool(answer, "ok", &yes, NULL) != 1 || !yes))
		abort();
}

static bool start(void)
{
	if (!fuzz_confine("build/fuzz"))
		return false;
	if (loop_init(&loop) < 0 || sock_listen(SOCKET, 0600, &listener) < 0)
		abort();
	return true;
}

static void turn(void)
{
	if (loop_once(&loop, 0) < 0)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	struct agent_call c = { .done = on_done };
	size_t step = n ? p[0] + 1u : 1;
	int fd;

	if (!fuzz_started(start) || n < 1 || n > 100000)
		return 0;
	answers = 0;
	agent_call(&c, &loop, SOCKET, cJSON_CreateObject(), false, 1000000000LL);
	turn();
	if (sock_accept(listener, &fd) < 0)
		abort();
	for (size_t at = 1; at < n && !answers; at += step) {
		size_t k = n - at < step ? n - at : step;

		if (send(fd, p + at, k, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 && errno != EPIPE)
			break; /* more than the socket holds */
		turn();
	}
	(void)close(fd);
	for (int i = 0; i < TURNS && !answers; i++)
		turn();
	turn();
	if (answers != 1)
		abort();
	return 0;
}
