/* SPDX-License-Identifier: Apache-2.0 */
#include "host/cli/opts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "host/agent/keys.h"
#include "host/backend.h"
#include "host/cli/ports.h"
#include "host/cli/since.h"
#include "host/state/state.h"
#include "lib/buf.h"
#include "lib/signame.h"
#include "lib/str.h"

/*
 * One pass over the words, with three questions to the table: which command is it, does it take
 * this option, what is its next plain argument. A word is
 *   --name, --name=value, --name value    a long option, never abbreviated (a later option could
 * take the meaning away) -xyz, -xvalue, -x value               short options; the first that takes
 * a value takes the rest of the word
 *   --                                    the end of options
 *   anything else, also "-"               a plain argument, or the begin of the guest's command
 */

static int usage(struct err *e, const char *what, const char *value, const char *why)
{
	(void)err_set(e, ERR_USAGE, 0, "%s '%.200s': %s", what, value, why);
	return -EINVAL;
}

/* --- values --- */

static int check_choice(const char *const *choices, const char *s)
{
	for (; *choices; choices++)
		if (strcmp(*choices, s) == 0)
			return 0;
	return -EINVAL;
}

static int range_error(const struct opt_spec *o, const char *s, int r, struct err *e)
{
	const char *unit = o->type == TYPE_MIB ? " MiB" : o->type == TYPE_SECONDS ? " seconds" : "";

	if (r == -ERANGE)
		(void)err_set(e, ERR_USAGE, 0, "--%s '%.200s': must be %llu to %llu%s", o->name, s,
			      (unsigned long long)o->min, (unsigned long long)o->max, unit);
	else
		(void)err_set(e, ERR_USAGE, 0, "--%s '%.200s': not a number%s", o->name, s,
			      o->type == TYPE_MIB ? " of MiB, or a size such as 512m or 2g" : "");
	return -EINVAL;
}

static int choice_error(const struct opt_spec *o, const char *s, struct err *e)
{
	AUTO_BUF list;
	int r = 0;

	buf_init(&list, 256);
	for (int i = 0; o->choices[i] && r == 0; i++)
		r = buf_addf(&list, "%s%s", i ? " or " : "", o->choices[i]);
	(void)err_set(e, ERR_USAGE, 0, "--%s '%.200s': must be %s", o->name, s,
		      r == 0 ? list.p : "another");
	return -EINVAL;
}

/* Bytes are rounded up to whole MiB. */
static int parse_mib(const struct opt_spec *o, const char *s, uint64_t *ret)
{
	uint64_t bytes, mib;
	int r = str_to_bytes(s, 1ULL << 20, &bytes);

	if (r < 0)
		return r;
	mib = (bytes >> 20) + ((bytes & ((1ULL << 20) - 1)) != 0);
	if (mib < o->min || mib > o->max)
		return -ERANGE;
	*ret = mib;
	return 0;
}

static int check_env(const char *s, struct err *e)
{
	size_t key = strcspn(s, "=");

	if (key == 0)
		return usage(e, "--env", s, "a variable needs a name");
	return str_is_utf8(s, strlen(s)) ? 0 : usage(e, "--env", s, "it is not UTF-8 text");
}

int cli_signal(const char *s)
{
	char name[16];
	uint64_t n;
	size_t i = 0;

	if (str_to_u64(s, 1, 64, &n) == 0)
		return (int)n;
	for (; s[i] && i < sizeof(name) - 1; i++)
		name[i] = (char)(s[i] >= 'a' && s[i] <= 'z' ? s[i] - 'a' + 'A' : s[i]);
	name[i] = '\0';
	return s[i] ? 0 : signame_number(name);
}

static int check_exec_id(const char *what, const char *s, struct err *e)
{
	size_t n = strlen(s);

	if (n > 0 && n <= 64 &&
	    strspn(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-") == n)
		return 0;
	return usage(e, what, s, "is no id of a command: 1 to 64 of A-Z a-z 0-9 _ -");
}

static int check_signal(const char *what, const char *s, uint64_t *ret, struct err *e)
{
	int sig = cli_signal(s);

	*ret = (uint64_t)sig;
	return sig ? 0
		   : usage(e, what, s,
			   "is no signal: a number from 1 to 64, or a name such as TERM");
}

static int parse_since(const char *s, int64_t *ret_ns, struct err *e)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_REALTIME, &now);
	if (since_parse(s, now.tv_sec * 1000000000LL + now.tv_nsec, ret_ns) == 0)
		return 0;
	return usage(e, "--since", s,
		     "must be a time such as 10m, 2026-11-29T18:00 or a Unix time");
}

