/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "host/agent/keys.h"
#include "host/agent/stdio.h"
#include "host/agent/term.h"
#include "host/cli/out.h"
#include "host/cmd/cmd.h"
#include "host/cmd/common.h"
#include "host/cmd/execid.h"
#include "lib/str.h"

/*
 * From options to what exec_run is asked, for run, exec and shell.
 *
 * Who types gets a terminal: when stdin and stdout both are one and we are its foreground job, the
 * command has one too, and stdin is passed on. In every other case bytes go through pipes, as a
 * script wants it. -t and -T decide otherwise.
 */

static int usage(struct err *e, const char *text)
{
	(void)err_set(e, ERR_USAGE, 0, "%s", text);
	return -EINVAL;
}

static int check(const struct cli *c, struct err *e)
{
	static const enum opt_id of_start[] = { OPT_ENV,    OPT_ENV_FILE,    OPT_WORKDIR,
						OPT_USER,   OPT_SECCOMP,     OPT_TIMEOUT,
						OPT_DETACH, OPT_EXEC_MEMORY, OPT_EXEC_CPUS,
						OPT_PIDS };
	const struct opt_value *v = c->val;

	if (v[OPT_TTY].set && v[OPT_NO_TTY].set)
		return usage(e, "--tty and --no-tty cannot both be");
	if (v[OPT_TTY].set && out_json_wanted() && !v[OPT_DETACH].set)
		return usage(e, "--tty and --json: a terminal's bytes do not go into a document");
	if (v[OPT_INTERACTIVE].set && v[OPT_NO_STDIN].set)
		return usage(e, "--interactive and --no-stdin cannot both be");
	if (!v[OPT_ATTACH].set)
		return v[OPT_OFFSET].set ? usage(e, "--offset goes with --attach only") : 0;
	if (c->argc)
		return usage(e, "--attach goes on with a command: none can be given");
	for (size_t i = 0; i < ARRAY_LEN(of_start); i++)
		if (v[of_start[i]].set) {
			(void)err_set(e, ERR_USAGE, 0,
				      "--%s goes with a command that is started, not with --attach",
				      cli_opts[of_start[i]].name);
			return -EINVAL;
		}
	return 0;
}

static bool on_terminal(void)
{
	return isatty(STDOUT_FILENO) && term_is_ours(STDIN_FILENO);
}

static void choose_streams(const struct cli *c, struct exec_spec *s)
{
	const struct opt_value *v = c->val;
	bool useful = !v[OPT_NO_STDIN].set && source_useful(STDIN_FILENO);

	s->tty = !v[OPT_NO_TTY].set &&
		 (v[OPT_TTY].set || (!s->capture && !s->detach && on_terminal()));
	s->tty_asked = s->tty && (v[OPT_TTY].set || c->cmd->run == cmd_shell);
	if (s->detach)
		s->use_stdin = v[OPT_INTERACTIVE].set;
	else
		s->use_stdin =
			useful && (s->tty || v[OPT_INTERACTIVE].set || !isatty(STDIN_FILENO));
}

/* --- a command that is there --- */

static int join(const struct cli *c, struct exec_spec *s, const cJSON *x, struct err *e)
{
	const struct opt_value *v = c->val;
	bool pty = cJSON_IsObject(jsn_get(x, "pty")) || cJSON_IsTrue(jsn_get(x, "pty"));

	if (v[OPT_TTY].set && !pty)
		return usage(e, "--tty: the command was started without a terminal");
	s->tty = pty && !v[OPT_NO_TTY].set && !s->capture && (v[OPT_TTY].set || on_terminal());
	/* Its input is not closed because a script's stdin is empty. */
	s->use_stdin = !v[OPT_NO_STDIN].set && source_useful(STDIN_FILENO) &&
		       (s->tty || v[OPT_INTERACTIVE].set);
	if (jsn_u64(x, "stdin_offset", 0, 1ULL << 53, &s->fed, NULL) < 0)
		return err_set(e, ERR_INTERNAL, EPROTO, "the agent's description of the command");
	return 0;
}

static int attach(const struct cli *c, const struct core_named *n, struct exec_spec *s,
		  char id[static EXECID_MAX + 1], struct err *e)
{
	AUTO_JSN *doc = NULL;
	const cJSON *x;
	const char *its;
	int r = execid_find(n, c->val[OPT_ATTACH].text, id, e);

	if (r == 0)
		r = execid_list(n, &doc, e);
	if (r < 0)
		return r;
	s->attach = id;
	s->offset = c->val[OPT_OFFSET].number;
	cJSON_ArrayForEach(x, jsn_get(doc, "execs"))
	{
		if (jsn_str(x, "id", &its, NULL) == 1 && !strcmp(its, id))
			return join(c, s, x, e);
	}
	return 0; /* it has just gone, which following it will tell */
}

/* --- all --- */

int cmd_exec_in(const struct cli *c, const struct core_named *n, char *const *env, bool leave,
		struct exec_result *ret, struct err *e)
{
	const struct opt_value *v = c->val;
	bool own_limits = cli_takes(c->cmd, OPT_EXEC_MEMORY);
	char id[EXECID_MAX + 1];
	struct keys keys = { .len = 0 };
	struct exec_spec s = { .backend = n->backend,
			       .id = n->record.microvm_id,
			       .argv = c->argv,
			       .argc = c->argc,
			       .env = env,
			       .cwd = v[OPT_WORKDIR].text,
			       .timeout_ns = v[OPT_TIMEOUT].ns,
			       .user = v[OPT_USER].text,
			       .seccomp = v[OPT_SECCOMP].text,
			       .memory = own_limits ? v[OPT_EXEC_MEMORY].number << 20 : 0,
			       .cpus = own_limits ? (double)v[OPT_EXEC_CPUS].ns / 1e9 : 0,
			       .pids = v[OPT_PIDS].number,
			       .detach = v[OPT_DETACH].set,
			       .detach_keys = &keys,
			       .capture = out_json_wanted(),
			       .leave = leave };
	int r = check(c, e);

	if (r == 0 && cli_takes(c->cmd, OPT_DETACH_KEYS) &&
	    keys_parse(&keys, v[OPT_DETACH_KEYS].text) < 0)
		r = usage(e, "--detach-keys"); /* cannot be: the parser has checked it */
	if (r == 0 && v[OPT_ATTACH].set)
		r = attach(c, n, &s, id, e);
	else
		choose_streams(c, &s);
	return r < 0 ? r : exec_run(&s, ret, e);
}
