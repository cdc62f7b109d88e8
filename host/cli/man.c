/* SPDX-License-Identifier: Apache-2.0 */
#include "host/cli/print.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#include "lib/str.h"

/*
 * Manual pages in mdoc(7), which man-db's groff and mandoc both read. A text line must not begin
 * with '.' or "'", and a backslash is written \e. In macro arguments, double quotes and words of
 * punctuation would be special: values there are quoted.
 */

/* TEXT as a text line or several; an empty line becomes a paragraph. */
static int add_text(struct buf *out, const char *text)
{
	bool line_start = true;
	int r = 0;

	for (; *text && r == 0; text++) {
		if (line_start && (*text == '.' || *text == '\''))
			r = buf_adds(out, "\\&");
		line_start = *text == '\n';
		if (r < 0)
			break;
		if (text[0] == '\n' && text[1] == '\n') {
			r = buf_adds(out, "\n.Pp\n");
			text++;
		} else if (*text == '\\') {
			r = buf_adds(out, "\\e");
		} else if (*text == '-') {
			r = buf_adds(out, "\\-");
		} else {
			r = buf_add(out, text, 1);
		}
	}
	return r < 0 ? r : buf_adds(out, "\n");
}

/* TEXT as one quoted macro argument. */
static int add_quoted(struct buf *out, const char *text)
{
	int r = buf_adds(out, "\"");

	for (; *text && r == 0; text++) {
		if (*text == '"')
			r = buf_adds(out, "\"\"");
		else if (*text == '\\')
			r = buf_adds(out, "\\e");
		else if (*text == '-')
			r = buf_adds(out, "\\-");
		else
			r = buf_add(out, text, 1);
	}
	return r < 0 ? r : buf_adds(out, "\"");
}

static int add_option(struct buf *out, const struct opt_spec *o)
{
	int r = buf_adds(out, ".It ");

	if (r == 0 && o->short_name)
		r = buf_addf(out, "Fl %c , ", o->short_name);
	if (r == 0)
		r = buf_addf(out, "Fl \\-%s", o->name);
	if (r == 0 && o->arg)
		r = buf_addf(out, " Ar %s", o->arg);
	if (r == 0)
		r = buf_adds(out, "\n");
	if (r == 0)
		r = add_text(out, o->help);
	if (r == 0 && o->def)
		r = buf_addf(out, "(default: %s)\n", o->def);
	return r;
}

static int add_options(struct buf *out, const enum opt_id *opts)
{
	int r = buf_adds(out, ".Bl -tag -width Ds\n");

	for (; *opts != OPT_COUNT && r == 0; opts++)
		r = add_option(out, &cli_opts[*opts]);
	return r < 0 ? r : buf_adds(out, ".El\n");
}

static int add_pairs(struct buf *out, const char *title, const struct cli_pair *p)
{
	int r = buf_addf(out, ".Sh %s\n.Bl -tag -width Ds\n", title);

	for (; p->name && r == 0; p++) {
		r = buf_adds(out, ".It ");
		if (r == 0)
			r = add_quoted(out, p->name);
		if (r == 0)
			r = buf_adds(out, "\n");
		if (r == 0)
			r = add_text(out, p->text);
	}
	return r < 0 ? r : buf_adds(out, ".El\n");
}

static int add_head(struct buf *out, const char *name, const char *summary)
{
	int r = buf_adds(out, ".\\\" SPDX-License-Identifier: Apache-2.0\n"
			      ".\\\" Printed from the command table by \"asb manifest --man\".\n"
			      ".Dd November 29, 2026\n.Dt ");

	for (const char *p = name; *p && r == 0; p++)
		r = buf_addf(out, "%c", toupper((unsigned char)*p));
	if (r == 0)
		r = buf_addf(out,
			     " 1\n.Os agent-sandbox-os\n.Sh NAME\n.Nm %s\n.Nd %s\n.Sh SYNOPSIS\n",
			     name, summary);
	return r;
}

static int add_examples(struct buf *out, const char *const *list)
{
	int r = buf_adds(out, ".Sh EXAMPLES\n");

	for (; *list && r == 0; list++) {
		r = buf_adds(out, ".Dl ");
		if (r == 0)
			r = add_quoted(out, *list);
		if (r == 0)
			r = buf_adds(out, "\n");
	}
	return r;
}

static int add_args(struct buf *out, const struct arg_spec *a)
{
	int r = a->name ? buf_adds(out, ".Pp\nThe arguments are:\n.Bl -tag -width Ds\n") : 0;

	if (!a->name)
		return 0;
	for (; a->name && r == 0; a++) {
		r = buf_addf(out, ".It Ar %s\n", a->name);
		if (r == 0)
			r = add_text(out, a->help);
	}
	return r < 0 ? r : buf_adds(out, ".El\n");
}

/* What the page of C is called: asb-image-build. */
static int page_name(const struct command *c, char ret[64])
{
	const int n = (int)strcspn(c->name, " ");

	return str_format(ret, 64, "asb-%.*s%s%s", n, c->name, c->name[n] ? "-" : "",
			  c->name[n] ? c->name + n + 1 : "");
}

/* The synopsis is the usage line of the help, as literal text, so that both can be compared. */
static int command_page(const struct command *c, struct buf *out)
{
	char name[64];
	AUTO_BUF usage;
	int r = page_name(c, name);

	buf_init(&usage, 1024);
	if (r == 0)
		r = add_head(out, name, c->summary);
	if (r == 0)
		r = help_usage(c, &usage);
	if (r == 0)
		r = buf_adds(out, ".Li ");
	if (r == 0)
		r = add_quoted(out, usage.p);
	if (r == 0)
		r = buf_adds(out, "\n.Sh DESCRIPTION\n");
	if (r == 0)
		r = add_text(out, c->about);
	if (r == 0)
		r = add_args(out, c->args);
	if (r == 0)
		r = buf_adds(out, ".Pp\nThe options are:\n");
	if (r == 0)
		r = add_options(out, c->opts);
	if (r == 0)
		r = add_pairs(out, "EXIT STATUS", cli_exit_codes);
	if (r == 0)
		r = add_examples(out, c->examples);
	return r < 0 ? r : buf_adds(out, ".Sh SEE ALSO\n.Xr asb 1\n");
}

static int main_page(struct buf *out)
{
	char name[64];
	int r = add_head(out, "asb", "isolated microVM sandboxes for code that you do not trust");

	if (r == 0)
		r = buf_adds(
			out,
			".Li \"asb [OPTIONS] COMMAND ...\"\n.Sh DESCRIPTION\n"
			"A sandbox is a named microVM.\nStandard output carries results only, byte for "
			"byte; everything else goes to standard error.\n.Pp\nThe commands are:\n"
			".Bl -tag -width Ds\n");
	for (const struct command *c = cli_commands; c->name && r == 0; c++) {
		if (c->hidden)
			continue;
		r = page_name(c, name);
		if (r == 0)
			r = buf_addf(out, ".It Xr %s 1\n", name);
		if (r == 0)
			r = add_text(out, c->summary);
	}
	if (r == 0)
		r = buf_adds(out, ".El\n.Pp\nThese options may stand before the command:\n");
	if (r == 0)
		r = add_options(out, cli_global_opts);
	if (r == 0)
		r = add_pairs(out, "ENVIRONMENT", cli_environment);
	if (r == 0)
		r = add_pairs(out, "FILES", cli_files);
	return r < 0 ? r : add_pairs(out, "EXIT STATUS", cli_exit_codes);
}

int man_page(const struct command *c, struct buf *out)
{
	return c ? command_page(c, out) : main_page(out);
}
