/* SPDX-License-Identifier: Apache-2.0 */
#include <cJSON.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "host/cli/out.h"
#include "host/cmd/cmd.h"
#include "host/cmd/common.h"
#include "host/cmd/execid.h"
#include "lib/b64.h"
#include "lib/fd.h"
#include "lib/jsn.h"
#include "lib/str.h"

/* What is told of a command's end, by run, exec and shell. */

static int status_of(const struct cli *c, int r, const struct exec_result *res, const struct err *e)
{
	if (r < 0)
		return e->code == ERR_USAGE ? EXIT_USAGE : c->cmd->failure;
	switch (res->end) {
	case EXEC_TIMED_OUT:
		return EXIT_TIMEOUT;
	case EXEC_NO_COMMAND:
		return EXIT_NOT_FOUND;
	case EXEC_NOT_EXECUTABLE:
		return EXIT_NOT_EXECUTABLE;
	case EXEC_INTERRUPTED:
		return 128 + res->own_signal;
	case EXEC_DETACHED:
		return 0;
	case EXEC_ENDED:
	case EXEC_READER_GONE:
		break;
	}
	return res->signal ? 128 + res->signal : res->exit_code;
}

/* --- the document --- */

static bool is_text(const struct buf *b)
{
	return b->len == 0 || (!memchr(b->p, '\0', b->len) && str_is_utf8(b->p, b->len));
}

static bool add_output(cJSON *j, const struct exec_result *res)
{
	static const char *const names[] = { "stdout", "stderr" };
	bool text = is_text(&res->output[0]) && is_text(&res->output[1]);

	for (int i = 0; i < 2; i++) {
		const struct buf *b = &res->output[i];
		AUTO_BUF coded;

		buf_init(&coded, B64_LEN(EXEC_CAPTURE_MAX) + 1);
		if (!text && b64_append(&coded, b->p, b->len) < 0)
			return false;
		if (!jsn_add_str(j, names[i], text ? (b->p ? b->p : "") : (coded.p ? coded.p : "")))
			return false;
	}
	return jsn_add_str(j, "encoding", text ? "utf-8" : "base64");
}

static cJSON *document(const char *name, const char *id, int status, int r,
		       const struct exec_result *res, const struct err *e, const char *hint)
{
	AUTO_JSN *j = cJSON_CreateObject();
	bool guest = r == 0 && res->end == EXEC_ENDED;
	cJSON *ret = j, *box;

	if (!j || !jsn_add_str(j, "source", guest ? "guest" : "asb") ||
	    !jsn_add_u64(j, "exit_code", (uint64_t)status))
		return NULL;
	if (!(res->signal ? jsn_add_u64(j, "signal", (uint64_t)res->signal)
			  : jsn_add_str(j, "signal", NULL)) ||
	    !jsn_add_bool(j, "timed_out", r == 0 && res->end == EXEC_TIMED_OUT) ||
	    !jsn_add_bool(j, "oom", res->oom) || !jsn_add_bool(j, "truncated", res->truncated) ||
	    !jsn_add_u64(j, "lost_bytes", res->lost) ||
	    !jsn_add_i64(j, "duration_ms", res->duration_ms) || !add_output(j, res))
		return NULL;
	box = cJSON_AddObjectToObject(j, "sandbox");
	if (!box || !jsn_add_str(box, "name", name) || !jsn_add_str(box, "id", id))
		return NULL;
	if (!cJSON_AddItemToObject(j, "error",
				   e->code ? out_error_json(e, hint) : cJSON_CreateNull()))
		return NULL;
	j = NULL;
	return ret;
}

/* --- the end --- */

/* What to type after E. A command's own end needs none, and neither does a stream of ours that
 * broke; of run's sandbox nothing is left to start or to forget. */
