/* SPDX-License-Identifier: Apache-2.0 */
/* LINK: agentd/spec.c agentd/spec_more.c agentd/envbase.c agentd/passwd.c agentd/confine*.c */
#include "../../agentd/spec.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../agentd/envbase.h"
#include "../../agentd/limits.h"
#include "../../lib/buf.h"
#include "../../lib/fd.h"
#include "../../lib/jsn.h"
#include "../lib/tap.h"

static char v1[] = "A=1", v2[] = "PATH=/bin", v3[] = "HOME=/";
static char *base[] = { v1, v2, v3, NULL };

static void test_refused(void)
{
	static const char *const t[][2] = {
		{ "[]", "object" },
		{ "{}", "one of" },
		{ "{\"argv\":[],\"x\":1}", "\"x\"" },
		{ "{\"argv\":[]}", "empty" },
		{ "{\"argv\":[\"\"]}", "empty" },
		{ "{\"argv\":[\"a\",1]}", "strings" },
		{ "{\"argv\":\"a\"}", "array" },
		{ "{\"argv\":null}", "one of" },
		{ "{\"argv\":[\"a\"],\"shell\":\"b\"}", "one of" },
		{ "{\"shell\":[]}", "string" },
		{ "{\"shell\":\"a\",\"env\":{\"X\":1}}", "env.X" },
		{ "{\"shell\":\"a\",\"env\":{\"X=\":\"1\"}}", "name of a variable" },
		{ "{\"shell\":\"a\",\"env\":{\"\":\"1\"}}", "name of a variable" },
		{ "{\"shell\":\"a\",\"timeout_ms\":-1}", "timeout_ms" },
		{ "{\"shell\":\"a\",\"timeout_ms\":1e20}", "timeout_ms" },
		{ "{\"shell\":\"a\",\"stdin\":1}", "stdin" },
		{ "{\"shell\":\"a\",\"clear_env\":\"x\"}", "clear_env" },
		{ "{\"shell\":\"a\\u0000\"}", "NUL" },
		{ "{\"shell\":", "offset" },
	};

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct spec s = SPEC_INIT;
		struct err e = ERR_INIT;
		int r = spec_native(&s, t[i][0], strlen(t[i][0]), base, &e);

		ok(r < 0 && e.code == ERR_INVALID && strstr(e.msg, t[i][1]), "%s: %s", t[i][0],
		   e.msg);
		spec_done(&s);
	}
}

static const char *env_of(const struct spec *s, const char *name)
{
	const char *v = envbase_get(s->envp, name);

	return v ? v : "(none)";
}

static void test_native(void)
{
	static const char doc[] =
		"{\"argv\":[\"x\",\"\",\"y z\"],\"cwd\":\"sub\",\"env\":{\"A\":\"2\",\"B\":\"=\",\"B\":\"b\"},"
		"\"stdin\":true,\"timeout_ms\":1500}";
	static const char clear[] =
		"{\"shell\":\"exit 3\",\"clear_env\":true,\"env\":{\"C\":\"c\"},\"timeout_ms\":0}";
	struct spec s = SPEC_INIT;
	struct err e = ERR_INIT;

	ok_int(spec_native(&s, doc, sizeof(doc) - 1, base, &e), 0, "a full request");
	ok(!strcmp(s.argv[0], "x") && !s.argv[1][0] && !strcmp(s.argv[2], "y z") && !s.argv[3],
	   "argv");
	ok_str(env_of(&s, "A"), "2", "the caller's variable wins");
	ok_str(env_of(&s, "B"), "b", "the last of two");
	ok_str(env_of(&s, "PATH"), "/bin", "the base stays");
	ok_str(s.cwd, "//sub", "a relative folder is below HOME");
	ok(s.want_stdin && s.timed && s.timeout_ns == 1500000000 && s.cwd_given, "the rest");
	spec_done(&s);
	ok_int(spec_native(&s, clear, sizeof(clear) - 1, base, &e), 0,
	       "a shell with an empty environment");
	ok(!strcmp(s.argv[0], "/bin/sh") && !strcmp(s.argv[1], "-c") &&
		   !strcmp(s.argv[2], "exit 3") && !s.argv[3],
	   "argv");
	ok(!strcmp(s.envp[0], "C=c") && !s.envp[1] && !strcmp(s.cwd, "/") && !s.timed,
	   "nothing else");
	spec_done(&s);
}

/* As many variables as there may be: each name twice, two of them above the base. */
static void test_many(void)
{
	AUTO_BUF b = { .cap = 1 << 20 };
	char name[16];
	struct spec s = SPEC_INIT;
	struct err e = ERR_INIT;
	size_t n = 0, right = 0;
	bool fits = buf_adds(&b, "{\"argv\":[\"x\"],\"env\":{\"A\":\"own\",\"AA\":\"longer\"") == 0;

	for (int i = 0; i < LIMIT_ENV - 2; i++)
		fits = fits && buf_addf(&b, ",\"V%d\":\"%d\"", i % (LIMIT_ENV / 2 - 1), i) == 0;
	ok(fits && buf_adds(&b, "}}") == 0, "a long list");
	ok_int(spec_native(&s, b.p, b.len, base, &e), 0, "is taken");
	for (int i = 0; i < LIMIT_ENV / 2 - 1; i++) {
		snprintf(name, sizeof(name), "V%d", i);
		right += strtol(env_of(&s, name), NULL, 10) == i + LIMIT_ENV / 2 - 1;
	}
	ok_int((int)right, LIMIT_ENV / 2 - 1, "the last of two of each name");
	ok_str(env_of(&s, "A"), "own", "above the base");
	ok_str(env_of(&s, "AA"), "longer", "a name that begins like another");
	ok_str(env_of(&s, "PATH"), "/bin", "the base stays");
	while (s.envp[n])
		n++;
	ok_int((int)n, LIMIT_ENV / 2 - 1 + 2 + 2, "no name is there twice");
	spec_done(&s);
}