static int parse_value(const struct opt_spec *o, struct opt_value *v, const char *s, struct err *e)
{
	struct keys keys;
	int r = 0;

	v->text = s;
	switch (o->type) {
	case TYPE_UINT:
		r = str_to_u64(s, o->min, o->max, &v->number);
		return r < 0 ? range_error(o, s, r, e) : 0;
	case TYPE_MIB:
		r = parse_mib(o, s, &v->number);
		return r < 0 ? range_error(o, s, r, e) : 0;
	case TYPE_SECONDS:
		r = str_to_ns(s, o->max, &v->ns);
		if (r == 0 && v->ns < (int64_t)o->min * 1000000000)
			r = -ERANGE;
		return r < 0 ? range_error(o, s, r, e) : 0;
	case TYPE_NAME:
		return state_check_name(s, e);
	case TYPE_CHOICE:
		return check_choice(o->choices, s) == 0 ? 0 : choice_error(o, s, e);
	case TYPE_ENV:
		return check_env(s, e);
	case TYPE_PATH:
		if (s[0] != '/')
			return usage(e, "--workdir", s, "must be an absolute path");
		return str_is_utf8(s, strlen(s)) ? 0 : usage(e, "--workdir", s, "is not UTF-8");
	case TYPE_TEXT:
	case TYPE_FILE:
		return *s ? 0 : usage(e, o->name, s, "must not be empty");
	case TYPE_CPUS:
		r = str_to_ns(s, o->max, &v->ns);
		if (r == 0 && v->ns < 1000000)
			r = -ERANGE;
		return r < 0 ? usage(e, "--cpus", s, "must be a number of CPUs such as 2 or 0.5")
			     : 0;
	case TYPE_EXEC:
		return check_exec_id("id", s, e);
	case TYPE_SIGNAL:
		return check_signal("--signal", s, &v->number, e);
	case TYPE_KEYS:
		return keys_parse(&keys, s) == 0
			       ? 0
			       : usage(e, "--detach-keys", s,
				       "must be keys such as ctrl-p,ctrl-q, or empty");
	case TYPE_ADDRESS:
		return ports_check_address(s) == 0
			       ? 0
			       : usage(e, "--address", s, "must be a numeric IP address");
	case TYPE_SINCE:
		return parse_since(s, &v->ns, e);
	case TYPE_FLAG:
	case TYPE_COUNT:
		break;
	}
	return 0;
}

static int remember(struct opt_value *v, const char *s)
{
	const char **all;

	if (v->all_len >= CLI_MANY_MAX)
		return -E2BIG;
	all = realloc(v->all, (v->all_len + 1) * sizeof(*all));
	if (!all)
		return -ENOMEM;
	v->all = all;
	all[v->all_len++] = s;
	return 0;
}

static int set_option(struct cli *c, enum opt_id id, const char *s, struct err *e)
{
	const struct opt_spec *o = &cli_opts[id];
	struct opt_value *v = &c->val[id];
	int r = o->type == TYPE_FLAG ? 0 : parse_value(o, v, s, e);

	if (r < 0)
		return r;
	v->set = true;
	r = o->many ? remember(v, s) : 0;
	return r < 0 ? err_set(e, ERR_USAGE, -r, "--%s", o->name) : 0;
}

/* --- options --- */

struct words {
	int argc, at;
	char *const *argv;
};

static enum opt_id find_option(const struct command *cmd, const char *name, size_t len, char letter)
{
	const enum opt_id *list[] = { cmd ? cmd->opts : cli_global_opts, cli_global_opts };

	for (size_t k = 0; k < ARRAY_LEN(list); k++)
		for (const enum opt_id *id = list[k]; *id != OPT_COUNT; id++) {
			const struct opt_spec *o = &cli_opts[*id];

			if (cmd && k == 1 && (*id == OPT_VERSION || *id == OPT_JSON))
				continue; /* these only where the command lists them */
			if (letter ? o->short_name == letter
				   : strlen(o->name) == len && memcmp(o->name, name, len) == 0)
				return *id;
		}
	return OPT_COUNT;
}

static int no_such(struct err *e, const struct command *cmd, const char *word)
{
	(void)err_set(e, ERR_USAGE, 0, "%s%s has no option %.200s", cmd ? "asb " : "asb",
		      cmd ? cmd->name : "", word);
	return -EINVAL;
}

static int next_value(struct words *w, const char *word, const char **ret, struct err *e)
{
	if (w->at >= w->argc) {
		(void)err_set(e, ERR_USAGE, 0, "%.200s needs a value", word);
		return -EINVAL;
	}
	*ret = w->argv[w->at++];
	return 0;
}

