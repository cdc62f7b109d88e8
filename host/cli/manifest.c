/* SPDX-License-Identifier: Apache-2.0 */
#include "host/cli/print.h"

#include <cJSON.h>
#include <errno.h>

#include "lib/jsn.h"
#include "lib/pretty.h"
#include "version.h"

#define MANIFEST_SCHEMA 1

/*
 * The table as one document: {"schema", "name", "version", "options", "commands", "exit_codes",
 * "environment"}. SCHEMA grows when a member changes its meaning or goes away, not when one is
 * added.
 */

static const char *const type_names[] = {
	[TYPE_FLAG] = "flag",	  [TYPE_TEXT] = "string",     [TYPE_UINT] = "integer",
	[TYPE_MIB] = "size",	  [TYPE_SECONDS] = "seconds", [TYPE_NAME] = "name",
	[TYPE_CHOICE] = "choice", [TYPE_ENV] = "variable",    [TYPE_PATH] = "guest_path",
	[TYPE_FILE] = "file",	  [TYPE_CPUS] = "number",     [TYPE_EXEC] = "exec",
	[TYPE_SIGNAL] = "signal", [TYPE_KEYS] = "keys",	      [TYPE_ADDRESS] = "address",
	[TYPE_SINCE] = "time",
};

static bool add_strings(cJSON *o, const char *name, const char *const *list)
{
	cJSON *a = list ? cJSON_AddArrayToObject(o, name) : NULL;

	for (; a && *list; list++)
		if (!cJSON_AddItemToArray(a, cJSON_CreateString(*list)))
			return false;
	return a != NULL;
}

static bool add_option(cJSON *array, const struct opt_spec *o)
{
	char letter[] = { o->short_name, '\0' };
	cJSON *j = cJSON_CreateObject();

	if (!j || !cJSON_AddItemToArray(array, j))
		return false;
	return jsn_add_str(j, "name", o->name) &&
	       jsn_add_str(j, "short", o->short_name ? letter : NULL) &&
	       jsn_add_str(j, "type", type_names[o->type]) && jsn_add_str(j, "arg", o->arg) &&
	       jsn_add_str(j, "default", o->def) && jsn_add_bool(j, "many", o->many) &&
	       (!o->max || (jsn_add_u64(j, "min", o->min) && jsn_add_u64(j, "max", o->max))) &&
	       (!o->choices || add_strings(j, "choices", o->choices)) &&
	       jsn_add_str(j, "help", o->help);
}

static bool add_options(cJSON *o, const enum opt_id *opts)
{
	cJSON *a = cJSON_AddArrayToObject(o, "options");

	for (; a && *opts != OPT_COUNT; opts++)
		if (!add_option(a, &cli_opts[*opts]))
			return false;
	return a != NULL;
}

static bool add_args(cJSON *o, const struct arg_spec *arg)
{
	cJSON *a = cJSON_AddArrayToObject(o, "args");

	for (; a && arg->name; arg++) {
		cJSON *j = cJSON_CreateObject();

		if (!j || !cJSON_AddItemToArray(a, j) || !jsn_add_str(j, "name", arg->name) ||
		    !jsn_add_bool(j, "optional", arg->optional) ||
		    !jsn_add_bool(j, "many", arg->many || arg->kind == ARG_COMMAND) ||
		    (arg->choices && !add_strings(j, "choices", arg->choices)) ||
		    !jsn_add_str(j, "help", arg->help))
			return false;
	}
	return a != NULL;
}

static bool add_command(cJSON *array, const struct command *c)
{
	AUTO_BUF usage;
	cJSON *j = cJSON_CreateObject();

	buf_init(&usage, 1024);
	if (!j || !cJSON_AddItemToArray(array, j) || help_usage(c, &usage) < 0)
		return false;
	return jsn_add_str(j, "name", c->name) && jsn_add_str(j, "summary", c->summary) &&
	       jsn_add_str(j, "usage", usage.p) && jsn_add_str(j, "about", c->about) &&
	       add_args(j, c->args) && add_options(j, c->opts) &&
	       jsn_add_u64(j, "exit_code_of_failure", (uint64_t)c->failure) &&
	       add_strings(j, "examples", c->examples);
}

static bool add_pairs(cJSON *o, const char *name, const struct cli_pair *p)
{
	cJSON *j = cJSON_AddObjectToObject(o, name);

	for (; j && p->name; p++)
		if (!jsn_add_str(j, p->name, p->text))
			return false;
	return j != NULL;
}

int manifest_json(struct buf *out)
{
	AUTO_JSN *j = cJSON_CreateObject();
	cJSON *list;

	if (!j || !jsn_add_u64(j, "schema", MANIFEST_SCHEMA) || !jsn_add_str(j, "name", "asb") ||
	    !jsn_add_str(j, "version", ASB_VERSION) || !add_options(j, cli_global_opts))
		return -ENOMEM;
	list = cJSON_AddArrayToObject(j, "commands");
	for (const struct command *c = cli_commands; list && c->name; c++)
		if (!c->hidden && !add_command(list, c))
			return -ENOMEM;
	if (!list || !add_pairs(j, "exit_codes", cli_exit_codes) ||
	    !add_pairs(j, "environment", cli_environment) || !add_pairs(j, "files", cli_files))
		return -ENOMEM;
	return pretty_json(j, out);
}
