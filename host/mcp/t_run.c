/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "host/cli/out.h"
#include "host/mcp/tools.h"
#include "lib/str.h"

/*
 * Commands that are waited for. What they print is kept up to the cap and counted behind it; a call that is cancelled kills
 * the command with everything it has started.
 *
 * The working directory, where none is given, is the server's. An image need not have it: when a command cannot start there,
 * it is made, and the command is tried once more.
 */

#define ENV_MAX	      1024
#define RUN_ENV_BYTES (1U << 20)

struct cmdline {
	char *const *argv;
	unsigned argc;
	char **words; /* owned: argv, of tools that take it; or NULL */
	char **env;   /* owned */
	char *cwd;    /* owned */
	bool own_cwd;
	int64_t timeout_ns;
	bool leave, detach, input;
};

struct ticking {
	struct mcp_job *j;
	uint64_t bytes; /* of output, told last */
};

static void free_env(char **env)
{
	for (char **p = env; p && *p; p++)
		free(*p);
	free(env);
}

static char **read_env(const cJSON *map)
{
	int n = cJSON_GetArraySize(map);
	char **env = n < ENV_MAX ? calloc((size_t)n + 1, sizeof(*env)) : NULL;
	const cJSON *v;
	size_t i = 0;
	AUTO_BUF b;

	buf_init(&b, RUN_ENV_BYTES);
	cJSON_ArrayForEach(v, map)
	{
		buf_clear(&b);
		if (!env || strchr(v->string, '=') ||
		    buf_addf(&b, "%s=%s", v->string, v->valuestring) < 0 ||
		    !(env[i++] = strdup(b.p))) {
			free_env(env);
			return NULL;
		}
	}
	return env;
}

static int prepare(struct mcp_job *j, struct cmdline *c, struct err *e)
{
	const char *cwd = job_str(j, "cwd");
	const cJSON *env = jsn_get(j->args, "env");

	c->timeout_ns = job_timeout_ns(j, "timeout");
	c->own_cwd = cwd != NULL;
	c->cwd = fs_path(j, cwd ? cwd : j->cfg->workdir);
	if (env && !cJSON_IsNull(env)) {
		c->env = read_env(env);
		if (!c->env)
			return job_fail(j, e, "ValueError",
					"env: at most %d variables, whose names have no '='",
					ENV_MAX - 1);
	}
	return c->cwd ? 0 : job_fail(j, e, "ValueError", "cwd is too long");
}

static void cmdline_done(struct cmdline *c)
{
	free(c->words);
	free_env(c->env);
	free(c->cwd);
}

/* Time and output so far: when there is more output, and now and then in any case, for clients that wait no longer than that. */
static void on_tick(void *arg, uint64_t bytes)
{
	struct ticking *t = arg;
	char size[OUT_SIZE_LEN], text[64];

	out_size((double)bytes, size);
	ignore_result(str_format(text, sizeof(text), "%s of output", size)); /* it fits */
	job_elapsed(t->j, bytes > t->bytes ? JOB_OFTEN_NS : JOB_SELDOM_NS, text);
	t->bytes = bytes;
}

static int run_once(struct mcp_job *j, const struct core_named *n, const struct cmdline *c,
		    struct exec_result *res, struct err *e)
{
	struct ticking tick = { .j = j };
	struct exec_spec s = { .backend = n->backend,
			       .id = n->record.microvm_id,
			       .argv = c->argv,
			       .argc = c->argc,
			       .env = c->env,
			       .cwd = c->cwd,
			       .timeout_ns = c->timeout_ns,
			       .capture = true,
			       .capture_max =
				       job_cap(j) + 4, /* so that what is cut is seen to be cut */
			       .kill = true,
			       .detach = c->detach,
			       .use_stdin = c->input,
			       .leave = c->leave,
			       .tick = j->token ? on_tick : NULL,
			       .tick_arg = &tick };

	return exec_run(&s, res, e);
}

static int run(struct mcp_job *j, const struct core_named *n, const struct cmdline *c,
	       struct exec_result *res, struct err *e)
{
	int r = run_once(j, n, c, res, e);

	if (r == 0 || c->own_cwd || e->code != ERR_INVALID || !fs_make_workdir(j, n))
		return r;
	exec_result_done(res);
	*e = (struct err)ERR_INIT;
	return run_once(j, n, c, res, e);
}

