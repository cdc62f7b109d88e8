/* SPDX-License-Identifier: Apache-2.0 */
/* LINK: host/backend.c host/backends.c host/cli/?*.c host/cmd/?*.c host/core/?*.c host/agent/?*.c host/net/?*.c host/proxy/?*.c host/state/?*.c
 * host/infra/?*.c host/aws/?*.c host/mcp/?*.c */
#include <errno.h>
#include <string.h>

#include "fake_backend.h"
#include "host/cli/opts.h"
#include "host/cli/print.h"
#include "host/core/core.h"
#include "lib/buf.h"
#include "tap.h"

#define WORDS_MAX 12

/* One command line and what it must give: the plain arguments joined by ',', the guest's command
 * joined by '|'. */
struct good {
	const char *words[WORDS_MAX];
	const char *names, *command;
};

static const struct good good[] = {
	{ { "run", "--", "ls", "-l" }, "", "ls|-l" },
	{ { "run", "base", "ls", "-l" }, "base", "ls|-l" },
	{ { "run", "base", "--", "ls", "--json" }, "base", "ls|--json" },
	{ { "run", "-c", "2", "base", "-m", "1g", "--", "ls" }, "base", "ls" },
	{ { "run", "-c2", "-m=512m", "--", "--help" }, "", "--help" },
	{ { "run", "--", "--", "x" }, "", "--|x" },
	{ { "exec", "app", "ls", "-l" }, "app", "ls|-l" },
	{ { "exec", "-w", "/tmp", "app", "-e", "A=b", "ls", "-w" }, "app", "ls|-w" },
	{ { "exec", "app", "--", "-x" }, "app", "-x" },
	{ { "exec", "app", "-" }, "app", "-" },
	{ { "exec", "app", "", "a" }, "app", "|a" },
	{ { "-v", "exec", "app", "true" }, "app", "true" },
	{ { "--json", "ls" }, "", "" },
	{ { "rm", "-f", "a", "b", "c" }, "a,b,c", "" },
	{ { "rm", "a", "-f", "--", "b" }, "a,b", "" },
	{ { "ls", "-q", "--json" }, "", "" },
	{ { "create", "x", "--image=base:2", "-i", "base" }, "x", "" },
	{ { "run", "-iq", "base", "cat" }, "base", "cat" },
	{ { "ps" }, "", "" },
	{ { "help", "run" }, "run", "" },
	{ { "exec", "--help" }, "", "" },
	{ { "__supervise", "/x", "--json", "-q" }, "", "/x|--json|-q" },
};

/* A command line and a part of the message that must come. */
struct bad {
	const char *words[WORDS_MAX];
	const char *message;
};

static const struct bad bad[] = {
	{ { "rnu" }, "unknown command" },
	{ { "--nope" }, "no option --nope" },
	{ { "run" }, "command to run is missing" },
	{ { "run", "base" }, "command to run is missing" },
	{ { "run", "--" }, "command to run is missing" },
	{ { "exec" }, "missing" },
	{ { "exec", "app" }, "command to run is missing" },
	{ { "exec", "--", "ls" }, "NAME is missing" },
	{ { "create" }, "NAME is missing" },
	{ { "create", "a", "b" }, "unexpected argument 'b'" },
	{ { "create", "a/b" }, "not a name" },
	{ { "create", ".a" }, "not a name" },
	{ { "create", "a\nb" }, "not a name" },
	{ { "create", "" }, "not a name" },
	{ { "rm", "ok", "-", "x" }, "not a name" },
	{ { "run", "-c", "0", "--", "x" }, "must be 1 to 32" },
	{ { "run", "-c", "33", "--", "x" }, "must be 1 to 32" },
	{ { "run", "-c", "-1", "--", "x" }, "not a number" },
	{ { "run", "-c", "1e3", "--", "x" }, "not a number" },
	{ { "run", "-c", "99999999999999999999", "--", "x" }, "must be 1 to 32" },
	{ { "run", "-m", "1", "--", "x" }, "must be 64 to" },
	{ { "run", "-m", "17592186044416", "--", "x" }, "must be 64 to" },
	{ { "run", "-m", "16777216t", "--", "x" }, "must be 64 to" },
	{ { "run", "-m", "18446744073709551616", "--", "x" }, "must be 64 to" },
	{ { "run", "-m", "2x", "--", "x" }, "not a number of MiB" },
	{ { "run", "--timeout", "-1", "--", "x" }, "not a number" },
	{ { "run", "--timeout", "1e9", "--", "x" }, "not a number" },
	{ { "run", "--timeout", "99999999", "--", "x" }, "must be 0 to" },
	{ { "run", "--start-timeout", "0", "--", "x" }, "must be 1 to" },
	{ { "run", "--timeout" }, "needs a value" },
	{ { "run", "-m" }, "-m needs a value" },
	{ { "run", "--json=1", "--", "x" }, "takes no value" },
	{ { "run", "--net", "host", "--", "x" }, "must be none or user" },
	{ { "run", "--backend", "gcp", "--", "x" }, "must be local or aws" },
	{ { "run", "-e", "=x", "--", "x" }, "needs a name" },
	{ { "run", "-e", "A=\xff", "--", "x" }, "not UTF-8" },
	{ { "run", "-w", "tmp", "--", "x" }, "absolute" },
	{ { "run", "--name", "a b", "--", "x" }, "not a name" },
	{ { "run", "--", "a\xff" }, "not UTF-8" },
	{ { "run", "--", "-x", "\xc3" }, "not UTF-8" },
	{ { "ls", "x" }, "unexpected argument" },
	{ { "ls", "--version" }, "no option" },
	{ { "completion", "tcsh" }, "not one of" },
	{ { "--", "ls" }, "a command must come before" },
	{ { "run", "-qz", "--", "x" }, "no option -z" },
	{ { "run", "--mem", "512", "--", "x" }, "no option --mem" },
};

