/* SPDX-License-Identifier: Apache-2.0 */
#include "host/cli/print.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#define GROUP_SUMMARY "several commands"

/*
 * Completion scripts. Each is a table printed for its shell and a small fixed function that reads
 * it; names of sandboxes come from `asb ls -q` when the key is pressed. Behind the guest's command
 * nothing is completed: its files are in the guest.
 */

static int add_opt_words(struct buf *out, const enum opt_id *opts)
{
	int r = 0;

	for (; *opts != OPT_COUNT && r == 0; opts++) {
		const struct opt_spec *o = &cli_opts[*opts];

		r = buf_addf(out, "--%s ", o->name);
		if (r == 0 && o->short_name)
			r = buf_addf(out, "-%c ", o->short_name);
	}
	return r;
}

/* The first words of all commands. */
static int add_command_words(struct buf *out)
{
	int r = 0;

	for (const struct command *c = cli_commands; c->name && r == 0; c++)
		if (!c->hidden && (!cli_in_group(c, NULL) || cli_leads_group(c)))
			r = buf_addf(out, "%.*s ", (int)strcspn(c->name, " "), c->name);
	return r;
}

static int add_group_words(struct buf *out)
{
	int r = 0;

	for (const struct command *c = cli_commands; c->name && r == 0; c++)
		if (cli_leads_group(c))
			r = buf_addf(out, "%.*s ", (int)strcspn(c->name, " "), c->name);
	return r;
}

/* The second words of the commands in the group that C leads. */
static int add_words_of(struct buf *out, const struct command *lead)
{
	const size_t n = strcspn(lead->name, " ") + 1;
	int r = 0;

	for (const struct command *c = lead; c->name && r == 0; c++)
		if (strncmp(c->name, lead->name, n) == 0)
			r = buf_addf(out, "%s ", c->name + n);
	return r;
}

static int add_choices(struct buf *out, const char *const *choices)
{
	int r = 0;

	for (; *choices && r == 0; choices++)
		r = buf_addf(out, "%s ", *choices);
	return r;
}

/* What the first plain argument of C can be, as a word for the scripts' functions. */
static const char *arg_word(const struct command *c)
{
	const struct arg_spec *a = c->args;

	if (!a->name)
		return "none";
	switch (a->kind) {
	case ARG_SANDBOX:
		return a->many ? "sandboxes" : "sandbox";
	case ARG_TOPIC:
		return "topic";
	case ARG_CHOICE:
		return "choice";
	case ARG_IMAGE:
		return a->many ? "images" : "image";
	case ARG_NAME:
	case ARG_COMMAND:
	case ARG_EXEC:
	case ARG_SIGNAL:
	case ARG_WORD:
	case ARG_PORT:
		break;
	case ARG_COPY:
	case ARG_FILE:
		return "copy";
	case ARG_SNAPSHOT:
		return a->many ? "snapshots" : "snapshot";
	}
	return "none";
}

/* --- bash --- */

static const char bash_head[] =
	"# bash completion for asb, printed by: asb completion bash\n"
	"_asb()\n{\n"
	"\tlocal cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} cmd= i words= plain=0\n"
	"\tCOMPREPLY=()\n"
	"\tlocal groups='";

static const char bash_words[] =
	"'\n"
	"\tfor ((i = 1; i < COMP_CWORD; i++)); do\n"
	"\t\tcase ${COMP_WORDS[i]} in\n"
	"\t\t--) return ;;\n"
	"\t\t-*) ;;\n"
	"\t\t*) if [[ -z $cmd || \" $groups\" == *\" $cmd \"* ]]; then cmd=${cmd:+$cmd }${COMP_WORDS[i]}; "
	"else plain=$((plain + 1)); fi ;;\n"
	"\t\tesac\n"
	"\tdone\n";

static const char bash_tail[] =
	"\tif [[ $cur == -* ]]; then\n"
	"\t\tCOMPREPLY=($(compgen -W \"$opts\" -- \"$cur\"))\n"
	"\t\treturn\n"
	"\tfi\n"
	"\tcase $kind in\n"
	"\tsandbox) ((plain == 0)) && words=$(asb ls -q 2>/dev/null) ;;\n"
	"\tsnapshot) ((plain == 0)) && words=$(asb snapshot ls -q 2>/dev/null) ;;\n"
	"\tsnapshots) words=$(asb snapshot ls -q 2>/dev/null) ;;\n"
	"\tsandboxes) words=$(asb ls -q 2>/dev/null) ;;\n"
	"\timage) ((plain == 0)) && words=$(asb image ls -q 2>/dev/null) ;;\n"
	"\timages) words=$(asb image ls -q 2>/dev/null) ;;\n"
	"\tcopy) compopt -o filenames; COMPREPLY=($(compgen -f -- \"$cur\")); return ;;\n"
	"\ttopic | choice | command) ((plain == 0)) && words=$list ;;\n"
	"\tesac\n"
	"\tCOMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
	"}\n"
	"complete -F _asb asb\n";

