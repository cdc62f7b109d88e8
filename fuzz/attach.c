/* SPDX-License-Identifier: Apache-2.0 */
/* LINK: agentd/[!m]*.c agentd/m[!a]*.c */
/*
 * A client that has attached to a terminal. Each line of the input is a message: behind "t" one of control, behind "b" what is
 * typed. The frames themselves are the matter of ws.c.
 */
#include "fuzz/agent.h"

#define FRAME_HEAD 8 /* RFC 6455 §5.2: two bytes, a length of two, a key of four (zeros) */

static bool start(void)
{
	static char sock[] = "build/fuzz/attach.sock";

	return agent_start(sock);
}

static size_t frame(char *out, bool text, const uint8_t *p, size_t n)
{
	const unsigned char head[FRAME_HEAD] = { text ? 0x81 : 0x82, 0xfe, (n >> 8) & 0xff,
						 n & 0xff };
	const unsigned char short_[6] = { text ? 0x81 : 0x82, (unsigned char)(0x80 | n) };
	size_t k = n < 126 ? sizeof(short_) : sizeof(head);

	memcpy(out, n < 126 ? short_ : head, k);
	if (n)
		memcpy(out + k, p, n);
	return k + n;
}

static char *dialogue(const uint8_t *p, size_t n, size_t *ret_len)
{
	static const char hello[] =
		"GET /v1/execs/a/attach HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\n"
		"Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
		"Sec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\n\r\n";
	char *s = malloc(sizeof(hello) + n * FRAME_HEAD);
	size_t len = sizeof(hello) - 1;

	if (!s)
		abort();
	memcpy(s, hello, len);
	for (size_t at = 0; at < n;) {
		const uint8_t *nl = memchr(p + at, '\n', n - at);
		size_t k = nl ? (size_t)(nl - p) - at : n - at;

		if (k)
			len += frame(s + len, p[at] != 'b', p + at + 1, k - 1);
		at += k + 1;
	}
	*ret_len = len;
	return s;
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	size_t len;
	char *s;

	if (!fuzz_started(start) || n < 1 || n > 60000)
		return 0;
	agent_have_exec("{\"argv\":[\"cat\"],\"pty\":{\"rows\":5,\"cols\":20}}");
	s = dialogue(p, n, &len);
	agent_say(s, len);
	return 0;
}
