/* SPDX-License-Identifier: Apache-2.0 */
#include "host/cmd/common.h"

#include <cJSON.h>
#include <errno.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "host/cli/out.h"
#include "lib/fd.h"
#include "lib/jsn.h"
#include "lib/str.h"

int cmd_fail(const struct cli *c, const struct err *e, const char *hint)
{
	out_error(e, hint);
	return e->code == ERR_USAGE ? EXIT_USAGE : c->cmd->failure;
}

/* The form of what to type, with at most one %s for the name. */
static const char *hint_form(const struct err *e, bool named)
{
	switch (e->code) {
	case ERR_EXISTS:
		return named ? "choose another name, or remove it: asb rm %s" : NULL;
	case ERR_NOT_FOUND:
		if (e->errnum == ENOENT)
			return "asb ls lists the sandboxes there are";
		return named ? "to forget it: asb rm %s" : NULL;
	case ERR_UNAVAILABLE:
		if (named && e->errnum != ECONNREFUSED)
			return "asb start %s starts it when it is stopped or has ended";
		return "asb doctor checks what this machine can do";
	case ERR_UNSUPPORTED:
		if (e->errnum == EOPNOTSUPP)
			return "an image with asb's own agent has all of it: asb image init makes the folder of one";
		return "asb doctor checks what this machine can do";
	case ERR_IO:
	case ERR_TIMEOUT:
		return "asb doctor checks what this machine can do";
	case ERR_NONE:
	case ERR_USAGE:
	case ERR_INVALID:
	case ERR_CONFLICT:
	case ERR_FULL:
	case ERR_TOO_BIG:
	case ERR_DENIED:
	case ERR_INTERNAL:
	case ERR_CODE_COUNT:
		break;
	}
	return NULL;
}

const char *cmd_hint(const struct err *e, const char *name)
{
	static char text[SANDBOX_NAME_MAX + 80];
	const char *form = hint_form(e, name != NULL), *at = form ? strstr(form, "%s") : NULL;

	if (!at)
		return form;
	ignore_result(
		str_format(text, sizeof(text), "%.*s%s%s", (int)(at - form), form, name, at + 2));
	return text;
}

const char *cmd_create_hint(const struct err *e, const char *name)
{
	struct err ours = { .code = ERR_IO };

	if (e->code == ERR_EXISTS)
		return cmd_hint(e, name);
	/* What is missing is no sandbox but something that one is made from. */
	return cmd_hint(e->code == ERR_NOT_FOUND ? &ours : e, NULL);
}

/* --- several names --- */

static bool add_outcome(cJSON *list, const char *name, const char *word, const struct err *e,
			const char *hint)
{
	cJSON *j = cJSON_CreateObject();

	if (!j || !cJSON_AddItemToArray(list, j) || !jsn_add_str(j, "name", name) ||
	    !jsn_add_str(j, "action", e ? NULL : word))
		return false;
	return cJSON_AddItemToObject(j, "error", e ? out_error_json(e, hint) : cJSON_CreateNull());
}

int cmd_each(const struct cli *c, cmd_one_fn *fn)
{
	return cmd_each_of(c, "sandboxes", cmd_hint, fn);
}

int cmd_each_of(const struct cli *c, const char *key,
		const char *(*hint)(const struct err *e, const char *name), cmd_one_fn *fn)
{
	AUTO_JSN *doc = cJSON_CreateObject();
	cJSON *list = cJSON_AddArrayToObject(doc, key), *give;
	int status = 0;

	for (unsigned i = 0; i < c->names_len; i++) {
		const char *name = c->names[i], *word = "unchanged";
		struct err e = ERR_INIT;
		int r = fn(c, name, &word, &e);

		if (r < 0) {
			out_error_line(&e, hint(&e, name));
			status = c->cmd->failure;
		} else if (!out_json_wanted() && strcmp(word, "unchanged") != 0) {
			if (out_line("%s %s", word, name) < 0)
				status = c->cmd->failure;
		}
		if (list && !add_outcome(list, name, word, r < 0 ? &e : NULL,
					 r < 0 ? hint(&e, name) : NULL))
			list = NULL;
	}
	if (!out_json_wanted())
		return status;
	give = list ? doc : NULL;
	if (give)
		doc = NULL;
	return out_doc(give) < 0 ? c->cmd->failure : status;
}

