/* SPDX-License-Identifier: Apache-2.0 */
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host/mcp/tool.h"
#include "lib/fd.h"
#include "lib/loop.h"
#include "lib/str.h"

/* What a worker tells while it works: how far it is, and what people should know. All of it comes before its answer. */

/* --- progress --- */

void job_progress(struct mcp_job *j, double done, double total, const char *message)
{
	AUTO_JSN *p = cJSON_CreateObject();
	AUTO_BUF b;
	char *text;

	buf_init(&b, 64U << 10);
	if (!j->token)
		return;
	if (!(done > j->told)) /* it must rise with every notification, whatever there is to tell */
		done = j->told + 0.001;
	j->told = done;
	j->told_at = loop_now();
	if (!p || !cJSON_AddRawToObject(p, "progressToken", j->token) ||
	    !cJSON_AddNumberToObject(p, "progress", done) ||
	    (total > 0 && !cJSON_AddNumberToObject(p, "total", total)) ||
	    (message && !jsn_add_text(p, "message", message, strlen(message))))
		return;
	text = cJSON_PrintUnformatted(p);
	if (text &&
	    buf_addf(&b,
		     "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":%s}\n",
		     text) == 0)
		ignore_result(
			fd_write_all(j->out, b.p, b.len)); /* the server has gone, or soon has */
	free(text);
}

static bool is_due(const struct mcp_job *j, int64_t every_ns)
{
	return j->token && loop_now() - (j->told_at ? j->told_at : j->began) >= every_ns;
}

void job_bytes_done(struct mcp_job *j, uint64_t bytes, uint64_t total)
{
	if (is_due(j, JOB_OFTEN_NS) && (double)bytes > j->told)
		job_progress(j, (double)bytes, (double)total, NULL);
}

void job_elapsed(struct mcp_job *j, int64_t every_ns, const char *message)
{
	int64_t ms = (loop_now() - j->began) / 1000000;

	if (is_due(j, every_ns))
		job_progress(j, (double)ms / 1000, 0, message);
}

void job_pause(struct mcp_job *j, int64_t ns)
{
	int64_t until = loop_now() + ns, left;

	while ((left = until - loop_now()) > 0) {
		int64_t step = j->token && left > JOB_OFTEN_NS ? JOB_OFTEN_NS : left;

		(void)poll(NULL, 0, (int)((step + 999999) / 1000000));
		job_elapsed(j, JOB_SELDOM_NS, NULL);
	}
}

/* --- log messages --- */

static void add_log(const struct mcp_job *j, enum mcp_level level, unsigned once, const char *text)
{
	const char *name = j->args ? job_str(j, "name") : NULL;
	AUTO_JSN *o = cJSON_CreateObject();
	AUTO_BUF b;
	char *data;

	buf_init(&b, 16U << 10);
	if (!o || !jsn_add_text(o, "message", text, strlen(text)) ||
	    (name && !jsn_add_str(o, "sandbox", name)))
		return;
	data = cJSON_PrintUnformatted(o);
	if (data && buf_addf(&b, WORKER_LOG "%u%u%s\n", (unsigned)level, once, data) == 0)
		ignore_result(
			fd_write_all(j->out, b.p, b.len)); /* the server has gone, or soon has */
	free(data);
}

void job_log(const struct mcp_job *j, enum mcp_level level, const char *fmt, ...)
{
	char text[MCP_LOG_TEXT];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap); /* a cut message is fine */
	va_end(ap);
	add_log(j, level, 0, text);
}

void job_log_emulated(const struct mcp_job *j, const struct backend *b, const char *id)
{
	struct sandbox_info i;

	if (b == &backend_local && b->info(id, &i, NULL) == 0 && !strcmp(i.accel, "tcg"))
		add_log(j, MCP_LOG_WARNING, 1,
			"sandboxes are emulated here, because hardware virtualisation cannot be used: they are slower, and "
			"emulation is no security boundary (asb doctor tells why)");
}