static int bash_values(struct buf *out)
{
	int r = buf_adds(out, "\tcase $prev in\n");

	for (int i = 0; i < OPT_COUNT && r == 0; i++) {
		if (cli_opts[i].type == TYPE_FILE)
			r = buf_addf(out,
				     "\t--%s) COMPREPLY=($(compgen -f -- \"$cur\")); return ;;\n",
				     cli_opts[i].name);
		if (cli_opts[i].type != TYPE_CHOICE)
			continue;
		r = buf_addf(out, "\t--%s) COMPREPLY=($(compgen -W \"", cli_opts[i].name);
		if (r == 0)
			r = add_choices(out, cli_opts[i].choices);
		if (r == 0)
			r = buf_adds(out, "\" -- \"$cur\")); return ;;\n");
	}
	return r < 0 ? r : buf_adds(out, "\tesac\n");
}

static int bash_command(struct buf *out, const struct command *c)
{
	int r = 0;

	if (cli_leads_group(c)) {
		r = buf_addf(out, "\t%.*s) kind=command list='", (int)strcspn(c->name, " "),
			     c->name);
		if (r == 0)
			r = add_words_of(out, c);
		if (r == 0)
			r = buf_adds(out, "' ;;\n");
	}
	if (r == 0)
		r = buf_addf(out, "\t'%s') kind=%s opts='", c->name, arg_word(c));
	if (r == 0)
		r = add_opt_words(out, c->opts);
	if (r == 0)
		r = buf_adds(out, "' list='");
	if (r == 0 && c->args[0].name && c->args[0].kind == ARG_CHOICE)
		r = add_choices(out, c->args[0].choices);
	else if (r == 0 && c->args[0].name && c->args[0].kind == ARG_TOPIC)
		r = add_command_words(out);
	return r < 0 ? r : buf_adds(out, "' ;;\n");
}

static int bash_script(struct buf *out)
{
	int r = buf_adds(out, bash_head);

	if (r == 0)
		r = add_group_words(out);
	if (r == 0)
		r = buf_adds(out, bash_words);
	if (r == 0)
		r = bash_values(out);
	if (r == 0)
		r = buf_adds(
			out,
			"\tlocal kind= opts= list=\n\tcase $cmd in\n\t'') kind=command opts='");
	if (r == 0)
		r = add_opt_words(out, cli_global_opts);
	if (r == 0)
		r = buf_adds(out, "' list='");
	if (r == 0)
		r = add_command_words(out);
	if (r == 0)
		r = buf_adds(out, "' ;;\n");
	for (const struct command *c = cli_commands; c->name && r == 0; c++)
		if (!c->hidden)
			r = bash_command(out, c);
	if (r == 0)
		r = buf_adds(out, "\tesac\n");
	return r < 0 ? r : buf_adds(out, bash_tail);
}

/* --- zsh --- */

/* Text inside single quotes of _arguments and _describe: no ' and no bare ':' '[' ']'. */
static int add_zsh_text(struct buf *out, const char *s)
{
	int r = 0;

	for (; *s && r == 0; s++) {
		if (*s == '\'')
			r = buf_adds(out, "'\\''");
		else if (strchr(":[]\\", *s))
			r = buf_addf(out, "\\%c", *s);
		else
			r = buf_add(out, s, 1);
	}
	return r;
}

static int zsh_spec(struct buf *out, const struct opt_spec *o, const char *dashes, const char *name)
{
	int r = buf_addf(out, " \\\n\t\t\t'%s%s%s%s[", o->many ? "*" : "", dashes, name,
			 o->arg && dashes[1] ? "=" : "");

	if (r == 0)
		r = add_zsh_text(out, o->help);
	if (r == 0)
		r = buf_adds(out, "]");
	if (r == 0 && o->arg) {
		r = buf_adds(out, ":");
		if (r == 0)
			r = add_zsh_text(out, o->arg);
		if (r == 0)
			r = buf_adds(out, o->type == TYPE_FILE ? ":_files" : ":");
		if (r == 0 && o->choices)
			r = buf_adds(out, "(");
		if (r == 0 && o->choices)
			r = add_choices(out, o->choices);
		if (r == 0 && o->choices)
			r = buf_adds(out, ")");
	}
	return r < 0 ? r : buf_adds(out, "'");
}