/* --- what is told --- */

static int status_of(const struct exec_result *res)
{
	return res->end == EXEC_NO_COMMAND	 ? 127
	       : res->end == EXEC_NOT_EXECUTABLE ? 126
	       : res->signal			 ? 128 + res->signal
						 : res->exit_code;
}

static bool add_outputs(const struct mcp_job *j, cJSON *o, const struct exec_result *res)
{
	static const char *const names[] = { "stdout", "stderr" };

	for (int i = 0; i < 2; i++)
		if (!job_add_capped(j, o, names[i], res->output[i].p, res->output[i].len,
				    res->total[i]))
			return false;
	return true;
}

/* A command that never ran: why, where a shell would say it. */
static bool add_complaint(const struct mcp_job *j, cJSON *o, const struct err *e)
{
	return job_add_capped(j, o, "stdout", "", 0, 0) &&
	       job_add_capped(j, o, "stderr", e->msg, strlen(e->msg), strlen(e->msg));
}

static int told(struct mcp_job *j, const struct exec_result *res, struct err *e)
{
	bool ran = res->end == EXEC_ENDED;
	int status = status_of(res);
	cJSON *o = j->data;

	if (res->oom)
		job_log(j, MCP_LOG_WARNING,
			"a command was killed because it wanted too much memory");
	if (res->lost)
		job_log(j, MCP_LOG_WARNING,
			"%llu bytes of output are lost: they were not fetched in time",
			(unsigned long long)res->lost);
	if (res->end == EXEC_TIMED_OUT) {
		job_log(j, MCP_LOG_WARNING, "a command was killed after its timeout");
		j->extra = o = cJSON_CreateObject();
		return o && add_outputs(j, o, res)
			       ? job_fail(j, e, "timeout",
					  "the command was killed after its timeout")
			       : -ENOMEM;
	}
	if (!ran && res->end != EXEC_NO_COMMAND && res->end != EXEC_NOT_EXECUTABLE)
		return job_fail(j, e, "cancelled", "the command was killed");
	if (!jsn_add_u64(o, "exit_code", (uint64_t)status) ||
	    !jsn_add_bool(o, "success", status == 0) ||
	    !(ran ? add_outputs(j, o, res) : add_complaint(j, o, e)) ||
	    !(res->signal ? jsn_add_u64(o, "signal", (uint64_t)res->signal)
			  : jsn_add_str(o, "signal", NULL)) ||
	    !jsn_add_bool(o, "oom", res->oom) || !jsn_add_u64(o, "lost_bytes", res->lost) ||
	    !jsn_add_i64(o, "duration_ms", res->duration_ms))
		return -ENOMEM;
	return 0;
}

static int run_and_tell(struct mcp_job *j, const struct core_named *n, struct cmdline *c,
			struct err *e)
{
	struct exec_result res;
	int r = run(j, n, c, &res, e);

	if (r == 0)
		r = told(j, &res, e);
	exec_result_done(&res);
	return r;
}

/* COMMAND through the image's bash, as a login shell; without one, through its sh. */
static int run_shell(struct mcp_job *j, const struct core_named *n, struct cmdline *c,
		     struct err *e)
{
	static char bash[] = "bash", login[] = "-lc", sh[] = "/bin/sh", plain[] = "-c";
	char *text = strdup(job_str(j, "command"));
	char *words[] = { bash, login, text, NULL };
	struct exec_result res;
	int r;

	if (!text)
		return -ENOMEM;
	c->argv = words;
	c->argc = 3;
	r = run(j, n, c, &res, e);
	if (r == 0 && res.end == EXEC_NO_COMMAND) {
		words[0] = sh;
		words[1] = plain;
		exec_result_done(&res);
		*e = (struct err)ERR_INIT;
		r = run(j, n, c, &res, e);
	}
	if (r == 0)
		r = told(j, &res, e);
	exec_result_done(&res);
	c->argv = NULL;
	free(text);
	return r;
}

/* --- the tools --- */

