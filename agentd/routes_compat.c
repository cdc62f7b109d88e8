/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "app.h"
#include "exec.h"
#include "lib/jsn.h"
#include "lib/log.h"
#include "parts.h"
#include "pyval.h"

/*
 * POST /v1/exec. The command runs to its end, or to its time limit, whoever still listens: a client
 * that goes away cancels nothing, as in the original. The answer is written around the captured
 * bytes while it is sent (parts.c).
 *
 * The order of members is the original's first, then ours.
 */

#define SMALL_MAX 8192

struct job {
	struct httpd_req *r;	    /* NULL when the client has gone */
	bool running;		    /* the exec will still call on_done */
	char *head, *middle, *tail; /* owned: the text between the two outputs */
	struct buf out[2];
	struct parts body;
};

static void free_job(struct job *j)
{
	for (int i = 0; i < 2; i++)
		exec_capture_done(&j->out[i]);
	free(j->head);
	free(j->middle);
	free(j->tail);
	free(j);
}

/* The answer has been sent, or the client has gone. */
static void on_end(void *arg)
{
	struct job *j = arg;

	j->r = NULL;
	if (!j->running)
		free_job(j);
}

static ssize_t on_pull(void *arg, char *p, size_t max)
{
	struct job *j = arg;

	return parts_pull(&j->body, p, max);
}

static char *text(const char *fmt, ...) PRINTF(1, 2);

static char *text(const char *fmt, ...)
{
	va_list ap;
	char *s;
	int n;

	va_start(ap, fmt);
	n = vasprintf(&s, fmt, ap);
	va_end(ap);
	return n < 0 ? NULL : s;
}

static int compose(struct job *j, const struct exec *e)
{
	int sig = e->leader_ended ? e->signal : 9; /* killed, but the kernel still holds it */
	int64_t end = e->leader_ended ? e->end_ns : loop_now();
	char signal[16];

	(void)snprintf(signal, sizeof(signal), sig ? "%d" : "null", sig);
	j->head = text("{%s\"exit_code\":%d,\"stdout\":\"",
		       e->timed_out ? "\"detail\":\"command timed out\"," : "",
		       sig ? -sig : e->exit_code);
	j->middle = text("\",\"stderr\":\"");
	j->tail = text("\",\"encoding\":\"base64\",\"signal\":%s,\"timed_out\":%s,"
		       "\"oom\":%s,\"truncated\":%s,"
		       "\"duration_ms\":%lld}",
		       signal, e->timed_out ? "true" : "false", e->oom ? "true" : "false",
		       e->truncated ? "true" : "false", (long long)((end - e->start_ns) / 1000000));
	if (!j->head || !j->middle || !j->tail)
		return -ENOMEM;
	parts_text(&j->body, j->head, strlen(j->head));
	parts_base64(&j->body, j->out[0].p, j->out[0].len);
	parts_text(&j->body, j->middle, strlen(j->middle));
	parts_base64(&j->body, j->out[1].p, j->out[1].len);
	parts_text(&j->body, j->tail, strlen(j->tail));
	return 0;
}

/* A short answer goes out with its head in one packet. */
static void send_answer(struct job *j, int status)
{
	static char small[SMALL_MAX];
	int64_t n = parts_length(&j->body);

	if (n > SMALL_MAX)
		httpd_reply_stream(j->r, status, "application/json", n, on_pull, j);
	else if (parts_pull(&j->body, small, (size_t)n) == n)
		httpd_reply(j->r, status, "application/json", small, (size_t)n);
	else
		httpd_reply_error(j->r, 500, "the answer cannot be composed");
}

static void on_done(struct exec *e, void *arg)
{
	struct job *j = arg;

	j->running = false;
	if (!j->r) {
		free_job(j);
		return;
	}
	exec_take_capture(e, 0, &j->out[0]);
	exec_take_capture(e, 1, &j->out[1]);
	if (compose(j, e) < 0) {
		httpd_reply_error(j->r, 500, "out of memory");
		return;
	}
	send_answer(j, e->timed_out ? 504 : 200);
}

/* --- what cannot be started --- */
static void refuse_cwd(struct httpd_req *r, int errnum, const char *cwd)
{
	switch (errnum) {
	case ENOENT:
		httpd_reply_error(r, 400, "working directory not found: %s", cwd);
		break;
	case ENOTDIR:
		httpd_reply_error(r, 400, "working directory is not a directory: %s", cwd);
		break;
	default:
		httpd_reply_error(r, 400, "cannot enter working directory %s: %s", cwd,
				  strerror(errnum));
	}
}

static void refuse(struct httpd_req *r, const struct spec *s, enum proc_step step,
		   const struct err *e)
{
	if (step == PROC_STEP_CWD)
		refuse_cwd(r, e->errnum, s->cwd);
	else if (step == PROC_STEP_EXEC && e->errnum == ENOENT)
		httpd_reply_error(r, 400, "command not found: %s", s->argv[0]);
	else if (step == PROC_STEP_EXEC)
		httpd_reply_error(r, 400, "cannot execute %s: %s", s->argv[0], strerror(e->errnum));
	else
		httpd_reply_error(r, err_http_status(e->code), "%s", e->msg);
}

static void start(struct httpd_req *r, struct spec *s)
{
	struct err e = ERR_INIT;
	enum proc_step step;
	struct exec *x;
	struct job *j = calloc(1, sizeof(*j));

	if (!j) {
		httpd_reply_error(r, 503, "out of memory");
		return;
	}
	if (exec_start(s, NULL, &x, &step, &e) < 0) {
		free_job(j);
		refuse(r, s, step, &e);
		return;
	}
	j->r = r;
	j->running = true;
	x->on_done = on_done;
	x->done_arg = j;
	if (app_enter(r, on_end, j) < 0)
		j->r = NULL; /* answered; the command runs on for nobody */
}

void route_compat_exec(struct httpd_req *r)
{
	static const struct py_field fields[] = {
		{ "command", PY_STRING, true },
		{ "args", PY_STRINGS, false },
		{ "cwd", PY_STRING_OR_NULL, false },
		{ "env", PY_STRING_MAP_OR_NULL, false },
		{ "timeout", PY_NUMBER_OR_NULL, false },
		{ "stdin", PY_STRING_OR_NULL, false },
		{ NULL, PY_STRING, false },
	};
	const struct app *a = httpd_server_arg(r);
	struct spec s = SPEC_INIT;
	struct err e = ERR_INIT;
	cJSON *body;

	if (!app_admits(r))
		return;
	body = py_body(r, fields);
	if (!body)
		return;
	if (spec_compat(&s, body, a->env.vars, &e) < 0)
		httpd_reply_error(r, err_http_status(e.code), "%s", e.msg);
	else
		start(r, &s);
	spec_done(&s);
}
