/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "host/mcp/policy.h"
#include "lib/b64.h"
#include "lib/fd.h"
#include "lib/loop.h"
#include "lib/str.h"

/* What the tools have in common. */

#define TIMEOUT_MAX_S (7.0 * 86400)
#define END_NS	      (20 * 1000000000LL) /* more than the server gives it */
#define END_STEP_NS   (5 * 1000000)

static const cJSON *arg(const struct mcp_job *j, const char *name)
{
	return jsn_get(j->args, name);
}

const char *job_str(const struct mcp_job *j, const char *name)
{
	const cJSON *v = arg(j, name);

	return cJSON_IsString(v) ? v->valuestring : NULL;
}

int64_t job_int(const struct mcp_job *j, const char *name)
{
	return (int64_t)job_num(j, name);
}

double job_num(const struct mcp_job *j, const char *name)
{
	const cJSON *v = arg(j, name);

	return cJSON_IsNumber(v) ? v->valuedouble : 0;
}

bool job_bool(const struct mcp_job *j, const char *name)
{
	return cJSON_IsTrue(arg(j, name));
}

bool job_null(const struct mcp_job *j, const char *name)
{
	const cJSON *v = arg(j, name);

	return !v || cJSON_IsNull(v);
}

int job_fail(struct mcp_job *j, struct err *e, const char *code, const char *fmt, ...)
{
	char text[ERR_MSG_MAX];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap); /* a cut message is fine */
	va_end(ap);
	j->code = code;
	(void)err_set(e, ERR_INVALID, 0, "%s", text);
	return -EINVAL;
}

int job_bytes(struct mcp_job *j, const char *name, char **ret, size_t *ret_len, struct err *e)
{
	const char *text = job_str(j, name);
	char *raw = NULL;

	*ret_len = strlen(text);
	if (!strcmp(job_str(j, "encoding"), "base64")) {
		raw = malloc(*ret_len / 4 * 3 + 3);
		if (!raw)
			return -ENOMEM;
		if (b64_decode(text, *ret_len, raw, ret_len) < 0) {
			free(raw);
			return job_fail(j, e, "ValueError", "%s is not base64", name);
		}
	}
	*ret = raw;
	return 0;
}

int64_t job_timeout_ns(const struct mcp_job *j, const char *name)
{
	double s = job_num(j, name);

	if (!(s > 0)) /* NaN too */
		return j->cfg->default_ns;
	return (int64_t)((s < TIMEOUT_MAX_S ? s : TIMEOUT_MAX_S) * 1e9) + 1;
}

int job_find(struct mcp_job *j, struct core_named *ret, const char *code, struct err *e)
{
	const char *name = job_str(j, "name");
	int r = core_find(name, ret, e);

	if (r == -ENOENT) {
		j->code = code;
		(void)err_set(e, ERR_NOT_FOUND, 0, "no sandbox named '%.130s'", name);
	}
	return r;
}

int job_reach(struct mcp_job *j, struct core_named *ret, const char *code, struct err *e)
{
	int r = job_find(j, ret, code, e);

	if (r < 0)
		return r;
	r = policy_resume(j, ret, e);
	if (r == 0)
		r = core_wake(ret, e);
	if (r < 0)
		core_named_done(ret);
	else if (ret->woken)
		job_log(j, MCP_LOG_NOTICE, "'%s' was suspended, and has been resumed",
			ret->record.name);
	return r;
}

/* --- what goes on after its answer --- */

int job_keep(struct mcp_job *j, const cJSON *what, void (*after)(void *arg), void *arg)
{
	char *text = cJSON_PrintUnformatted(what);
	AUTO_BUF b;
	int r = text ? 0 : -ENOMEM;

	buf_init(&b, 64U << 10);
	if (r == 0)
		r = buf_addf(&b, WORKER_KEEP "%s\n", text);
	if (r == 0)
		r = fd_write_all(j->out, b.p, b.len);
	free(text);
	j->after = after;
	j->after_arg = arg;
	return r;
}

int job_end_kept(struct mcp_job *j, int pid)
{
	const struct timespec step = { 0, END_STEP_NS };
	int64_t until = loop_now() + END_NS;
	char line[40];
	int r = str_format(line, sizeof(line), WORKER_END "%d\n", pid);

	if (r == 0)
		r = fd_write_all(j->out, line, strlen(line));
	while (r == 0 && kill(pid, 0) == 0) { /* the server kills and reaps it */
		(void)nanosleep(&step, NULL);
		if (loop_now() > until)
			r = -ETIMEDOUT;
	}
	return r;
}

/* --- text --- */

bool job_add_capped(const struct mcp_job *j, cJSON *o, const char *name, const char *p, size_t n,
		    uint64_t total)
{
	size_t k = mcp_cut(p, n, job_cap(j));
	cJSON *t = cJSON_AddObjectToObject(o, name);

	if (k < total)
		job_log(j, MCP_LOG_WARNING, "%s was cut: %zu of %llu bytes are in the answer", name,
			k, (unsigned long long)total);
	if (!t || !jsn_add_text(t, "text", p ? p : "", k) ||
	    !jsn_add_bool(t, "truncated", k < total))
		return false;
	return k == total ||
	       (jsn_add_u64(t, "total_bytes", total) && jsn_add_u64(t, "returned_bytes", k));
}