static void test_compat(void)
{
	static const struct {
		const char *timeout;
		bool timed;
		int64_t ns;
	} t[] = {
		{ "null", false, 0 },
		{ "0", true, 0 },
		{ "-5", true, 0 },
		{ "0.5", true, 500000000 },
		{ "\"2\"", true, 2000000000 },
		{ "1e300", false, 0 },
		{ "\"inf\"", false, 0 },
		{ "true", true, 1000000000 },
	};

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct spec s = SPEC_INIT;
		struct err e = ERR_INIT;
		char doc[200];

		(void)snprintf(
			doc, sizeof(doc),
			"{\"command\":\"c\",\"args\":[\"a\"],\"stdin\":\"aGk=\",\"timeout\":%s}",
			t[i].timeout);
		ok(spec_compat(&s, jsn_parse(doc, strlen(doc), NULL), base, &e) == 0 &&
			   s.timed == t[i].timed && s.timeout_ns == t[i].ns && s.input_len == 2 &&
			   !memcmp(s.input, "hi", 2) && !strcmp(s.argv[1], "a"),
		   "timeout %s", t[i].timeout);
		spec_done(&s);
	}
}

static void test_input(void)
{
	static const struct {
		const char *members;
		int len; /* -1: refused */
	} t[] = {
		{ "\"input\":\"aGk=\"", 2 },
		{ "\"input\":\"\"", 0 },
		{ "\"input\":\"aGk=\",\"stdin\":true", 2 },
		{ "\"input\":\"aGk\"", -1 },
		{ "\"input\":5", -1 },
		{ "\"pty\":{},\"input\":\"aGk=\"", -1 },
	};

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct spec s = SPEC_INIT;
		struct err e = ERR_INIT;
		char doc[200];
		int r;

		(void)snprintf(doc, sizeof(doc), "{\"argv\":[\"c\"],%s}", t[i].members);
		r = spec_native(&s, doc, strlen(doc), base, &e);
		ok(t[i].len < 0
			   ? r < 0 && e.msg[0]
			   : r == 0 && s.want_stdin && s.input && s.input_len == (size_t)t[i].len &&
				     !memcmp(s.input, "hi", s.input_len),
		   "%s", t[i].members);
		spec_done(&s);
	}
}

static void test_envbase(void)
{
	static char path[] = "/tmp/asb-test-passwd-XXXXXX";
	static char e1[] = "HOME=/", e2[] = "AGENTD_PORT=1", e3[] = "X=y", e4[] = "noequals",
		    e5[] = "ASB_NOTIFY_FD=3";
	char *environment[] = { e1, e2, e3, e4, e5, NULL };
	struct envbase e = { NULL, 0 };
	cJSON *id = jsn_parse("{\"X\":\"z\",\"NEW\":\"n\"}", 19, NULL);
	char line[200];
	int fd = mkstemp(path);

	(void)snprintf(line, sizeof(line),
		       "broken\nother:x:%u:1::/no:/no\nme:x:%u:1:G,:/home/me:/bin/zsh\n",
		       (unsigned)getuid() + 1, (unsigned)getuid());
	if (fd < 0 || fd_write_all(fd, line, strlen(line)) < 0)
		abort();
	fd_close(&fd);
	ok_int(envbase_build(&e, environment, path, id), 0, "a base environment");
	ok_str(envbase_get(e.vars, "HOME"), "/home/me",
	       "HOME of the image's passwd, not the kernel's");
	ok_str(envbase_get(e.vars, "USER"), "me", "USER");
	ok_str(envbase_get(e.vars, "SHELL"), "/bin/zsh", "SHELL, the last field");
	ok_str(envbase_get(e.vars, "X"), "z", "the identity is above the image");
	ok_str(envbase_get(e.vars, "NEW"), "n", "and brings new ones");
	ok(!envbase_get(e.vars, "AGENTD_PORT") && !envbase_get(e.vars, "ASB_NOTIFY_FD"),
	   "our settings are left out");
	ok_str(envbase_home(e.vars), "/", "a HOME that is not there is not entered");
	(void)unlink(path);
	ok_int(envbase_build(&e, environment, path, NULL), 0, "without a passwd file");
	ok(envbase_get(e.vars, "HOME") && envbase_get(e.vars, "PATH") &&
		   envbase_get(e.vars, "LANG"),
	   "there are defaults");
	envbase_done(&e);
	cJSON_Delete(id);
}

int main(void)
{
	test_refused();
	test_native();
	test_many();
	test_compat();
	test_input();
	test_envbase();
	return tap_done();
}
