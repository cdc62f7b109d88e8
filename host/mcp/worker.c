/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "host/mcp/args.h"
#include "host/mcp/schema.h"
#include "host/mcp/server.h"
#include "lib/fd.h"
#include "lib/pretty.h"

/*
 * A worker: the copy of the server that does one call. It has none of the server's descriptors, gets SIGTERM when the server
 * dies, and leaves by _exit, so that nothing of the server's memory is flushed or released twice.
 *
 * SIGTERM, SIGINT and SIGHUP are blocked, as in the server, for tools that look for them where something has to be undone
 * (MCP_CAREFUL). The others may end at any time: they are unblocked and kill.
 */

#define WORKER_FD 3

static void isolate(int out)
{
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

	(void)prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (null >= 0)
		(void)dup2(null, STDIN_FILENO);
	if (out != WORKER_FD && dup3(out, WORKER_FD, O_CLOEXEC) < 0)
		_exit(1);
	fd_close_from(WORKER_FD + 1);
}

static void unblock(void)
{
	sigset_t set;

	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGTERM);
	(void)sigaddset(&set, SIGINT);
	(void)sigaddset(&set, SIGHUP);
	(void)sigprocmask(SIG_UNBLOCK, &set, NULL);
}

/* --- answers --- */

NORETURN static void send_and_exit(struct buf *b)
{
	_exit(fd_write_all(WORKER_FD, b->p, b->len) < 0);
}

NORETURN static void refuse(const struct mcp_call *c, enum rpc_error code, const char *text)
{
	AUTO_BUF b;

	buf_init(&b, 64U << 10);
	if (rpc_error(&b, c->id, code, text, NULL) < 0)
		_exit(1);
	send_and_exit(&b);
}