/* --- one sandbox --- */

const char *cmd_state(const struct sandbox_info *i)
{
	if (i)
		return sandbox_state_name(i->state);
	return "MISSING";
}

static bool add_time(cJSON *o, const char *name, int64_t s)
{
	char text[32];
	time_t t = (time_t)s;
	struct tm tm;

	if (s <= 0 || !gmtime_r(&t, &tm) ||
	    !strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &tm))
		return jsn_add_str(o, name, NULL);
	return jsn_add_str(o, name, text);
}

/* 0: there is none */
static bool add_ms(cJSON *o, const char *name, int64_t ms)
{
	return ms ? jsn_add_i64(o, name, ms) : jsn_add_str(o, name, NULL);
}

cJSON *cmd_sandbox_json(const struct state_record *r, const struct sandbox_info *i)
{
	AUTO_JSN *j = cJSON_CreateObject();
	cJSON *ret = j;

	if (!j || !jsn_add_str(j, "name", r->name) || !jsn_add_str(j, "id", r->microvm_id) ||
	    !jsn_add_str(j, "state", cmd_state(i)) ||
	    !jsn_add_str(j, "image", core_image_name(r, i)) ||
	    !jsn_add_str(j, "backend", backend_of_id(r->microvm_id)->name) ||
	    !add_time(j, "created_at", i ? i->created_s : 0))
		return NULL;
	if (i &&
	    (!jsn_add_u64(j, "cpus", i->cpus) || !jsn_add_u64(j, "memory_mib", i->memory_mib) ||
	     !jsn_add_str(j, "net", i->net == NET_USER ? "user" : "none") ||
	     !jsn_add_str(j, "accel", i->accel[0] ? i->accel : NULL) ||
	     !jsn_add_bool(j, "ephemeral", i->ephemeral) ||
	     !add_ms(j, "idle_timeout_ms", i->idle_timeout_ms) ||
	     !add_ms(j, "max_duration_ms", i->max_duration_ms) ||
	     !add_time(j, "ends_at", i->ends_ms / 1000) ||
	     !jsn_add_text(j, "reason", i->reason, strlen(i->reason))))
		return NULL;
	if (!jsn_add_str(j, "endpoint", r->endpoint) || !jsn_add_str(j, "region", r->region))
		return NULL;
	j = NULL;
	return ret;
}

int cmd_tell_created(const struct cli *c, const struct backend *b, const char *name, const char *id)
{
	struct state_record r = { .name = NULL };
	struct sandbox_info i;
	int rc = -ENOENT;

	if (!out_json_wanted())
		return out_line("created %s (%s)", name, id) < 0 ? c->cmd->failure : 0;
	if (state_get(name, &r, NULL) == 0)
		rc = out_doc(cmd_sandbox_json(&r, b->info(id, &i, NULL) == 0 ? &i : NULL));
	state_record_done(&r);
	return rc < 0 ? c->cmd->failure : 0;
}

int cmd_ask(const char *text, const char *hint, struct err *e)
{
	char answer[8] = "";

	if (!isatty(STDIN_FILENO) || !isatty(STDERR_FILENO))
		return err_set(e, ERR_USAGE, EINVAL, "nobody is here to be asked (%s)", hint);
	ignore_result(fd_write_all(STDERR_FILENO, text, strlen(text))); /* then the answer is no */
	return read(STDIN_FILENO, answer, sizeof(answer) - 1) > 0 &&
	       (answer[0] == 'y' || answer[0] == 'Y');
}
