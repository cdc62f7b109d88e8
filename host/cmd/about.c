/* SPDX-License-Identifier: Apache-2.0 */
#include <cJSON.h>
#include <errno.h>
#include <stdlib.h>

#include "host/cli/out.h"
#include "host/cli/print.h"
#include "host/cmd/cmd.h"
#include "host/cmd/common.h"
#include "host/local/local.h"
#include "lib/buf.h"
#include "lib/jsn.h"
#include "version.h"

/* What is printed from the command table: version, help, completion, manifest. */

#define TEXT_MAX  (4U << 20)
#define TOPIC_MAX 256

int cmd_version(const struct cli *c)
{
	cJSON *j;
	int r;

	if (!out_json_wanted())
		return out_line("asb %s", ASB_VERSION) < 0 ? c->cmd->failure : 0;
	j = cJSON_CreateObject();
	if (j &&
	    (!jsn_add_str(j, "version", ASB_VERSION) || !jsn_add_str(j, "compiler", __VERSION__) ||
	     !jsn_add_u64(j, "manifest_schema", 1))) {
		cJSON_Delete(j);
		j = NULL;
	}
	r = out_doc(j);
	return r < 0 ? c->cmd->failure : 0;
}

static int give(const struct cli *c, int r, const struct buf *b)
{
	struct err e = ERR_INIT;

	if (r == 0)
		return out_bytes(b->p, b->len) < 0 ? 1 : 0;
	(void)err_set(&e, ERR_INTERNAL, -r, "printing the text");
	return cmd_fail(c, &e, NULL);
}

/* The command that the arguments name. NULL when they name none, which has been told. */
static const struct command *topic(const struct cli *c)
{
	const struct command *t;
	struct err e = ERR_INIT;
	const char *near;
	AUTO_BUF name;
	int r = 0;

	buf_init(&name, TOPIC_MAX);
	for (unsigned i = 0; i < c->names_len && r == 0; i++)
		r = buf_addf(&name, "%s%s", i ? " " : "", c->names[i]);
	t = r == 0 ? cli_find(name.p) : NULL;
	if (t && !t->hidden)
		return t;
	near = r == 0 ? help_nearest(name.p) : NULL;
	(void)err_set(&e, ERR_USAGE, 0, "there is no command '%.100s'", r == 0 ? name.p : "");
	out_error(&e, near ? near : "asb help lists the commands");
	return NULL;
}

int cmd_help(const struct cli *c)
{
	const bool group = c->names_len == 1 && cli_is_group(c->names[0]);
	const struct command *t = c->names_len && !group ? topic(c) : NULL;
	AUTO_BUF b;

	buf_init(&b, TEXT_MAX);
	if (group)
		return give(c, help_group(c->names[0], &b), &b);
	if (c->names_len && !t)
		return EXIT_USAGE;
	return give(c, t ? help_command(t, &b) : help_all(&b), &b);
}

int cmd_completion(const struct cli *c)
{
	AUTO_BUF b;

	buf_init(&b, TEXT_MAX);
	return give(c, completion_script(c->names[0], &b), &b);
}

int cmd_manifest(const struct cli *c)
{
	const struct command *t = c->names_len ? topic(c) : NULL;
	AUTO_BUF b;

	buf_init(&b, TEXT_MAX);
	if (c->names_len && !t)
		return EXIT_USAGE;
	return give(c, c->val[OPT_MAN].set ? man_page(t, &b) : manifest_json(&b), &b);
}

int cmd_supervise(const struct cli *c)
{
	char name[] = "__supervise";
	char **argv = calloc(c->argc + 2, sizeof(*argv));
	int status;

	if (!argv)
		return c->cmd->failure;
	argv[0] = name;
	for (unsigned i = 0; i < c->argc; i++)
		argv[i + 1] = c->argv[i];
	status = local_supervise_main((int)c->argc + 1, argv);
	free(argv);
	return status;
}
