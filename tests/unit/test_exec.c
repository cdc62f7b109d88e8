/* SPDX-License-Identifier: Apache-2.0 */
/* LINK: host/backend.c host/agent/?*.c host/net/?*.c */
#include "scripted_agent.h"

/* The exec client against an agent whose answer to PUT is JSON, as it is for older ones; test_exec_streamed.c has the other. */

static void test_plain(void)
{
	static const struct step s[] = {
		STEP("PUT /v1/execs/*?follow=1&max=524288&forget=86400 HTTP/1.1\r\n", REPLY,
		     STARTED),
		STEP("GET /v1/execs/*/output?offset=0&follow=1&max=524288 ", REPLY,
		     STREAM "c\r\n\1\0\0\0\0\0\0\4a\n\0b\r\n9\r\n\2\0\0\0\0\0\0\1e\r\n" EXIT0),
		STEP("DELETE /v1/execs/* ", REPLY, OK_REPLY),
		SCRIPT_END,
	};

	play(s, &plain, &o);
	expect("plain", 0, "a\n\0b", 4);
	ok_str(o.err, "e", "stderr goes to stderr");
	ok(strstr(o.log, "{\"argv\":[\"prog\",\"a\\\"b\"]}") != NULL,
	   "the request carries the arguments");
}

static void test_resume(void)
{
	static const struct step s[] = {
		STEP("PUT /v1/execs/*?", CUT, ""), /* no answer: sent again */
		STEP("PUT /v1/execs/*?", REPLY, STARTED),
		STEP("GET /v1/execs/*/output?offset=0&", CUT,
		     STREAM "b\r\n\1\0\0\0\0\0\0\5abc"), /* 3 of 5 */
		STEP("GET /v1/execs/*/output?offset=3&", CUT,
		     "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"),
		STEP("GET /v1/execs/*/output?offset=3&", REPLY,
		     STREAM "a\r\n\1\0\0\0\0\0\0\2de\r\n" EXIT0),
		STEP("DELETE /v1/execs/* ", REPLY, OK_REPLY),
		SCRIPT_END,
	};

	play(s, &plain, &o);
	expect("cut and resumed", 0, "abcde", 5);
}

static void test_gap(void)
{
	static const struct step s[] = {
		STEP("PUT ", REPLY, STARTED),
		STEP("GET ", REPLY,
		     STREAM
		     "9\r\n\1\0\0\0\0\0\0\1a\r\n2c\r\n\3\0\0\0\0\0\0\x24{\"event\":\"gap\",\"from\":1,\"to\":100001}"
		     "\r\n9\r\n\1\0\0\0\0\0\0\1b\r\n" EXIT0),
		STEP("DELETE ", REPLY, OK_REPLY),
		SCRIPT_END,
	};

	play(s, &plain, &o);
	expect("gap", 0, "ab", 2);
	ok_str(o.err, "lost 100000", "the gap is counted");
}