static int parse(struct cli *c, const char *const *words, struct err *e)
{
	static char *argv[WORDS_MAX + 2];
	static char copies[WORDS_MAX + 2][512];
	int argc = 1;

	argv[0] = copies[0];
	for (; argc <= WORDS_MAX && words[argc - 1]; argc++) {
		ignore_result(
			str_format(copies[argc], sizeof(copies[argc]), "%s", words[argc - 1]));
		argv[argc] = copies[argc];
	}
	argv[argc] = NULL;
	return cli_parse(c, argc, argv, e);
}

static void join(struct buf *b, char *const *words, unsigned n, const char *between)
{
	for (unsigned i = 0; i < n; i++)
		ignore_result(buf_addf(b, "%s%s", i ? between : "", words[i]));
}

static void test_good(void)
{
	for (size_t i = 0; i < ARRAY_LEN(good); i++) {
		struct cli c;
		struct err e = ERR_INIT;
		AUTO_BUF names;
		AUTO_BUF command;

		buf_init(&names, 4096);
		buf_init(&command, 4096);
		ok(parse(&c, good[i].words, &e) == 0, "%s %s is taken%s%s", good[i].words[0],
		   good[i].words[1] ? good[i].words[1] : "", e.msg[0] ? ": " : "", e.msg);
		join(&names, c.names, c.names_len, ",");
		join(&command, c.argv, c.argc, "|");
		ok_str(names.p ? names.p : "", good[i].names, "its arguments");
		ok_str(command.p ? command.p : "", good[i].command, "its command");
		cli_done(&c);
	}
}

static void test_bad(void)
{
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct cli c;
		struct err e = ERR_INIT;
		int r = parse(&c, bad[i].words, &e);

		ok(r < 0 && e.code == ERR_USAGE && strstr(e.msg, bad[i].message),
		   "%s %s is refused: %s", bad[i].words[0], bad[i].words[1] ? bad[i].words[1] : "",
		   e.msg);
		cli_done(&c);
	}
}

static void test_values(void)
{
	static const char *const words[] = { "run", "-m",    "1048577k", "--timeout", "0.25", "-e",
					     "A=1", "-eB=2", "--",	 "x",	      NULL };
	struct cli c;
	char **env = NULL;

	ok_int(parse(&c, words, NULL), 0, "values are taken");
	ok_int(c.val[OPT_MEMORY].number, 1025, "a size is rounded up to MiB");
	ok_int(c.val[OPT_TIMEOUT].ns, 250000000, "a fraction of a second");
	ok_int(c.val[OPT_CPUS].number, 1, "the default of --cpus");
	ok_int(c.val[OPT_START_TIMEOUT].ns, 120000000000, "the default of --start-timeout");
	ok_int(c.val[OPT_ENV].all_len, 2, "both variables");
	ok_int(core_env(&c, &env, NULL), 0, "make an environment");
	ok_str(env[0], "A=1", "in order");
	ok_str(env[1], "B=2", "in order");
	ok(env[2] == NULL, "and no more");
	core_env_free(&env);
	cli_done(&c);
}

