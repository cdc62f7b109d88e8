/* SPDX-License-Identifier: Apache-2.0 */
#include <cJSON.h>
#include <errno.h>
#include <string.h>
#include <time.h>

#include "host/cli/grid.h"
#include "host/cli/out.h"
#include "host/cmd/cmd.h"
#include "host/cmd/common.h"
#include "host/cmd/execid.h"
#include "lib/buf.h"
#include "lib/signame.h"
#include "lib/str.h"

/* The commands of one sandbox. All of it comes from the guest: what is missing or of a wrong type
 * is shown as "-". */

#define COMMAND_SHOWN 48 /* characters of a command, unless --no-trunc */
#define COMMAND_MAX   (1U << 20)
#define COLUMNS	      5

static const char *text_of(const cJSON *x, const char *name)
{
	const char *s = NULL;

	return jsn_str(x, name, &s, NULL) == 1 ? s : NULL;
}

static bool flag(const cJSON *x, const char *name)
{
	bool b = false;

	return jsn_bool(x, name, &b, NULL) == 1 && b;
}

/* "running", "exited 0", "killed by TERM", with why when the agent knows. */
static void put_state(const cJSON *x, char *out, size_t size)
{
	const char *state = text_of(x, "state"), *name;
	uint64_t n = 0;
	const char *why = flag(x, "timed_out") ? " (timeout)" : flag(x, "oom") ? " (memory)" : "";

	if (jsn_u64(x, "signal", 1, 64, &n, NULL) == 1) {
		name = signame((int)n);
		ignore_result(name ? str_format(out, size, "killed by %s%s", name, why)
				   : str_format(out, size, "killed by %u%s", (unsigned)n, why));
	} else if (jsn_u64(x, "exit_code", 0, 255, &n, NULL) == 1) {
		ignore_result(str_format(out, size, "exited %u%s", (unsigned)n, why));
	} else {
		ignore_result(str_format(out, size, "%.20s", state ? state : "-"));
	}
}

static int put_word(struct buf *b, const char *w)
{
	bool plain = *w && strspn(w, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				     "0123456789_-./=:,@%+") == strlen(w);
	int r = b->len ? buf_adds(b, " ") : 0;

	if (r == 0 && !plain)
		r = buf_adds(b, "'");
	for (; *w && r == 0; w++)
		r = *w == '\'' ? buf_adds(b, "'\\''") : buf_add(b, w, 1);
	return r < 0 || plain ? r : buf_adds(b, "'");
}

/* Cuts B to COMMAND_SHOWN characters and an ellipsis. */
static int shorten(struct buf *b)
{
	size_t chars = 0, i = 0;

	for (; i < b->len && chars <= COMMAND_SHOWN; i++)
		chars += ((unsigned char)b->p[i] & 0xc0) != 0x80;
	if (chars <= COMMAND_SHOWN)
		return 0;
	for (i--; i > 0 && ((unsigned char)b->p[i] & 0xc0) == 0x80; i--)
		;
	b->len = i;
	b->p[i] = '\0';
	return buf_adds(b, "\xe2\x80\xa6");
}

static int put_command(const cJSON *x, bool whole, struct buf *b)
{
	const char *shell = text_of(x, "shell");
	const cJSON *argv = NULL, *w;
	int r = 0;

	if (shell)
		r = buf_adds(b, shell);
	else if (jsn_str_array(x, "argv", &argv, NULL) == 1)
		cJSON_ArrayForEach(w, argv) r = r < 0 ? r : put_word(b, w->valuestring);
	if (r == 0 && b->len == 0)
		r = buf_adds(b, "-");
	return r < 0 || whole ? r : shorten(b);
}

static void put_time(const cJSON *x, char *out, size_t size)
{
	uint64_t ms = 0;
	struct tm tm;
	time_t t;

	ignore_result(str_format(out, size, "-"));
	if (jsn_u64(x, "started_at", 1, 1ULL << 52, &ms, NULL) != 1)
		return;
	t = (time_t)(ms / 1000);
	if (!gmtime_r(&t, &tm) || !strftime(out, size, "%Y-%m-%dT%H:%M:%SZ", &tm))
		ignore_result(str_format(out, size, "-"));
}

