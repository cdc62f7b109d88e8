/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "host/cli/out.h"
#include "host/mcp/mcp.h"
#include "lib/buf.h"
#include "lib/jsn.h"

/*
 * What to put where, for the clients that people use. The path of this asb is given whole, because clients are started with
 * another PATH than shells; it is quoted by whoever writes JSON, or, for YAML and shells, as JSON and single quotes.
 */

#define TEXT_MAX 16384

static const struct form {
	const char *name, *where, *member; /* of the JSON object that lists servers */
	bool type;			   /* a server's "type" is asked for */
} forms[] = {
	{ "cursor", "~/.cursor/mcp.json, or .cursor/mcp.json of a project", "mcpServers", true },
	{ "vscode",
	  ".vscode/mcp.json of a project, or the command \"MCP: Open User Configuration\"",
	  "servers", true },
	{ "windsurf", "~/.codeium/windsurf/mcp_config.json", "mcpServers", false },
	{ "generic", "the client's list of MCP servers", "mcpServers", false },
};

static int own_path(char out[static PATH_MAX])
{
	ssize_t n = readlink("/proc/self/exe", out, PATH_MAX - 1);

	if (n < 0)
		return -errno;
	out[n] = '\0';
	return 0;
}

/* WORD for a POSIX shell. */
static int add_shell_word(struct buf *b, const char *word)
{
	int r = buf_adds(b, "'");

	for (; *word && r == 0; word++)
		r = *word == '\'' ? buf_adds(b, "'\\''") : buf_add(b, word, 1);
	return r < 0 ? r : buf_adds(b, "'");
}

static int claude(const char *path)
{
	AUTO_BUF b;
	int r;

	buf_init(&b, TEXT_MAX);
	r = buf_adds(&b, "claude mcp add --scope user asb -- ");
	if (r == 0)
		r = add_shell_word(&b, path);
	out_note(
		"for Claude Code: run this command; for Claude Desktop see --print-config generic");
	return r < 0 ? r : out_line("%s mcp", b.p);
}

static int goose(const char *path)
{
	AUTO_JSN *text = cJSON_CreateString(path);
	char *quoted = text ? cJSON_PrintUnformatted(text) : NULL;
	int r = -ENOMEM;

	out_note("for ~/.config/goose/config.yaml");
	if (quoted)
		r = out_line(
			"extensions:\n  asb:\n    name: asb\n    type: stdio\n    cmd: %s\n    args: [mcp]\n"
			"    enabled: true\n    timeout: 300",
			quoted);
	cJSON_free(quoted);
	return r;
}

static int json(const char *path, const struct form *f)
{
	cJSON *j = cJSON_CreateObject(), *all = j ? cJSON_AddObjectToObject(j, f->member) : NULL;
	cJSON *o = all ? cJSON_AddObjectToObject(all, "asb") : NULL, *args = NULL;

	out_note("for %s", f->where);
	if (o && (!f->type || jsn_add_str(o, "type", "stdio")) && jsn_add_str(o, "command", path))
		args = cJSON_AddArrayToObject(o, "args");
	if (!args || !cJSON_AddItemToArray(args, cJSON_CreateString("mcp"))) {
		cJSON_Delete(j);
		return -ENOMEM;
	}
	return out_doc(j);
}

int mcp_print_config(const char *client)
{
	char path[PATH_MAX];
	int r = own_path(path);

	if (r < 0)
		return r;
	if (!strcmp(client, "claude"))
		return claude(path);
	if (!strcmp(client, "goose"))
		return goose(path);
	for (size_t i = 0; i < ARRAY_LEN(forms); i++)
		if (!strcmp(client, forms[i].name))
			return json(path, &forms[i]);
	return -EINVAL;
}