static int parse_long(struct cli *c, struct words *w, const char *word, struct err *e)
{
	size_t len = strcspn(word + 2, "=");
	const char *value = word[2 + len] ? word + 3 + len : NULL;
	enum opt_id id = find_option(c->cmd, word + 2, len, 0);
	int r = 0;

	if (id == OPT_COUNT)
		return no_such(e, c->cmd, word);
	if (cli_opts[id].type == TYPE_FLAG) {
		if (value)
			return usage(e, "option", word, "takes no value");
	} else if (!value) {
		r = next_value(w, word, &value, e);
	}
	return r < 0 ? r : set_option(c, id, value, e);
}

static int parse_short(struct cli *c, struct words *w, const char *word, struct err *e)
{
	int r = 0;

	for (const char *p = word + 1; *p && r == 0; p++) {
		enum opt_id id = find_option(c->cmd, NULL, 0, *p);
		char name[] = { '-', *p, '\0' };
		const char *value = p + 1;

		if (id == OPT_COUNT)
			return no_such(e, c->cmd, name);
		if (cli_opts[id].type == TYPE_FLAG) {
			r = set_option(c, id, NULL, e);
			continue;
		}
		if (*value == '=')
			value++;
		else if (!*value)
			r = next_value(w, name, &value, e);
		return r < 0 ? r : set_option(c, id, value, e);
	}
	return r;
}

/* --- plain arguments --- */

static bool takes_command(const struct command *cmd)
{
	for (const struct arg_spec *a = cmd->args; a->name; a++)
		if (a->kind == ARG_COMMAND)
			return true;
	return false;
}

/* The argument that the next plain word is. NULL when there are too many. */
static const struct arg_spec *next_arg(const struct cli *c)
{
	unsigned n = 0;

	for (const struct arg_spec *a = c->cmd->args; a->name; a++, n++)
		if (a->kind == ARG_COMMAND || a->many || n == c->names_len)
			return a;
	return NULL;
}

static int add_plain(struct cli *c, char *word, struct err *e)
{
	const struct arg_spec *a = next_arg(c);
	struct port_spec port;
	uint64_t ignored;

	if (!a || c->names_len >= CLI_NAMES_MAX)
		return usage(e, "unexpected argument", word, "there is nothing it could mean");
	if ((a->kind == ARG_SANDBOX || a->kind == ARG_SNAPSHOT || a->kind == ARG_NAME) &&
	    state_check_name(word, e) < 0)
		return -EINVAL;
	if (a->kind == ARG_CHOICE && check_choice(a->choices, word) < 0)
		return usage(e, a->name, word, "is not one of those that there are");
	if (a->kind == ARG_EXEC && check_exec_id(a->name, word, e) < 0)
		return -EINVAL;
	if (a->kind == ARG_PORT && ports_parse(word, &port) < 0)
		return usage(e, "port", word,
			     "must be [[ADDRESS:]LOCAL:]REMOTE, ports from 1 to 65535");
	if (a->kind == ARG_SIGNAL && check_signal(a->name, word, &ignored, e) < 0)
		return -EINVAL;
	if ((a->kind == ARG_COPY || a->kind == ARG_FILE) && !*word)
		return usage(e, a->name, word, "must not be empty");
	if (a->kind == ARG_IMAGE && (!*word || strlen(word) > SANDBOX_IMAGE_MAX))
		return usage(e, "image", word, "is not an image's name");
	c->own_names[c->names_len++] = word;
	return 0;
}

static void take_command(struct cli *c, const struct words *w)
{
	c->argv = w->argv + w->at;
	c->argc = (unsigned)(w->argc - w->at);
}

static int check_command_text(const struct cli *c, struct err *e)
{
	for (unsigned i = 0; i < c->argc; i++)
		if (!str_is_utf8(c->argv[i], strlen(c->argv[i])))
			return usage(e, "argument", c->argv[i], "it is not UTF-8 text");
	return 0;
}

static int check_complete(const struct cli *c, struct err *e)
{
	unsigned n = 0;

	if (c->val[OPT_JSON].set && !cli_takes(c->cmd, OPT_JSON))
		return no_such(e, c->cmd, "--json");
	if (c->val[OPT_HELP].set)
		return 0;
	for (const struct arg_spec *a = c->cmd->args; a->name; a++, n++) {
		if (a->optional)
			continue;
		if (a->kind == ARG_COMMAND && c->val[OPT_ATTACH].set)
			continue;
		if (a->kind == ARG_COMMAND && c->argc == 0) {
			(void)err_set(e, ERR_USAGE, 0,
				      "a command to run is missing, such as: asb %s%s -- %s",
				      c->cmd->name,
				      c->cmd->args[0].kind == ARG_SANDBOX ? " app" : "",
				      "python3 -c 'print(1)'");
			return -EINVAL;
		}
		if (a->kind != ARG_COMMAND && n >= c->names_len) {
			(void)err_set(e, ERR_USAGE, 0, "asb %s: %s is missing", c->cmd->name,
				      a->name);
			return -EINVAL;
		}
	}
	return check_command_text(c, e);
}

