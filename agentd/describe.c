/* SPDX-License-Identifier: Apache-2.0 */
#include "describe.h"

#include <string.h>

#include "lib/jsn.h"

/* Of a request that is remembered: words, and bytes of all of them. */
#define WORDS_MAX 64
#define BYTES_MAX 4096

/* --- what was asked --- */
/* TEXT, or what is left of it under the cap. */
static bool add_word(cJSON *o, const char *name, const char *text, size_t *left)
{
	size_t n = strlen(text);

	if (n > *left)
		n = *left;
	*left -= n;
	return jsn_add_text(o, name, text, n);
}

static bool add_argv(cJSON *o, char *const *argv, size_t *left)
{
	cJSON *list = cJSON_AddArrayToObject(o, "argv");
	size_t i;

	for (i = 0; list && argv[i] && i<WORDS_MAX && * left> 0; i++) {
		AUTO_JSN *w = cJSON_CreateObject();

		if (!w || !add_word(w, "w", argv[i], left) ||
		    !cJSON_AddItemToArray(list, cJSON_DetachItemFromObject(w, "w")))
			return false;
	}
	if (list && argv[i])
		*left = 0;
	return list != NULL;
}

void describe_remember(struct exec *e, const struct spec *s)
{
	cJSON *o = cJSON_CreateObject();
	const char *shell = cJSON_GetStringValue(jsn_get(s->root, "shell"));
	const cJSON *user = jsn_get(s->root, "user");
	size_t left = BYTES_MAX;
	bool fine = o && (shell ? add_word(o, "shell", shell, &left) : add_argv(o, s->argv, &left));

	fine = fine && jsn_add_bool(o, "args_cut", left == 0);
	if (fine && cJSON_IsString(user))
		fine = jsn_add_str(o, "user", user->valuestring);
	else if (fine)
		fine = s->user ? jsn_add_u64(o, "user", s->user->uid)
			       : jsn_add_str(o, "user", NULL);
	if (!fine)
		jsn_free(&o);
	e->asked = o;
}

static bool add_asked(cJSON *o, const struct exec *e)
{
	cJSON *m, *pty;

	cJSON_ArrayForEach(m, e->asked)
	{
		cJSON *copy = cJSON_Duplicate(m, true);

		if (!copy || !cJSON_AddItemToObject(o, m->string, copy)) {
			cJSON_Delete(copy);
			return false;
		}
	}
	if (!jsn_add_str(o, "seccomp", confine_name(e->confine.profile)))
		return false;
	if (e->in.wanted && !jsn_add_u64(o, "stdin_offset", e->in.offset))
		return false;
	if (!e->pty)
		return jsn_add_bool(o, "pty", false);
	pty = cJSON_AddObjectToObject(o, "pty");
	return pty && jsn_add_u64(pty, "rows", e->rows) && jsn_add_u64(pty, "cols", e->cols);
}

/* --- what has become of it --- */
static bool add_end(cJSON *o, const struct exec *e)
{
	bool ended = e->state == EXEC_EXITED;

	if (!ended || e->signal) {
		if (!jsn_add_str(o, "exit_code", NULL))
			return false;
	} else if (!jsn_add_i64(o, "exit_code", e->exit_code)) {
		return false;
	}
	return ended && e->signal ? jsn_add_i64(o, "signal", e->signal)
				  : jsn_add_str(o, "signal", NULL);
}

cJSON *describe_exec(const struct exec *e)
{
	cJSON *o = cJSON_CreateObject();
	int64_t end = e->leader_ended ? e->end_ns : loop_now();

	if (o && jsn_add_str(o, "id", e->id) &&
	    jsn_add_str(o, "state", e->state == EXEC_EXITED ? "exited" : "running") &&
	    jsn_add_i64(o, "pid", e->child.pid) && add_end(o, e) &&
	    jsn_add_bool(o, "timed_out", e->timed_out) && jsn_add_bool(o, "oom", e->oom) &&
	    jsn_add_bool(o, "truncated", e->truncated) &&
	    jsn_add_u64(o, "stdout_bytes", e->out[0].bytes) &&
	    jsn_add_u64(o, "stderr_bytes", e->out[1].bytes) &&
	    jsn_add_i64(o, "started_at", e->started_at_ms) &&
	    jsn_add_i64(o, "duration_ms", (end - e->start_ns) / 1000000) && add_asked(o, e))
		return o;
	cJSON_Delete(o);
	return NULL;
}