static int zsh_command(struct buf *out, const struct command *c)
{
	const struct arg_spec *a = c->args;
	int r = 0;

	if (cli_leads_group(c)) {
		r = buf_addf(out, "\t\t%.*s) compadd ", (int)strcspn(c->name, " "), c->name);
		if (r == 0)
			r = add_words_of(out, c);
		if (r == 0)
			r = buf_adds(out, ";;\n");
	}
	if (r == 0)
		r = buf_addf(out, "\t\t'%s') _arguments -S", c->name);

	for (const enum opt_id *id = c->opts; *id != OPT_COUNT && r == 0; id++) {
		const struct opt_spec *o = &cli_opts[*id];
		char letter[] = { o->short_name, '\0' };

		r = zsh_spec(out, o, "--", o->name);
		if (r == 0 && o->short_name)
			r = zsh_spec(out, o, "-", letter);
	}
	if (r == 0 && a->name && a->kind == ARG_SANDBOX)
		r = buf_addf(out, " \\\n\t\t\t'%s:sandbox:_asb_sandboxes'", a->many ? "*" : "1");
	if (r == 0 && a->name && a->kind == ARG_SNAPSHOT)
		r = buf_addf(out, " \\\n\t\t\t'%s:snapshot:_asb_snapshots'", a->many ? "*" : "1");
	if (r == 0 && a->name && a->kind == ARG_IMAGE)
		r = buf_addf(out, " \\\n\t\t\t'%s:image:_asb_images'", a->many ? "*" : "1");
	if (r == 0 && a->name && (a->kind == ARG_COPY || a->kind == ARG_FILE))
		r = buf_adds(out, " \\\n\t\t\t'*:file:_files'");
	if (r == 0 && a->name && a->kind == ARG_CHOICE) {
		r = buf_adds(out, " \\\n\t\t\t'1:shell:(");
		if (r == 0)
			r = add_choices(out, a->choices);
		if (r == 0)
			r = buf_adds(out, ")'");
	}
	if (r == 0 && a->name && a->kind == ARG_TOPIC)
		r = buf_adds(out, " \\\n\t\t\t'1:command:_asb_commands'");
	return r < 0 ? r : buf_adds(out, " ;;\n");
}

static int zsh_script(struct buf *out)
{
	int r = buf_adds(
		out, "#compdef asb\n# zsh completion for asb, printed by: asb completion zsh\n"
		     "_asb_sandboxes()\n{\n\tlocal -a names=(${(f)\"$(asb ls -q 2>/dev/null)\"})\n"
		     "\tcompadd -a names\n}\n_asb_snapshots()\n{\n"
		     "\tlocal -a names=(${(f)\"$(asb snapshot ls -q 2>/dev/null)\"})\n"
		     "\tcompadd -a names\n}\n_asb_images()\n{\n"
		     "\tlocal -a names=(${(f)\"$(asb image ls -q 2>/dev/null)\"})\n"
		     "\tcompadd -a names\n}\n_asb_commands()\n{\n\tlocal -a list=(\n");

	for (const struct command *c = cli_commands; c->name && r == 0; c++) {
		const bool lead = cli_leads_group(c);

		if (c->hidden || (cli_in_group(c, NULL) && !lead))
			continue;
		r = buf_addf(out, "\t\t'%.*s:", (int)strcspn(c->name, " "), c->name);
		if (r == 0)
			r = add_zsh_text(out, lead ? GROUP_SUMMARY : c->summary);
		if (r == 0)
			r = buf_adds(out, "'\n");
	}
	if (r == 0)
		r = buf_adds(
			out,
			"\t)\n\t_describe command list\n}\n_asb()\n{\n\tlocal curcontext=$curcontext state "
			"line cmd\n\t_arguments -C '1:command:_asb_commands' '*::arg:->arg'\n"
			"\t[[ $state == arg ]] || return\n\tcmd=$line[1]\n\tif ((CURRENT > 2)) && [[ \" ");
	if (r == 0)
		r = add_group_words(out);
	if (r == 0)
		r = buf_adds(
			out,
			"\" == *\" $cmd \"* ]]; then\n"
			"\t\tcmd+=\" $words[2]\"\n\t\tshift words\n\t\t((CURRENT--))\n\tfi\n\tcase $cmd in\n");
	for (const struct command *c = cli_commands; c->name && r == 0; c++)
		if (!c->hidden)
			r = zsh_command(out, c);
	return r < 0 ? r : buf_adds(out, "\tesac\n}\ncompdef _asb asb\n");
}

/* --- fish --- */