static void test_env_file(void)
{
	char path[] = "/tmp/asb-env.XXXXXX";
	static const char text[] = "# comment\nA=1\r\n\n  B=2 x\nFROM_CALLER\nNOT_THERE\nE=";
	const char *words[] = { "run", "--env-file", path, "-e", "A=3", "--", "x", NULL };
	int fd = mkstemp(path);
	struct cli c;
	char **env = NULL;
	AUTO_BUF all;

	buf_init(&all, 4096);
	setenv("FROM_CALLER", "me", 1);
	ok(fd >= 0 && write(fd, text, sizeof(text) - 1) == (ssize_t)sizeof(text) - 1,
	   "wrote a file");
	ok_int(parse(&c, words, NULL), 0, "--env-file is taken");
	ok_int(core_env(&c, &env, NULL), 0, "and read");
	for (char **p = env; p && *p; p++)
		ignore_result(buf_addf(&all, "%s,", *p));
	ok_str(all.p, "A=1,B=2 x,FROM_CALLER=me,E=,A=3,", "line by line, then --env");
	core_env_free(&env);
	ok(write(fd, "\n=x\n", 4) == 4 && core_env(&c, &env, NULL) == -EINVAL,
	   "a line without a name is refused");
	ok(write(fd, "\0", 1) == 1 && core_env(&c, &env, NULL) == -EINVAL, "a NUL is refused");
	cli_done(&c);
	close(fd);
	unlink(path);
}

static const char *chosen(const char *flag, const char *env, const char *arn, const char *image)
{
	static char text[512];
	struct cli c = { .cmd = NULL };
	const struct backend *b = NULL;
	const char *img = NULL;
	struct err e = ERR_INIT;

	if (env)
		setenv("AGENT_SANDBOX_BACKEND", env, 1);
	else
		unsetenv("AGENT_SANDBOX_BACKEND");
	if (arn)
		setenv("AGENT_SANDBOX_IMAGE_ARN", arn, 1);
	else
		unsetenv("AGENT_SANDBOX_IMAGE_ARN");
	c.val[OPT_BACKEND].set = flag != NULL;
	c.val[OPT_BACKEND].text = flag;
	if (core_choose(&c, image, &b, &img, &e) < 0)
		ignore_result(str_format(text, sizeof(text), "%s", err_code_name(e.code)));
	else
		ignore_result(str_format(text, sizeof(text), "%s %s", b->name, img));
	return text;
}

static void test_choose(void)
{
	ok_str(chosen(NULL, NULL, NULL, NULL), "local base", "the default is the base image here");
	ok_str(chosen(NULL, NULL, NULL, "x:2"), "local x:2", "an image by name is local");
	ok_str(chosen(NULL, NULL, NULL, "arn:aws:x"), "aws arn:aws:x", "an ARN is for aws");
	ok_str(chosen(NULL, NULL, "arn:aws:x", NULL), "aws arn:aws:x",
	       "an ARN of the environment too");
	ok_str(chosen("local", NULL, NULL, "arn:aws:x"), "usage", "but not for --backend local");
	ok_str(chosen(NULL, NULL, "arn:aws:x", "base"), "local base",
	       "a named image goes before it");
	ok_str(chosen("local", NULL, "arn:aws:x", NULL), "local base",
	       "and so does --backend local");
	ok_str(chosen(NULL, "aws", NULL, "x:2"), "aws x:2", "the environment chooses");
	ok_str(chosen(NULL, "aws", NULL, NULL), "usage", "base is no image of aws");
	ok_str(chosen("local", "aws", NULL, NULL), "local base", "the option goes before it");
	ok_str(chosen(NULL, "gcp", NULL, NULL), "usage", "an unknown backend");
	ok_str(chosen(NULL, NULL, NULL, "../x"), "usage", "an image that climbs");
	ok_str(chosen(NULL, NULL, NULL, "a b"), "usage", "an image with a space");
}

static void test_nearest(void)
{
	ok_str(help_nearest("rnu"), "run", "rnu is near run");
	ok_str(help_nearest("inspct"), "inspect", "inspct is near inspect");
	ok(help_nearest("zzzzzz") == NULL, "zzzzzz is near nothing");
	ok(help_nearest("") == NULL, "nothing is near nothing");
}

int main(void)
{
	test_good();
	test_bad();
	test_values();
	test_env_file();
	test_choose();
	test_nearest();
	return tap_done();
}
