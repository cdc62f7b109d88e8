/* SPDX-License-Identifier: Apache-2.0 */
/* LINK: agentd/[!m]*.c agentd/m[!a]*.c */
/* Lines on agentd's private socket. What they begin (a drain, a check by an exec) goes on while the next input comes. */
#include "fuzz/agent.h"
#include "lib/sock.h"

static char sock[] = "build/fuzz/private.sock";

static bool start(void)
{
	return agent_start(sock);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	int fd;

	if (!fuzz_started(start) || n > 60000 || sock_connect(sock, &fd) < 0)
		return 0;
	for (size_t i = 0, sent = 0; i < AGENT_TURNS && sent < n; i++) {
		ssize_t k = send(fd, p + sent, n - sent, MSG_DONTWAIT | MSG_NOSIGNAL);

		sent += k > 0 ? (size_t)k : 0;
		agent_turn(fd);
	}
	agent_turn(fd);
	(void)close(fd);
	agent_turn(-1);
	return 0;
}
