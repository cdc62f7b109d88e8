/* SPDX-License-Identifier: Apache-2.0 */
#include "host/cli/spec.h"

#include <string.h>

/* What a word of a command line names in the table. */

const struct command *cli_find(const char *name)
{
	for (const struct command *c = cli_commands; c->name; c++)
		if (strcmp(c->name, name) == 0)
			return c;
	return NULL;
}

bool cli_in_group(const struct command *c, const char *group)
{
	const size_t n = strcspn(c->name, " ");

	return c->name[n] == ' ' &&
	       (!group || (strlen(group) == n && memcmp(c->name, group, n) == 0));
}

bool cli_is_group(const char *word)
{
	for (const struct command *c = cli_commands; c->name; c++)
		if (cli_in_group(c, word))
			return true;
	return false;
}

bool cli_leads_group(const struct command *c)
{
	const size_t n = strcspn(c->name, " ") + 1;

	for (const struct command *k = cli_commands; cli_in_group(c, NULL) && k <= c; k++)
		if (strncmp(k->name, c->name, n) == 0)
			return k == c;
	return false;
}

bool cli_takes(const struct command *c, enum opt_id id)
{
	for (const enum opt_id *o = c->opts; *o != OPT_COUNT; o++)
		if (*o == id)
			return true;
	return false;
}