/* __asb_at WORDS: they are all that has been typed, less options. __asb_runs WORDS: it begins with them. */
static const char fish_head[] = "# fish completion for asb, printed by: asb completion fish\n"
				"function __asb_plain\n"
				"\tstring match -v -- '-*' (commandline -opc)[2..-1]\n"
				"end\n"
				"function __asb_at\n"
				"\tset -l words (__asb_plain)\n"
				"\ttest \"$words\" = \"$argv\"\n"
				"end\n"
				"function __asb_runs\n"
				"\tset -l words (__asb_plain)\n"
				"\ttest \"$words[1..(count $argv)]\" = \"$argv\"\n"
				"end\n"
				"complete -c asb -f\n";

static int add_fish_text(struct buf *out, const char *s)
{
	int r = buf_adds(out, "'");

	for (; *s && r == 0; s++)
		r = *s == '\'' || *s == '\\' ? buf_addf(out, "\\%c", *s) : buf_add(out, s, 1);
	return r < 0 ? r : buf_adds(out, "'");
}

static int fish_option(struct buf *out, const char *when, const struct opt_spec *o)
{
	int r = buf_addf(out, "complete -c asb -n %s -l %s", when, o->name);

	if (r == 0 && o->short_name)
		r = buf_addf(out, " -s %c", o->short_name);
	if (r == 0 && o->arg)
		r = buf_adds(out, o->type == TYPE_FILE ? " -rF" : " -x");
	if (r == 0 && o->choices) {
		r = buf_adds(out, " -a '");
		if (r == 0)
			r = add_choices(out, o->choices);
		if (r == 0)
			r = buf_adds(out, "'");
	}
	if (r == 0)
		r = buf_adds(out, " -d ");
	if (r == 0)
		r = add_fish_text(out, o->help);
	return r < 0 ? r : buf_adds(out, "\n");
}

static int fish_name(struct buf *out, const struct command *c)
{
	const int n = (int)strcspn(c->name, " ");
	const bool two = cli_in_group(c, NULL);
	int r = 0;

	if (!two || cli_leads_group(c)) {
		r = buf_addf(out, "complete -c asb -n __asb_at -a %.*s -d ", n, c->name);
		if (r == 0)
			r = add_fish_text(out, two ? GROUP_SUMMARY : c->summary);
		if (r == 0)
			r = buf_adds(out, "\n");
	}
	if (r < 0 || !two)
		return r;
	r = buf_addf(out, "complete -c asb -n '__asb_at %.*s' -a %s -d ", n, c->name,
		     c->name + n + 1);
	if (r == 0)
		r = add_fish_text(out, c->summary);
	return r < 0 ? r : buf_adds(out, "\n");
}

static int fish_command(struct buf *out, const struct command *c)
{
	const struct arg_spec *a = c->args;
	char when[80] = "";
	struct buf w;
	int r;

	buf_init(&w, sizeof(when) - 1);
	r = buf_addf(&w, "'__asb_runs %s'", c->name);
	if (r == 0)
		memcpy(when, w.p, w.len + 1);
	buf_done(&w);
	if (r == 0)
		r = fish_name(out, c);
	for (const enum opt_id *id = c->opts; *id != OPT_COUNT && r == 0; id++)
		r = fish_option(out, when, &cli_opts[*id]);
	if (r == 0 && a->name && (a->kind == ARG_COPY || a->kind == ARG_FILE))
		return buf_addf(out, "complete -c asb -n %s -F\n", when);
	if (r < 0 || !a->name || a->kind == ARG_COMMAND)
		return r;
	r = buf_addf(out, "complete -c asb -n %s -a '", when);
	if (r == 0 && a->kind == ARG_SANDBOX)
		r = buf_adds(out, "(asb ls -q 2>/dev/null)");
	else if (r == 0 && a->kind == ARG_SNAPSHOT)
		r = buf_adds(out, "(asb snapshot ls -q 2>/dev/null)");
	else if (r == 0 && a->kind == ARG_IMAGE)
		r = buf_adds(out, "(asb image ls -q 2>/dev/null)");
	else if (r == 0 && a->kind == ARG_CHOICE)
		r = add_choices(out, a->choices);
	else if (r == 0)
		r = add_command_words(out);
	return r < 0 ? r : buf_adds(out, "'\n");
}

static int fish_script(struct buf *out)
{
	int r = buf_adds(out, fish_head);

	for (const enum opt_id *id = cli_global_opts; *id != OPT_COUNT && r == 0; id++)
		r = fish_option(out, "__asb_at", &cli_opts[*id]);
	for (const struct command *c = cli_commands; c->name && r == 0; c++)
		if (!c->hidden)
			r = fish_command(out, c);
	return r;
}

int completion_script(const char *shell, struct buf *out)
{
	if (strcmp(shell, "bash") == 0)
		return bash_script(out);
	if (strcmp(shell, "zsh") == 0)
		return zsh_script(out);
	return strcmp(shell, "fish") == 0 ? fish_script(out) : -EINVAL;
}