static const char *hint_of(const struct cli *c, const char *name, const char *id, int r,
			   const struct err *e)
{
	if (r == 0 || (id && e->code == ERR_IO))
		return NULL;
	if (c->val[OPT_ATTACH].set && (r == -ENOENT || r == -EINVAL))
		return execid_hint(e, r, name);
	if (c->cmd->run != cmd_run)
		return cmd_hint(e, name);
	if (!id)
		return cmd_create_hint(e, name);
	return e->code == ERR_NOT_FOUND ? NULL : cmd_hint(e, NULL);
}

/* Fills E for ends that only asb can explain. */
static void explain(const struct cli *c, int r, const struct exec_result *res, struct err *e)
{
	if (r == 0 && res->end == EXEC_TIMED_OUT && !c->val[OPT_TIMEOUT].text)
		(void)err_set(e, ERR_TIMEOUT, 0, "the command was killed after its timeout");
	else if (r == 0 && res->end == EXEC_TIMED_OUT)
		(void)err_set(e, ERR_TIMEOUT, 0, "'%.100s' was killed after its timeout of %s s",
			      c->argv[0], c->val[OPT_TIMEOUT].text);
	if (r == 0 && res->end == EXEC_NO_COMMAND && !strstr(e->msg, c->argv[0]))
		(void)err_wrap(e, "%.100s", c->argv[0]);
}

/* A command that runs on: its id is the result when that was asked for, else how to come back. */
static int report_detached(const struct cli *c, const char *name, const struct exec_result *res)
{
	cJSON *j;

	if (!c->val[OPT_DETACH].set) {
		out_note("detached; to come back: asb exec %s --attach %.12s", name, res->id);
		return 0;
	}
	if (!out_json_wanted())
		return out_line("%s", res->id) < 0 ? c->cmd->failure : 0;
	j = cJSON_CreateObject();
	if (j && (!jsn_add_str(j, "id", res->id) || !jsn_add_str(j, "name", name))) {
		cJSON_Delete(j);
		j = NULL;
	}
	return out_doc(j) < 0 ? c->cmd->failure : 0;
}

int cmd_report(const struct cli *c, const char *name, const char *id, int r,
	       const struct exec_result *res, const struct err *e)
{
	int status = status_of(c, r, res, e);
	struct err why = *e;
	const char *hint;

	if (res->mid_line && isatty(STDERR_FILENO) &&
	    (r < 0 || res->end != EXEC_ENDED || res->lost || res->oom))
		ignore_result(fd_write_all(STDERR_FILENO, "\r\n", 2)); /* decoration */
	if (res->skipped)
		out_note("the first %llu bytes of its output are not held any more",
			 (unsigned long long)res->skipped);
	if (r == 0 && res->end == EXEC_DETACHED)
		return report_detached(c, name, res);
	if (r == 0 && res->no_tty)
		out_note(
			"the agent in this image has no terminals: the command had neither one nor "
			"input");
	if (r == 0 && res->runs_on)
		out_warn("the agent in this image cannot end a command: it may go on in %s", name);
	if (res->lost)
		out_warn("%llu bytes of output were lost: the reader was too slow",
			 (unsigned long long)res->lost);
	if (r == 0 && res->oom && cli_takes(c->cmd, OPT_EXEC_MEMORY) && c->val[OPT_EXEC_MEMORY].set)
		out_warn("the command went over its memory limit of %llu MiB",
			 (unsigned long long)c->val[OPT_EXEC_MEMORY].number);
	else if (r == 0 && res->oom)
		out_warn("the sandbox ran out of memory while the command ran");
	explain(c, r, res, &why);
	hint = hint_of(c, name, id, r, &why);
	if (why.code)
		out_error_line(&why, hint);
	if (r == 0 && res->end == EXEC_READER_GONE)
		out_die_of_pipe();
	if (out_json_wanted() && out_doc(document(name, id, status, r, res, &why, hint)) < 0)
		return c->cmd->failure;
	if (r == 0 && res->end == EXEC_INTERRUPTED)
		core_die_of(res->own_signal);
	return status;
}
