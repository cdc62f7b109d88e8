/* SPDX-License-Identifier: Apache-2.0 */
/* LINK: agentd/[!m]*.c agentd/m[!a]*.c */
/*
 * A worker that a hostile archive has taken over: it says whatever the input says, as the head of an answer and behind it. Here
 * a worker is this program once more, and gives back the body of the request; the first byte is what it ends with.
 */
#include "fuzz/agent.h"

__attribute__((constructor)) static void be_worker(int argc, char **argv)
{
	char p[65536];
	unsigned char code = 0;
	ssize_t n;

	if (argc < 1 || strcmp(argv[0], WORKER_NAME) != 0)
		return;
	if (read(0, &code, 1) < 1)
		_exit(0);
	while ((n = read(0, p, sizeof(p))) > 0)
		if (write(1, p, (size_t)n) < n)
			break;
	if (code == 'k')
		(void)raise(SIGKILL);
	_exit(code == '0' ? 0 : code);
}

static bool start(void)
{
	static char sock[] = "build/fuzz/worker.sock";

	return agent_start(sock);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	char *s;
	int k;

	if (!fuzz_started(start) || n < 1 || n > 60000)
		return 0;
	s = malloc(n + 200);
	if (!s)
		abort();
	k = snprintf(
		s, 200,
		"PUT /v1/archive?path=/nonexistent HTTP/1.1\r\nHost: h\r\nConnection: close\r\n"
		"Content-Length: %zu\r\n\r\n",
		n);
	memcpy(s + k, p, n);
	k = agent_connect(s, (size_t)k + n);
	for (int i = 0; i < 5000 && worker_running(); i++) {
		agent_turn(k);
		usleep(200);
	}
	if (worker_running())
		abort();
	agent_close(k);
	free(s);
	return 0;
}