static void test_refusals(void)
{
	static const struct step none[] = {
		STEP("PUT ", REPLY,
		     "HTTP/1.1 404 Not Found\r\nContent-Length: 63\r\n\r\n"
		     "{\"detail\":\"command not found: prog\",\"step\":\"exec\",\"errno\":2   }"),
		SCRIPT_END,
	};
	static const struct step other[] = {
		STEP("PUT ", REPLY, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"),
		SCRIPT_END,
	};
	static const struct step empty500[] = {
		STEP("PUT ", REPLY, "HTTP/1.1 500 x\r\nContent-Length: 0\r\n\r\n"),
		SCRIPT_END,
	};
	static const struct step lost[] = {
		STEP("PUT ", REPLY, STARTED),
		STEP("GET ", REPLY, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"),
		SCRIPT_END,
	};

	play(none, &plain, &o);
	expect("no such command", C_NO_COMMAND, "", 0);
	play(other, &plain, &o);
	expect("a 404 that is not about the command", C_FAILED, "", 0);
	play(empty500, &plain, &o);
	expect("a 500 without a body", C_FAILED, "", 0);
	play(lost, &plain, &o);
	expect("the agent knows the exec no more", C_FAILED, "", 0);
	ok(strstr(o.err, "not known") != NULL, "and no status is invented: %s", o.err);
}

static void test_hostile(void)
{
	static const struct step garbage[] = {
		STEP("PUT ", REPLY, STARTED),
		STEP("GET ", REPLY, STREAM "10\r\n\1\0\0\0\377\377\377\377xxxxxxxx\r\n"),
		SCRIPT_END,
	};
	static const struct step event[] = {
		STEP("PUT ", REPLY, STARTED),
		STEP("GET ", REPLY, STREAM "10\r\n\3\0\0\0\0\0\0\x8{\"a\":1}}\r\n0\r\n\r\n"),
		SCRIPT_END,
	};
	static const struct step code[] = {
		STEP("PUT ", REPLY, STARTED),
		STEP("GET ", REPLY,
		     STREAM
		     "2a\r\n\3\0\0\0\0\0\0\x22{\"event\":\"exit\",\"exit_code\":99999}\r\n0\r\n\r\n"),
		SCRIPT_END,
	};

	play(garbage, &plain, &o);
	expect("a frame of 4 GiB", C_FAILED, "", 0);
	play(event, &plain, &o);
	expect("an event that is no JSON", C_FAILED, "", 0);
	play(code, &plain, &o);
	expect("an exit code that cannot be", C_FAILED, "", 0);
}

static void test_dead(void)
{
	static const struct step s[] = {
		STEP("PUT ", REPLY, STARTED),
		STEP("GET ", CUT, STREAM "9\r\n\1\0\0\0\0\0\0\1a\r\n"),
		SCRIPT_END,
	};

	fake_state = SANDBOX_TERMINATED;
	play(s, &plain, &o);
	fake_state = SANDBOX_RUNNING;
	expect("the machine ended", C_FAILED, "a", 1);
	ok(strstr(o.err, "the fake reason") != NULL, "with the platform's reason: %s", o.err);
}

static void test_input(void)
{
	static const struct how with = { .input = "hello\n" };
	static const struct step s[] = {
		STEP("PUT /v1/execs/*?", REPLY,
		     UNKNOWN), /* an older agent: the input goes by itself */
		STEP("PUT /v1/execs/*?", REPLY, STARTED),
		STEP("GET /v1/execs/*/output?offset=0&", HANG_NEW, STREAM),
		STEP("POST /v1/execs/*/stdin?offset=0", CUT, ""), /* sent again from where it was */
		STEP("POST /v1/execs/*/stdin?offset=0", CUT,
		     "HTTP/1.1 410 Gone\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"),
		SCRIPT_END,
	};
	static const struct step idle[] = {
		STEP("PUT /v1/execs/*?", REPLY, STARTED),
		STEP("GET ", REPLY, STREAM EXIT0),
		STEP("DELETE ", REPLY, OK_REPLY),
		SCRIPT_END,
	};
	static const struct how nobody = { .idle_input = 1 };
	int again = 0;

	/* The agent's process ends with the script, which cuts the output; the client then finds
	 * nobody. */
	fake_state = SANDBOX_TERMINATED;
	play(s, &with, &o);
	fake_state = SANDBOX_RUNNING;
	expect("input", C_FAILED, "", 0);
	for (const char *p = o.log; (p = strstr(p, "hello\n")); p++)
		again++;
	ok_int(again, 2, "the chunk whose connection broke is sent again");
	ok(strstr(o.log, "eof=1") != NULL, "the end of input is told");
	ok(strstr(o.log, "\"stdin\":true") != NULL, "stdin was asked for");
	play(idle, &nobody, &o);
	expect("idle stdin", 0, "", 0);
	ok(!strstr(o.log, "POST"), "nothing is sent for an idle stdin");
}

static void test_signals(void)
{
	static const struct how with = { .signal_after_ms = 500 };
	static const struct step s[] = {
		STEP("PUT ", REPLY, STARTED),
		STEP("GET ", HANG_NEW, STREAM "9\r\n\1\0\0\0\0\0\0\1a\r\n"),
		STEP("POST /v1/execs/*/signal ", CUT, OK_REPLY),
		SCRIPT_END,
	};

	fake_state = SANDBOX_TERMINATED; /* the script's end looks like the machine's */
	play(s, &with, &o);
	fake_state = SANDBOX_RUNNING;
	ok(strstr(o.log, "{\"signal\":\"INT\",\"to\":\"group\"}") != NULL, "SIGINT is passed on");
	expect("signal", C_FAILED, "a", 1);
}

static void test_reader_gone(void)
{
	static const struct how with = { .close_stdout = 1 };
	static const struct step s[] = {
		STEP("PUT ", REPLY, STARTED),
		STEP("GET ", HANG_NEW, STREAM "9\r\n\1\0\0\0\0\0\0\1a\r\n"),
		STEP("DELETE /v1/execs/* ", REPLY, OK_REPLY),
		SCRIPT_END,
	};

	play(s, &with, &o);
	expect("nobody reads stdout", C_READER_GONE, "", 0);
}

static void test_capture(void)
{
	static const struct how with = { .capture = 1 };
	static const struct step s[] = {
		STEP("PUT ", REPLY, STARTED),
		STEP("GET ", REPLY,
		     STREAM "b\r\n\1\0\0\0\0\0\0\3abc\r\na\r\n\2\0\0\0\0\0\0\2de\r\n" EXIT0),
		STEP("DELETE ", REPLY, OK_REPLY),
		SCRIPT_END,
	};

	play(s, &with, &o);
	expect("capture", 0, "", 0);
	ok_str(o.err, "captured 3+2", "both streams are kept");
}

static void test_detach(void)
{
	static const struct how with = { .detach = 1, .tty = 1 };
	static const struct step s[] = {
		STEP("PUT /v1/execs/* HTTP/1.1\r\n", REPLY, STARTED),
		SCRIPT_END,
	};

	play(s, &with, &o);
	expect("detach", C_DETACHED, "", 0);
	ok(strstr(o.log, "\"pty\":{") && !strstr(o.log, "stdin"), "it is asked for a terminal");
	ok(!strstr(o.log, "DELETE") && !strstr(o.log, "GET"), "and for nothing more");
}

static void test_attach(void)
{
	static const struct how with = { .attach = "some-id", .offset = 7 };
	static const struct how look = { .attach = "some-id", .watch = EXEC_WATCH_NOW };
	static const struct step s[] = {
		STEP("GET /v1/execs/some-id/output?offset=7&follow=1&max=524288 ", CUT,
		     STREAM "2a\r\n\3\0\0\0\0\0\0\x22{\"event\":\"gap\",\"from\":7,\"to\":100}\r\n"
			    "a\r\n\1\0\0\0\0\0\0\2ab\r\n"),
		STEP("GET /v1/execs/some-id/output?offset=102&follow=1&max=524288 ", REPLY,
		     STREAM "9\r\n\1\0\0\0\0\0\0\1c\r\n" EXIT0),
		SCRIPT_END,
	};
	static const struct step now[] = {
		STEP("GET /v1/execs/some-id/output?offset=0&max=524288 ", REPLY,
		     STREAM "9\r\n\1\0\0\0\0\0\0\1c\r\n0\r\n\r\n"),
		SCRIPT_END,
	};
	static const struct step late[] = {
		STEP("GET ", REPLY, "HTTP/1.1 416 Range\r\nContent-Length: 0\r\n\r\n"),
		SCRIPT_END,
	};

	play(s, &with, &o);
	expect("attach, cut and resumed", 0, "abc", 3);
	ok_str(o.err, "skipped 93", "what was gone before is not lost");
	ok(!strstr(o.log, "PUT") && !strstr(o.log, "DELETE"),
	   "it is neither started nor forgotten");
	play(now, &look, &o);
	expect("a look at what there is", 0, "c", 1);
	play(late, &with, &o);
	expect("an offset that is not reached", C_FAILED, "", 0);
}

/* What is typed is sent without an offset, and with one when the connection broke. */
static void test_typed(void)
{
	static const struct how with = { .input = "hi", .attach = "some-id", .fed = 40, .tty = 1 };
	static const struct step s[] = {
		STEP("GET ", HANG_NEW, STREAM),
		STEP("POST /v1/execs/some-id/stdin?eof=1 ", CUT, ""),
		STEP("POST /v1/execs/some-id/stdin?offset=40&eof=1 ", CUT, OK_REPLY),
		SCRIPT_END,
	};

	fake_state = SANDBOX_TERMINATED; /* the script's end looks like the machine's */
	play(s, &with, &o);
	fake_state = SANDBOX_RUNNING;
	expect("typed", C_FAILED, "", 0);
}

int main(void)
{
	signal(SIGPIPE, SIG_IGN);
	test_plain();
	test_resume();
	test_gap();
	test_refusals();
	test_hostile();
	test_dead();
	test_input();
	test_signals();
	test_reader_gone();
	test_capture();
	test_detach();
	test_attach();
	test_typed();
	return tap_done();
}