static void put_duration(const cJSON *x, char *out, size_t size)
{
	uint64_t ms = 0;
	unsigned long long s;

	ignore_result(str_format(out, size, "-"));
	if (jsn_u64(x, "duration_ms", 0, 1ULL << 52, &ms, NULL) != 1)
		return;
	s = ms / 1000;
	if (s < 60)
		ignore_result(str_format(out, size, "%llu.%llus", s, (ms / 100) % 10ULL));
	else if (s < 3600)
		ignore_result(str_format(out, size, "%llum%02llus", s / 60, s % 60));
	else
		ignore_result(str_format(out, size, "%lluh%02llum", s / 3600, s / 60 % 60));
}

static int add_row(struct grid *g, const cJSON *x, bool whole)
{
	char id[EXECID_MAX + 1], state[64], when[40], took[32];
	const char *cells[COLUMNS] = { id, state, NULL, when, took };
	AUTO_BUF command;
	int r;

	buf_init(&command, COMMAND_MAX);
	ignore_result(str_format(id, whole ? sizeof(id) : EXECID_SHORT + 1, "%s",
				 text_of(x, "id") ? text_of(x, "id") : "-")); /* cut is meant */
	put_state(x, state, sizeof(state));
	put_time(x, when, sizeof(when));
	put_duration(x, took, sizeof(took));
	r = put_command(x, whole, &command);
	cells[2] = command.p;
	return r < 0 ? r : grid_add(g, cells);
}

static int print_table(const struct cli *c, const cJSON *list)
{
	static const char *const head[COLUMNS] = { "ID", "STATE", "COMMAND", "STARTED",
						   "DURATION" };
	struct grid g = { .head = head, .columns = COLUMNS };
	const cJSON *x;
	int r = 0;

	cJSON_ArrayForEach(x, list) r = r < 0 ? r : add_row(&g, x, c->val[OPT_NO_TRUNC].set);
	if (r == 0 && g.rows)
		r = grid_print(&g);
	else if (r == 0)
		out_note("no commands in %s", c->names[0]);
	grid_done(&g);
	return r;
}

static int print_ids(const cJSON *list)
{
	const cJSON *x;
	int r = 0;

	cJSON_ArrayForEach(x, list) r = r < 0 || !execid_of(x) ? r : out_line("%s", execid_of(x));
	return r;
}

static int print_doc(const struct core_named *n, cJSON *doc)
{
	AUTO_JSN *j = cJSON_CreateObject();
	cJSON *give = NULL, *list = cJSON_DetachItemFromObjectCaseSensitive(doc, "execs");

	if (!j || !jsn_add_str(j, "name", n->record.name) ||
	    !jsn_add_str(j, "id", n->record.microvm_id) ||
	    !cJSON_AddItemToObject(j, "execs", list)) {
		cJSON_Delete(list);
	} else {
		give = j;
		j = NULL;
	}
	return out_doc(give);
}

int cmd_execs(const struct cli *c)
{
	struct core_named n;
	struct err e = ERR_INIT;
	AUTO_JSN *doc = NULL;
	int r = core_reach(c->names[0], &n, &e);

	if (r < 0)
		return cmd_fail(c, &e, cmd_hint(&e, NULL));
	r = execid_list(&n, &doc, &e);
	if (r < 0) {
		core_named_done(&n);
		return cmd_fail(c, &e, cmd_hint(&e, c->names[0]));
	}
	if (out_json_wanted())
		r = print_doc(&n, doc);
	else if (c->val[OPT_IDS].set)
		r = print_ids(jsn_get(doc, "execs"));
	else
		r = print_table(c, jsn_get(doc, "execs"));
	core_named_done(&n);
	return r < 0 ? c->cmd->failure : 0;
}
