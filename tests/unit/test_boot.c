/* SPDX-License-Identifier: Apache-2.0 */
/* LINK: host/local/boot.c */
#include "../../host/local/boot.h"
#include "../lib/tap.h"

static int line(struct boot *b, const char *s)
{
	return boot_line(b, s, strlen(s));
}

static void test_lines(void)
{
	static const char *const bad[] = { "",
					   "x",
					   "[]",
					   "{}",
					   "{\"stage\":3}",
					   "{\"stage\":\"a\"} x",
					   "{\"error\":[]}",
					   "{\"stage\":\"a\",\"error\":{}}",
					   "{\"stage\":\"\xff\"}",
					   "null" };
	struct boot b = { .ready = false };

	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		ok(line(&b, bad[i]) < 0, "refused: %s", bad[i]);
	ok_str(b.stage, "", "and nothing is kept of them");
	ok_int(line(&b, "{\"stage\":\"mounts\",\"ms\":12,\"more\":{}}"), 0, "a stage");
	ok_str(b.stage, "mounts", "is kept");
	ok_int(line(&b, "{\"stage\":\"ready\",\"ms\":900}"), 0, "ready");
	ok(b.ready, "is ready");
	ok_int(line(&b, "{\"stage\":\"stopping\",\"ms\":900}"), 0, "stopping");
	ok(b.stopping && !strcmp(b.stage, "ready"), "does not hide how far it came");
	ok_int(line(&b, "{\"stage\":\"a\\u001b[2Jb\"}"), 0, "control characters");
	ok_str(b.stage, "a?[2Jb", "become harmless");
	ok_int(line(&b, "{\"stage\":\"0123456789012345678901234567890123456789\"}"), 0,
	       "a long one");
	ok_int(strlen(b.stage), sizeof(b.stage) - 1, "is cut");
}

static void test_fail(void)
{
	struct boot b = { .ready = false };
	struct err e = ERR_INIT;

	boot_fail(&b, "QEMU exited with status 1: no such file", ERR_UNAVAILABLE, &e);
	ok_str(e.msg, "QEMU exited with status 1: no such file before the guest's init had started",
	       "nothing was heard of it");
	boot_console(&b, "Linux\r\nlast wor", 16);
	boot_fail(&b, "not ready after 60 s", ERR_TIMEOUT, &e);
	ok_str(e.msg,
	       "not ready after 60 s before the guest's init had started; its last words were: Linux",
	       "the last whole line of the console");
	ok_int(line(&b, "{\"stage\":\"mounts\"}"), 0, "a stage");
	boot_console(&b, "ds\n\n  \n", 7);
	boot_fail(&b, "not ready after 60 s", ERR_TIMEOUT, &e);
	ok_str(e.msg,
	       "not ready after 60 s; the guest had come as far as 'mounts', its last words were: last words",
	       "the stage and the last line that says anything");
	boot_console(&b, "[ 0.1] Kernel panic - not syncing: VFS\x1b: no root\nmore\n", 54);
	boot_fail(&b, "the machine powered off", ERR_UNAVAILABLE, &e);
	ok_str(e.msg, "the guest kernel panicked: VFS?: no root", "a panic says more");
	ok_int(line(&b,
		    "{\"error\":\"mount /dev/vda\",\"errno\":2,\"message\":\"No such file or directory\"}"),
	       0, "an error");
	ok_int(line(&b, "{\"error\":\"later\",\"message\":\"x\"}"), 0, "and another");
	boot_fail(&b, "the machine powered off", ERR_UNAVAILABLE, &e);
	ok_str(e.msg, "the guest failed at mount /dev/vda: No such file or directory",
	       "the first says most");
}

static void test_split(void)
{
	static const char text[] = "one\ntwo\r\nKernel panic - not syncing: three\nfour\n";
	static char big[5000];
	struct boot b;

	for (size_t cut = 0; cut < sizeof(text); cut++) {
		b = (struct boot){ .ready = false };
		boot_console(&b, text, cut);
		boot_console(&b, text + cut, sizeof(text) - 1 - (cut < sizeof(text) ? cut : 0));
		if (strcmp(b.console, "four") != 0 || strcmp(b.panic, "three") != 0)
			break;
	}
	ok_str(b.console, "four", "split anywhere");
	ok_str(b.panic, "three", "the panic too");
	memset(big, 'x', sizeof(big));
	b = (struct boot){ .ready = false };
	boot_console(&b, big, sizeof(big));
	ok(strlen(b.console) == sizeof(b.part) - 1, "a line without end is cut");
}

int main(void)
{
	test_lines();
	test_fail();
	test_split();
	return tap_done();
}