/* "command" and "args" into C, beside what prepare() does; the strings are the arguments'. */
static int prepare_argv(struct mcp_job *j, struct cmdline *c, struct err *e)
{
	const cJSON *args = jsn_get(j->args, "args"), *x;

	c->words = calloc((size_t)cJSON_GetArraySize(args) + 2, sizeof(*c->words));
	if (!c->words)
		return -ENOMEM;
	c->argv = c->words;
	c->words[c->argc++] = jsn_get(j->args, "command")->valuestring;
	cJSON_ArrayForEach(x, args)
	{
		c->words[c->argc++] = x->valuestring;
	}
	return prepare(j, c, e);
}

int tool_exec(struct mcp_job *j, struct err *e)
{
	struct cmdline c = { .argc = 0 };
	struct core_named box;
	int r = prepare_argv(j, &c, e);

	if (r == 0)
		r = job_reach(j, &box, "SandboxError", e);
	if (r == 0) {
		r = run_and_tell(j, &box, &c, e);
		core_named_done(&box);
	}
	cmdline_done(&c);
	return r;
}

/* A command that runs on: t_session.c has the rest. */
int tool_exec_start(struct mcp_job *j, struct err *e)
{
	struct cmdline c = { .detach = true, .input = job_bool(j, "stdin") };
	struct exec_result res;
	struct core_named box;
	int r = prepare_argv(j, &c, e);

	c.timeout_ns = job_num(j, "timeout") > 0
			       ? c.timeout_ns
			       : 0; /* none by default: it is waited for by nobody */
	if (r == 0)
		r = job_reach(j, &box, "SandboxError", e);
	if (r == 0) {
		r = run(j, &box, &c, &res, e);
		if (r == 0 && res.end != EXEC_DETACHED)
			r = job_fail(j, e,
				     res.end == EXEC_NO_COMMAND ? "not_found" : "SandboxError",
				     "%s", e->msg[0] ? e->msg : "the command was not started");
		if (r == 0 && (!jsn_add_str(j->data, "name", box.record.name) ||
			       !jsn_add_str(j->data, "session", res.id)))
			r = -ENOMEM;
		exec_result_done(&res);
		core_named_done(&box);
	}
	cmdline_done(&c);
	return r;
}

int tool_shell(struct mcp_job *j, struct err *e)
{
	struct cmdline c = { .leave = false };
	struct core_named box;
	int r = prepare(j, &c, e);

	if (r == 0)
		r = job_reach(j, &box, "SandboxError", e);
	if (r == 0) {
		r = run_shell(j, &box, &c, e);
		core_named_done(&box);
	}
	cmdline_done(&c);
	return r;
}

/* The sandbox is never kept: it ends with this process, however that ends. */
int tool_run(struct mcp_job *j, struct err *e)
{
	struct sandbox_spec s = { .cpus = 1, .memory_mib = 512, .ephemeral = true };
	struct cmdline c = { .leave = true };
	char name[SANDBOX_NAME_MAX + 1], hex[SANDBOX_NAME_MAX + 1];
	const struct backend *b;
	struct core_made m;
	int r = prepare(j, &c, e);

	if (r == 0)
		r = core_run_name(hex, e);
	if (r == 0)
		r = str_format(name, sizeof(name), "mcp-run-%s", strrchr(hex, '-') + 1);
	s.name = name;
	if (r == 0)
		r = life_spec(j, &s, &b, e);
	if (r == 0)
		r = core_create(b, &s, &j->progress, LIFE_START_NS, &m, e);
	if (r == 0) {
		struct core_named n = { .record = { .name = m.name, .microvm_id = m.id },
					.backend = b,
					.hold = -1 };
		struct err gone = ERR_INIT;

		job_log(j, MCP_LOG_DEBUG, "created '%s' (%s) from %s for one command", m.name, m.id,
			s.image);
		job_log_emulated(j, b, m.id);
		r = run_shell(j, &n, &c, e);
		if (r == 0 && !jsn_add_str(j->data, "microvm_id", m.id))
			r = -ENOMEM;
		if (core_drop(&m, &gone) == 0)
			job_log(j, MCP_LOG_DEBUG, "removed '%s'", name);
		else /* its supervisor ends it in any case */
			job_log(j, MCP_LOG_WARNING, "'%s' could not be removed at once: %s", name,
				gone.msg);
	}
	cmdline_done(&c);
	return r;
}
