/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "host/cli/opts.h"
#include "host/cli/out.h"
#include "host/cli/print.h"
#include "host/cmd/cmd.h"
#include "host/cmd/common.h"
#include "host/core/core.h"
#include "lib/buf.h"
#include "lib/proc.h"
#include "lib/str.h"

#define HELP_MAX (64U << 10)

/* A closed standard stream would become the number of the next file that is opened, and be written
 * to. Results that go to a closed stdout are an error, so there the writes must fail. */
static void fill_standard_streams(void)
{
	for (int fd = 0; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0) /* the lowest free number is this one */
			ignore_result(open("/dev/null", fd == STDOUT_FILENO ? O_RDONLY : O_RDWR));
}

static int wrong_usage(const struct cli *c, const char *word, const struct err *e)
{
	AUTO_BUF b;
	char hint[160];
	const char *near = !c->cmd && !c->group && word ? help_nearest(word) : NULL;

	buf_init(&b, HELP_MAX);
	if (near)
		ignore_result(
			str_format(hint, sizeof(hint), "did you mean: asb %s", near)); /* fits */
	else if (c->cmd && help_usage(c->cmd, &b) == 0)
		ignore_result(
			str_format(hint, sizeof(hint), "%s   (asb help %s)", b.p, c->cmd->name));
	else
		ignore_result(str_format(hint, sizeof(hint), "asb help%s%s lists the commands",
					 c->group ? " " : "", c->group ? c->group : ""));
	out_error(e, hint);
	return EXIT_USAGE;
}

static int print_help(const struct cli *c)
{
	AUTO_BUF b;
	int r;

	buf_init(&b, HELP_MAX);
	r = c->cmd ? help_command(c->cmd, &b) : c->group ? help_group(c->group, &b) : help_all(&b);
	return r < 0 || out_bytes(b.p, b.len) < 0;
}

static int run(const struct cli *c)
{
	core_place(c);
	return c->cmd->run(c);
}

int main(int argc, char **argv)
{
	struct cli c;
	struct err e = ERR_INIT;
	int r, status;

	fill_standard_streams();
	(void)signal(SIGPIPE,
		     SIG_IGN); /* told by EPIPE, so that what was begun is cleaned up first */
	proc_keep_children();
	r = cli_parse(&c, argc, argv, &e);
	out_init(&c);
	if (r < 0)
		status = wrong_usage(&c, argc > 1 ? argv[1] : NULL, &e);
	else if (c.cmd && !c.val[OPT_HELP].set)
		status = run(&c);
	else if (!c.cmd && c.val[OPT_VERSION].set)
		status = cmd_version(&c);
	else
		status = print_help(&c);
	cli_done(&c);
	return status;
}
