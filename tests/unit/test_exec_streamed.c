/* SPDX-License-Identifier: Apache-2.0 */
/* LINK: host/backend.c host/agent/?*.c host/net/?*.c */
#include "scripted_agent.h"

/* The exec client against an agent whose answer to PUT is the output. */

#define FORGOTTEN STEP("DELETE /v1/execs/* ", REPLY, OK_REPLY), SCRIPT_END

static const struct how with = { .whole = 1 };
static const struct how fed = { .whole = 1, .input = "hello\n" };

static void test_streamed(void)
{
	static const struct step s[] = {
		STEP("PUT /v1/execs/*?follow=1&max=524288&forget=86400 ", REPLY,
		     RUNS ALIVE "c\r\n\1\0\0\0\0\0\0\4a\n\0b\r\n9\r\n\2\0\0\0\0\0\0\1e\r\n" EXIT0),
		FORGOTTEN,
	};
	static const struct step input[] = {
		STEP("PUT ", REPLY, RUNS "9\r\n\1\0\0\0\0\0\0\1a\r\n" EXIT0),
		STEP("DELETE ", HANG, ""),
		SCRIPT_END,
	};

	play(s, &with, &o);
	expect("streamed", 0, "a\n\0b", 4);
	ok_str(o.err, "e", "stderr goes to stderr");
	ok(!strstr(o.log, "GET") && strstr(o.log, "DELETE"), "no GET, and a DELETE");
	play(input, &fed, &o);
	expect("streamed, with all of the input, and a DELETE without an answer", 0, "a", 1);
	ok(strstr(o.log, "\"input\":\"aGVsbG8K\"}") && !strstr(o.log, "stdin") &&
		   !strstr(o.log, "POST"),
	   "the input goes with the request");
}

static void test_streamed_cut(void)
{
	static const struct step head[] = {
		/* none of it came: the same again */
		STEP("PUT ", CUT, RUNS),
		STEP("PUT ", CUT, ""),
		STEP("PUT ", REPLY,
		     "HTTP/1.1 200 OK\r\n" FRAMES "9\r\n\1\0\0\0\0\0\0\1a\r\n" EXIT0),
		FORGOTTEN,
	};
	static const struct step middle[] = {
		STEP("PUT ", CUT, RUNS "b\r\n\1\0\0\0\0\0\0\5abc"), /* 3 of 5 */
		STEP("GET /v1/execs/*/output?offset=3&follow=1&", CUT,
		     STREAM "a\r\n\1\0\0\0\0\0\0\2de\r\n"),
		STEP("GET /v1/execs/*/output?offset=5&follow=1&", REPLY, STREAM EXIT0),
		FORGOTTEN,
	};
	static const struct step end[] = {
		/* an exit event, and not the answer's end: it is not asked for again */
		STEP("PUT ", HANG_NEW, RUNS EXIT_EVENT),
		FORGOTTEN,
	};
	static const struct step half[] = {
		/* half of an exit event is none */
		STEP("PUT ", CUT,
		     RUNS "7b\r\n\3\0\0\0\0\0\0\x73{\"event\":\"exit\",\"exit_code\":0"),
		STEP("GET /v1/execs/*/output?offset=0&", REPLY, STREAM EXIT0),
		FORGOTTEN,
	};
	static const struct step forgotten[] = {
		STEP("PUT ", CUT, RUNS ALIVE),
		STEP("GET ", REPLY, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"),
		SCRIPT_END,
	};

	play(head, &with, &o);
	expect("cut before the first byte", 0, "a", 1);
	play(middle, &with, &o);
	expect("cut in a frame", 0, "abcde", 5);
	play(end, &with, &o);
	expect("an answer that does not end", 0, "", 0);
	ok(strstr(o.log, "DELETE") != NULL, "its connection is gone: the DELETE is waited for");
	play(half, &with, &o);
	expect("cut in the exit event", 0, "", 0);
	play(forgotten, &with, &o);
	expect("cut, and then it is not there", C_FAILED, "", 0);
}

static void test_streamed_hostile(void)
{
	static const struct step garbage[] = {
		STEP("PUT ", REPLY, RUNS "10\r\n\1\0\0\0\377\377\377\377xxxxxxxx\r\n"),
		SCRIPT_END,
	};
	static const struct step empty[] = {
		/* a stream of nothing says that it runs */
		STEP("PUT ", REPLY, RUNS "0\r\n\r\n"),
		STEP("GET ", REPLY, STREAM EXIT0),
		FORGOTTEN,
	};
	static const struct step refusal[] = {
		/* frames that are no success are no output */
		STEP("PUT ", REPLY, "HTTP/1.1 500 x\r\n" FRAMES "9\r\n\1\0\0\0\0\0\0\1a\r\n" EXIT0),
		SCRIPT_END,
	};
	static const struct step text[] = {
		/* output of another kind is none */
		STEP("PUT ", REPLY,
		     "HTTP/1.1 201 x\r\nContent-Type: text/plain\r\nContent-Length: 1\r\n\r\na"),
		STEP("GET ", REPLY, STREAM EXIT0),
		FORGOTTEN,
	};
	static const struct step again[] = {
		/* 400 for ever */
		STEP("PUT ", REPLY, UNKNOWN),
		STEP("PUT ", REPLY, UNKNOWN),
		SCRIPT_END,
	};

	play(garbage, &with, &o);
	expect("a frame of 4 GiB in the answer to PUT", C_FAILED, "", 0);
	play(empty, &with, &o);
	expect("a stream of nothing", 0, "", 0);
	play(refusal, &with, &o);
	expect("frames of a 500", C_FAILED, "", 0);
	play(text, &with, &o);
	expect("another type", 0, "", 0);
	play(again, &fed, &o);
	expect("400 with and without the input", C_FAILED, "", 0);
	ok(strstr(o.err, "does not know") != NULL, "is told: %s", o.err);
}

int main(void)
{
	signal(SIGPIPE, SIG_IGN);
	test_streamed();
	test_streamed_cut();
	test_streamed_hostile();
	return tap_done();
}
