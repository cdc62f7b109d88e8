/* SPDX-License-Identifier: Apache-2.0 */
#include "host/cli/print.h"

#include <string.h>

#include "lib/str.h"

#define WIDTH	  79
#define HELP_AT	  30 /* column of an option's text */
#define NAMES_MAX 32 /* longest word that help_nearest compares */

/* Appends TEXT in lines of at most WIDTH columns; the first begins at column AT, the others are
 * indented by INDENT. */
static int add_wrapped(struct buf *out, const char *text, size_t at, int indent)
{
	int r = 0;

	while (*text && r == 0) {
		size_t n = strcspn(text, " \n");

		if (at + n > WIDTH && at > (size_t)indent) {
			r = buf_addf(out, "\n%*s", indent, "");
			at = (size_t)indent;
		}
		if (r == 0)
			r = buf_add(out, text, n);
		at += n;
		text += n;
		if (*text == '\n' && r == 0) {
			size_t breaks = strspn(text, "\n");

			r = buf_addf(out, "%s%*s", breaks > 1 ? "\n\n" : "\n", indent, "");
			at = (size_t)indent;
			text += breaks;
		} else if (*text == ' ') {
			text++;
			if (r == 0 && at + 1 + strcspn(text, " \n") <= WIDTH) {
				r = buf_adds(out, " ");
				at++;
			} else if (r == 0 && *text) {
				r = buf_addf(out, "\n%*s", indent, "");
				at = (size_t)indent;
			}
		}
	}
	return r;
}

int help_usage(const struct command *c, struct buf *out)
{
	int r = buf_addf(out, "asb %s%s", c->name, c->opts[0] == OPT_COUNT ? "" : " [OPTIONS]");

	for (const struct arg_spec *a = c->args; a->name && r == 0; a++) {
		if (a->kind == ARG_COMMAND)
			r = buf_addf(out, " [--] %s [ARG...]", a->name);
		else if (a->optional)
			r = buf_addf(out, " [%s]", a->name);
		else
			r = buf_addf(out, " %s%s", a->name, a->many ? "..." : "");
	}
	return r;
}

static int add_option(struct buf *out, const struct opt_spec *o)
{
	size_t start = out->len, used;
	char text[256];
	int r = o->short_name ? buf_addf(out, "  -%c, ", o->short_name) : buf_adds(out, "      ");

	if (r == 0)
		r = buf_addf(out, "--%s%s%s", o->name, o->arg ? " " : "", o->arg ? o->arg : "");
	used = out->len - start;
	if (r == 0 && used + 2 > HELP_AT)
		r = buf_addf(out, "\n%*s", HELP_AT, "");
	else if (r == 0)
		r = buf_addf(out, "%*s", (int)(HELP_AT - used), "");
	if (r == 0)
		r = str_format(text, sizeof(text), "%s%s%s%s", o->help, o->def ? " [" : "",
			       o->def ? o->def : "", o->def ? "]" : "");
	if (r == 0)
		r = add_wrapped(out, text, HELP_AT, HELP_AT);
	return r < 0 ? r : buf_adds(out, "\n");
}

static int add_options(struct buf *out, const enum opt_id *opts)
{
	int r = buf_adds(out, "\nOptions:\n");

	for (; *opts != OPT_COUNT && r == 0; opts++)
		r = add_option(out, &cli_opts[*opts]);
	return r;
}

int help_command(const struct command *c, struct buf *out)
{
	int r = buf_adds(out, "usage: ");

	if (r == 0)
		r = help_usage(c, out);
	if (r == 0)
		r = buf_addf(out, "\n\n%s.\n\n", c->summary);
	if (r == 0)
		r = add_wrapped(out, c->about, 0, 0);
	if (r == 0)
		r = buf_adds(out, "\n");
	if (r == 0 && c->args[0].name)
		r = buf_adds(out, "\nArguments:\n");
	for (const struct arg_spec *a = c->args; a->name && r == 0; a++) {
		r = buf_addf(out, "  %-*s", HELP_AT - 2, a->name);
		if (r == 0)
			r = add_wrapped(out, a->help, HELP_AT, HELP_AT);
		if (r == 0)
			r = buf_adds(out, "\n");
	}
	if (r == 0)
		r = add_options(out, c->opts);
	if (r == 0)
		r = buf_adds(out, "\nExamples:\n");
	for (const char *const *x = c->examples; *x && r == 0; x++)
		r = buf_addf(out, "  %s\n", *x);
	return r;
}

static int add_summary(struct buf *out, const struct command *c)
{
	return buf_addf(out, "  %-16s %s\n", c->name, c->summary);
}

int help_group(const char *group, struct buf *out)
{
	int r = buf_addf(out, "usage: asb %s COMMAND ...\n\nCommands:\n", group);

	for (const struct command *c = cli_commands; c->name && r == 0; c++)
		if (cli_in_group(c, group))
			r = add_summary(out, c);
	return r < 0 ? r : buf_addf(out, "\nTry:\n  asb help %s COMMAND\n", group);
}

int help_all(struct buf *out)
{
	int r = buf_adds(
		out, "usage: asb [OPTIONS] COMMAND ...\n\nIsolated microVM sandboxes for code that "
		     "you do not trust.\n\nCommands:\n");

	for (const struct command *c = cli_commands; c->name && r == 0; c++)
		if (!c->hidden)
			r = add_summary(out, c);
	if (r == 0)
		r = add_options(out, cli_global_opts);
	if (r == 0)
		r = buf_adds(out,
			     "\nTry:\n  asb run -- python3 -c 'print(\"Hello from a microVM!\")'\n"
			     "  asb help run        help for a command\n"
			     "  asb doctor          what this machine can do\n");
	return r;
}

/* Edit distance (Levenshtein) of two words of fewer than NAMES_MAX bytes, by one row of the usual
 * table. */
static size_t distance(const char *a, const char *b)
{
	size_t row[NAMES_MAX], n = strlen(b);

	for (size_t k = 0; k <= n; k++)
		row[k] = k;
	for (size_t i = 1; a[i - 1]; i++) {
		size_t diagonal = row[0];

		row[0] = i;
		for (size_t k = 1; k <= n; k++) {
			size_t best = diagonal + (a[i - 1] != b[k - 1]);

			diagonal = row[k];
			if (row[k] + 1 < best)
				best = row[k] + 1;
			if (row[k - 1] + 1 < best)
				best = row[k - 1] + 1;
			row[k] = best;
		}
	}
	return row[n];
}

const char *help_nearest(const char *word)
{
	const char *best = NULL;
	size_t least = 3;

	if (strlen(word) >= NAMES_MAX)
		return NULL;
	for (const struct command *c = cli_commands; c->name; c++) {
		size_t d = c->hidden ? least : distance(word, c->name);

		if (d < least && d < strlen(c->name)) {
			least = d;
			best = c->name;
		}
	}
	return best;
}