/* --- all of it --- */

/* The names of the commands of GROUP, "build, ls or rm". */
static int missing_in_group(const char *group, struct err *e)
{
	const struct command *last = NULL;
	AUTO_BUF list;
	int r = 0;

	buf_init(&list, 512);
	for (const struct command *c = cli_commands; c->name && r == 0; c++) {
		if (!cli_in_group(c, group))
			continue;
		if (last)
			r = buf_addf(&list, "%s%s", list.len ? ", " : "",
				     last->name + strlen(group) + 1);
		last = c;
	}
	if (r == 0 && last)
		r = buf_addf(&list, "%s%s", list.len ? " or " : "", last->name + strlen(group) + 1);
	(void)err_set(e, ERR_USAGE, 0, "asb %.60s: which command of it? %s", group,
		      r == 0 && list.p ? list.p : "");
	return -EINVAL;
}

static int find_command(struct cli *c, const char *word, struct err *e)
{
	char name[80];

	if (!c->group && cli_is_group(word)) {
		c->group = word;
		return 0;
	}
	if (str_format(name, sizeof(name), "%s%s%s", c->group ? c->group : "", c->group ? " " : "",
		       word) == 0)
		c->cmd = cli_find(name);
	if (c->cmd)
		return 0;
	return c->group ? missing_in_group(c->group, e)
			: usage(e, "unknown command", word, "see asb help");
}

/* The word that is no option: the command's name, an argument, or the begin of the guest's command.
 */
static int parse_plain(struct cli *c, struct words *w, bool *ret_end, struct err *e)
{
	char *word = w->argv[w->at - 1];
	const struct arg_spec *a;

	if (!c->cmd)
		return find_command(c, word, e);
	a = next_arg(c);
	if (a && a->kind == ARG_COMMAND) {
		w->at--;
		take_command(c, w);
		*ret_end = true;
		return 0;
	}
	return add_plain(c, word, e);
}

static int parse_rest(struct cli *c, struct words *w, struct err *e)
{
	int r = 0;

	if (!c->cmd)
		return usage(e, "argument", "--", "a command must come before it");
	if (takes_command(c->cmd)) {
		take_command(c, w);
		return 0;
	}
	while (w->at < w->argc && r == 0)
		r = add_plain(c, w->argv[w->at++], e);
	return r;
}

static int set_defaults(struct cli *c)
{
	for (int i = 0; i < OPT_COUNT; i++)
		if (cli_opts[i].def && cli_opts[i].type != TYPE_FLAG &&
		    parse_value(&cli_opts[i], &c->val[i], cli_opts[i].def, NULL) < 0)
			return -EINVAL;
	return 0;
}

int cli_parse(struct cli *c, int argc, char *const *argv, struct err *e)
{
	struct words w = { argc, 1, argv };
	bool end = false;
	int r;

	*c = (struct cli){ .cmd = NULL };
	c->own_names = calloc((size_t)(argc > 0 ? argc : 1) + 1, sizeof(*c->own_names));
	c->names = c->own_names;
	if (!c->own_names)
		return err_set(e, ERR_INTERNAL, ENOMEM, "reading the command line");
	r = set_defaults(c);
	while (r == 0 && !end && w.at < argc && !(c->cmd && c->cmd->raw)) {
		const char *word = argv[w.at++];

		if (strcmp(word, "--") == 0) {
			r = parse_rest(c, &w, e);
			end = true;
		} else if (word[0] == '-' && word[1] == '-') {
			r = parse_long(c, &w, word, e);
		} else if (word[0] == '-' && word[1]) {
			r = parse_short(c, &w, word, e);
		} else {
			r = parse_plain(c, &w, &end, e);
		}
	}
	if (r == 0 && c->cmd && c->cmd->raw)
		take_command(c, &w);
	else if (r == 0 && c->cmd)
		r = check_complete(c, e);
	else if (r == 0 && c->group && !c->val[OPT_HELP].set)
		r = missing_in_group(c->group, e);
	return r;
}

void cli_done(struct cli *c)
{
	for (int i = 0; i < OPT_COUNT; i++)
		free(c->val[i].all);
	free(c->own_names);
	*c = (struct cli){ .cmd = NULL };
}
