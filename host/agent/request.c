/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "host/agent/exec_int.h"
#include "lib/b64.h"
#include "lib/jsn.h"
#include "lib/str.h"

/* The body of PUT /v1/execs/{id}. It is made once: the agent takes the same bytes under the same id
 * as the same request. */

#define REQUEST_MAX (16U << 20)
#define TERM_MAX    64

static bool set_var(cJSON *j, const char *name, const char *value)
{
	cJSON_DeleteItemFromObjectCaseSensitive(j, name); /* the last one counts */
	return cJSON_AddStringToObject(j, name, value) != NULL;
}

/* The kind of our terminal, for a command that is shown on it. */
static bool add_term(const struct exec_spec *s, cJSON *j)
{
	const char *term = s->tty ? getenv("TERM") : NULL;

	if (!term || !*term || strlen(term) > TERM_MAX || !str_is_utf8(term, strlen(term)))
		return true;
	return set_var(j, "TERM", term);
}

static bool add_env(const struct exec_spec *s, cJSON *o)
{
	cJSON *j = cJSON_CreateObject();
	bool good = j && add_term(s, j);

	for (char *const *env = s->env; good && env && *env; env++) {
		const char *eq = strchr(*env, '=');
		AUTO_BUF key;

		buf_init(&key, REQUEST_MAX);
		good = eq && buf_add(&key, *env, (size_t)(eq - *env)) == 0 &&
		       set_var(j, key.p, eq + 1);
	}
	if (good && j->child)
		return cJSON_AddItemToObject(o, "env", j);
	cJSON_Delete(j);
	return good;
}

static bool add_pty(const struct exec_spec *s, cJSON *o)
{
	unsigned rows, cols;
	cJSON *j = s->tty ? cJSON_AddObjectToObject(o, "pty") : NULL;

	if (!s->tty)
		return true;
	return j && (!term_size(&rows, &cols) ||
		     (jsn_add_u64(j, "rows", rows) && jsn_add_u64(j, "cols", cols)));
}

static bool add_limits(const struct exec_spec *s, cJSON *o)
{
	cJSON *j;

	if (!s->memory && s->cpus <= 0 && !s->pids)
		return true;
	j = cJSON_AddObjectToObject(o, "limits");
	return j && (!s->memory || jsn_add_u64(j, "memory", s->memory)) &&
	       (s->cpus <= 0 || cJSON_AddNumberToObject(j, "cpus", s->cpus)) &&
	       (!s->pids || jsn_add_u64(j, "pids", s->pids));
}

static bool add_argv(const struct exec_spec *s, cJSON *o)
{
	cJSON *argv = cJSON_AddArrayToObject(o, "argv");

	for (unsigned i = 0; i < s->argc && argv; i++)
		if (!cJSON_AddItemToArray(argv, cJSON_CreateString(s->argv[i])))
			return false;
	return argv != NULL;
}

static bool add_input(const struct exec_spec *s, const void *input, size_t n, cJSON *o)
{
	char *text;
	bool good;

	if (!s->use_stdin || s->tty)
		return true;
	if (!input)
		return jsn_add_bool(o, "stdin", true);
	text = malloc(B64_LEN(n) + 1);
	if (!text)
		return false;
	b64_encode(input, n, text);
	good = jsn_add_str(o, "input", text);
	free(text);
	return good;
}

int request_build(const struct exec_spec *s, const void *input, size_t n, struct buf *b)
{
	AUTO_JSN *j = cJSON_CreateObject();
	uint64_t ms = ((uint64_t)s->timeout_ns + 999999) / 1000000;
	char *text;
	int r;

	buf_init(b, REQUEST_MAX);
	if (!j || !add_argv(s, j) || !add_env(s, j) || (s->cwd && !jsn_add_str(j, "cwd", s->cwd)) ||
	    (s->user && !jsn_add_str(j, "user", s->user)) ||
	    (s->seccomp && !jsn_add_str(j, "seccomp", s->seccomp)) || !add_input(s, input, n, j) ||
	    !add_pty(s, j) || !add_limits(s, j) ||
	    (s->timeout_ns && !jsn_add_u64(j, "timeout_ms", ms)))
		return -ENOMEM;
	text = cJSON_PrintUnformatted(j);
	if (!text)
		return -ENOMEM;
	r = buf_adds(b, text);
	cJSON_free(text);
	return r;
}