/* RESULT is an object; the members of newer revisions come along where C wants them. */
static void send_answer(const struct mcp_call *c, const cJSON *result)
{
	char *text = cJSON_PrintUnformatted(result);
	size_t n = text ? strlen(text) : 0;
	AUTO_BUF b;

	buf_init(&b, MCP_RESULT_MAX);
	if (n < 2)
		refuse(c, RPC_INTERNAL, "no memory");
	text[n - 1] = '\0'; /* its "}" */
	if (buf_addf(&b, "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":", c->id) < 0 ||
	    buf_adds(&b, text) < 0 ||
	    (c->modern && buf_addf(&b, "%s%s", n > 2 ? "," : "", listing_modern()) < 0) ||
	    buf_adds(&b, "}}\n") < 0)
		refuse(c, RPC_INTERNAL, "the answer is too big");
	if (fd_write_all(WORKER_FD, b.p, b.len) < 0)
		_exit(1);
	free(text);
}

NORETURN static void answer(const struct mcp_call *c, const cJSON *result)
{
	send_answer(c, result);
	_exit(0);
}

static bool add_content(cJSON *result, const char *text)
{
	cJSON *list = cJSON_AddArrayToObject(result, "content"), *o = cJSON_CreateObject();

	return list && o && cJSON_AddItemToArray(list, o) && jsn_add_str(o, "type", "text") &&
	       jsn_add_str(o, "text", text);
}

/* --- a tool --- */

static cJSON *envelope(struct mcp_job *j, int r, const struct err *e)
{
	cJSON *o = cJSON_CreateObject(), *error;
	const char *message = e->msg[0] ? e->msg : strerror(-r);

	if (r >= 0) {
		if (o && jsn_add_bool(o, "ok", true) && cJSON_AddItemToObject(o, "data", j->data))
			return o;
		return NULL;
	}
	error = j->extra ? j->extra : cJSON_CreateObject();
	if (o && error && jsn_add_bool(o, "ok", false) &&
	    cJSON_AddItemToObject(o, "error", error) &&
	    jsn_add_str(error, "code", j->code ? j->code : err_code_name(e->code)) &&
	    jsn_add_text(error, "message", message, strlen(message)))
		return o;
	return NULL;
}

NORETURN static void answer_tool(const struct mcp_call *c, struct mcp_job *j, int r,
				 const struct err *e)
{
	cJSON *result = cJSON_CreateObject(), *o = envelope(j, r, e);
	AUTO_BUF text;

	buf_init(&text, MCP_RESULT_MAX);
	if (!result || !o || pretty_json(o, &text) < 0)
		refuse(c, RPC_INTERNAL, "no memory");
	text.p[text.len - 1] = '\0'; /* the newline */
	if (!add_content(result, text.p) ||
	    !cJSON_AddItemToObject(result, "structuredContent", o) ||
	    !jsn_add_bool(result, "isError", false))
		refuse(c, RPC_INTERNAL, "no memory");
	buf_done(&text);
	backend_listen(NULL, NULL); /* nothing comes after the answer */
	backend_on_turn(NULL, NULL);
	send_answer(c, result);
	cJSON_Delete(result);
	if (r >= 0 && j->after) {
		(void)close(WORKER_FD);
		j->after(j->after_arg);
	}
	_exit(0);
}

NORETURN static void answer_wrong(const struct mcp_call *c, const char *text)
{
	cJSON *result = cJSON_CreateObject();

	if (!result || !add_content(result, text) || !jsn_add_bool(result, "isError", true))
		refuse(c, RPC_INTERNAL, "no memory");
	answer(c, result);
}

static char *progress_token(const struct mcp_call *c)
{
	const cJSON *meta = c->msg.params ? jsn_get(c->msg.params, "_meta") : NULL;
	const cJSON *token = cJSON_IsObject(meta) ? jsn_get(meta, "progressToken") : NULL;

	return cJSON_IsString(token) || cJSON_IsNumber(token) ? cJSON_PrintUnformatted(token)
							      : NULL;
}

static void on_told(void *job, const char *text)
{
	job_log(job, MCP_LOG_NOTICE, "%s", text);
}

/* What a backend tells while a sandbox starts. */
static void on_stage(void *arg, const char *stage, int64_t ms)
{
	job_progress(arg, (double)ms / 1000, 0, stage);
}

/* What a guest, a file or AWS says in it may be of another type than it should. */
static int check_data(const struct mcp_job *j, struct err *e)
{
	AUTO_JSN *schema = schema_of(j->tool->result);

	if (!schema)
		return -ENOMEM;
	if (schema_fits(schema, j->data))
		return 0;
	return err_set(
		e, ERR_INTERNAL, 0,
		"what there is to answer is not as the outputSchema of %s says: the sandbox's agent may be of "
		"another version",
		j->tool->name);
}

/* A backend waits. */
static void on_turn(void *job)
{
	job_elapsed(job, JOB_SELDOM_NS, NULL);
}

NORETURN static void run_tool(const struct mcp_call *c, struct mcp_job *j)
{
	const cJSON *given = jsn_get(c->msg.params, "arguments");
	struct err e = ERR_INIT;
	cJSON *args = NULL;
	AUTO_BUF why;
	int r;

	buf_init(&why, 64U << 10);
	j->tool = mcp_tool_find(
		jsn_get(c->msg.params, "name")->valuestring); /* the server has looked */
	if (given && !cJSON_IsObject(given) && !cJSON_IsNull(given))
		refuse(c, RPC_INVALID_PARAMS, "arguments must be an object");
	r = args_read(j->tool, cJSON_IsObject(given) ? given : NULL, &args, &why);
	if (r == -EINVAL)
		answer_wrong(c, why.p);
	if (r < 0)
		refuse(c, RPC_INTERNAL, "no memory");
	j->args = args;
	if (!(j->tool->flags & MCP_CAREFUL))
		unblock();
	r = j->tool->run(j, &e);
	if (r >= 0)
		r = check_data(j, &e);
	job_log(j, MCP_LOG_DEBUG, "%s after %lld ms",
		r >= 0	  ? "done"
		: j->code ? j->code
			  : err_code_name(e.code),
		(long long)(loop_now() - j->began) / 1000000);
	answer_tool(c, j, r, &e);
}

NORETURN static void run_resource(const struct mcp_call *c, struct mcp_job *j)
{
	bool list = !strcmp(c->msg.method, "resources/list");
	const char *uri =
		list ? NULL
		     : jsn_get(c->msg.params, "uri")->valuestring; /* the server has looked */
	cJSON *result = cJSON_CreateObject();
	struct err e = ERR_INIT;
	int r;

	unblock();
	r = result ? resource_read(j, uri, result, &e) : -ENOMEM;
	if (r == -ENOENT)
		refuse(c, c->modern ? RPC_INVALID_PARAMS : RPC_NO_RESOURCE, e.msg);
	if (r < 0)
		refuse(c, RPC_INTERNAL, e.msg[0] ? e.msg : strerror(-r));
	if (c->modern &&
	    (!jsn_add_u64(result, "ttlMs", 0) || !jsn_add_str(result, "cacheScope", "private")))
		refuse(c, RPC_INTERNAL, "no memory");
	answer(c, result);
}

/* What earlier calls go on as; NULL: memory. */
static cJSON *kept_calls(const struct mcp_server *s)
{
	cJSON *all = cJSON_CreateArray();

	for (const struct mcp_call *c = s->calls; c && all; c = c->next) {
		cJSON *o = c->kept && !c->cancelled && !c->dead ? cJSON_Parse(c->kept) : NULL;

		if (o &&
		    (!cJSON_AddNumberToObject(o, "pid", c->pid) || !cJSON_AddItemToArray(all, o)))
			cJSON_Delete(o);
	}
	return all;
}

void worker_run(const struct mcp_call *c, int out)
{
	struct mcp_job j = { .cfg = c->s->cfg, .out = WORKER_FD, .data = cJSON_CreateObject() };

	j.began = loop_now();
	isolate(out);
	j.kept = kept_calls(c->s);
	if (!j.data || !j.kept)
		_exit(1);
	j.token = progress_token(c);
	backend_listen(on_told, &j);
	backend_on_turn(on_turn, &j);
	j.progress.fn = on_stage;
	j.progress.arg = &j;
	if (!strcmp(c->msg.method, "tools/call"))
		run_tool(c, &j);
	else
		run_resource(c, &j);
}
