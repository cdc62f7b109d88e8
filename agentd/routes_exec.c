/* SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "app.h"
#include "control.h"
#include "describe.h"
#include "exec.h"
#include "lib/jsn.h"

/* The native routes that answer at once: start, look, list, signal, forget. */

/* --- helpers --- */
static bool id_is_valid(const char *id)
{
	size_t n = strlen(id);

	return n > 0 && n <= LIMIT_ID &&
	       strspn(id, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-") == n;
}

/* The exec that R names; NULL when R has been answered. */
static struct exec *named(struct httpd_req *r)
{
	struct exec *e = exec_find(httpd_segment(r, 0));

	if (!e)
		httpd_reply_error(r, 404, "no such exec: %s", httpd_segment(r, 0));
	return e;
}

/* --- start --- */
/* FNV-1a, twice with different starts: tells a repeated request from another one. Not a defence;
 * the id is the caller's own. */
static void hash(const char *p, size_t n, uint64_t out[2])
{
	out[0] = 14695981039346656037ULL;
	out[1] = 1099511628211ULL ^ n;
	for (size_t i = 0; i < n; i++)
		for (int k = 0; k < 2; k++)
			out[k] = (out[k] ^ (unsigned char)p[i]) * 1099511628211ULL;
}

/* {"detail":…,"step":…,"errno":…}: 404 not found, 403 not executable, 400 working directory. */
static void refuse(struct httpd_req *r, enum proc_step step, const struct err *e)
{
	static const char names[][7] = {
		"fork", "setup", "limits", "user", "cwd", "setup", "exec"
	};
	int status = step == PROC_STEP_CWD ? 400 : err_http_status(e->code);
	cJSON *o = cJSON_CreateObject();

	if (step == PROC_STEP_EXEC && e->errnum == E2BIG)
		status = 400;
	if (o && (!jsn_add_text(o, "detail", e->msg, strlen(e->msg)) ||
		  !jsn_add_str(o, "step", names[step]) || !jsn_add_i64(o, "errno", e->errnum)))
		jsn_free(&o);
	httpd_reply_json(r, status, o);
}

/* It runs: its output as it comes, where that is asked for, else what it is. */
static void answer(struct httpd_req *r, int status, struct exec *e, const struct output_query *q)
{
	if (q->follow)
		output_begin(r, status, e, q);
	else
		httpd_reply_json(r, status, describe_exec(e));
}

static void start(struct httpd_req *r, const char *id, const char *body, size_t n,
		  const uint64_t request[2], const struct output_query *q)
{
	const struct app *a = httpd_server_arg(r);
	struct spec s = SPEC_INIT;
	struct err e = ERR_INIT;
	enum proc_step step;
	struct exec *x;

	if (spec_native(&s, body, n, a->env.vars, &e) < 0) {
		httpd_reply_error(r, err_http_status(e.code), "%s", e.msg);
	} else if (exec_start(&s, id, &x, &step, &e) < 0) {
		refuse(r, step, &e);
	} else {
		memcpy(x->request, request, sizeof(x->request));
		x->keep_ns = (int64_t)q->forget * (LIMIT_SECOND_NS / 2);
		describe_remember(x, &s);
		answer(r, 201, x, q);
	}
	spec_done(&s);
}

void route_exec_put(struct httpd_req *r)
{
	const char *id = httpd_segment(r, 0);
	struct exec *e = exec_find(id);
	struct output_query q;
	uint64_t request[2];
	size_t n;
	const char *body = httpd_body_data(r, &n);

	if (!id_is_valid(id)) {
		httpd_reply_error(r, 400, "an id is 1 to %d of A-Z a-z 0-9 _ -", LIMIT_ID);
		return;
	}
	if (!output_query(r, &q))
		return;
	q.offset = 0;
	q.greet = true;
	hash(body, n, request);
	if (e && !memcmp(e->request, request, sizeof(request)))
		answer(r, 200, e, &q);
	else if (e)
		httpd_reply_error(r, 409, "id %s is in use by another command", id);
	else if (app_admits(r))
		start(r, id, body, n, request, &q);
}

/* --- look --- */
void route_exec_get(struct httpd_req *r)
{
	struct exec *e = named(r);

	if (e)
		httpd_reply_json(r, 200, describe_exec(e));
}

void route_exec_list(struct httpd_req *r)
{
	cJSON *o = cJSON_CreateObject(), *list = cJSON_AddArrayToObject(o, "execs");

	for (struct exec *e = exec_next(NULL); e && list; e = exec_next(e)) {
		cJSON *d;

		if (exec_is_told(e))
			continue;
		d = describe_exec(e);
		if (!d || !cJSON_AddItemToArray(list, d)) {
			cJSON_Delete(d);
			list = NULL;
		}
	}
	if (!list)
		jsn_free(&o);
	httpd_reply_json(r, 200, o);
}

/* --- signal, forget --- */
void route_exec_signal(struct httpd_req *r)
{
	struct exec *x = named(r);
	struct err e = ERR_INIT;
	enum exec_to to = EXEC_TO_TREE;
	size_t n;
	const char *p = httpd_body_data(r, &n);
	AUTO_JSN *body = NULL;
	int sig, ret;

	if (!x)
		return;
	body = jsn_parse(p, n, &e);
	if (!cJSON_IsObject(body) || control_signal(body, &sig, &to, &e) < 0) {
		httpd_reply_error(r, 400, "%s", e.code ? e.msg : "the body must be a JSON object");
		return;
	}
	ret = control_send(x, sig, to);
	if (ret == -ESRCH)
		httpd_reply_error(r, 410, "the command has ended");
	else if (ret < 0)
		httpd_reply_error(r, 500, "signal: %s", strerror(-ret));
	else
		httpd_reply_json(r, 200, cJSON_CreateObject());
}

void route_exec_resize(struct httpd_req *r)
{
	struct exec *x = named(r);
	struct err e = ERR_INIT;
	size_t n;
	const char *p = httpd_body_data(r, &n);
	AUTO_JSN *body = NULL;
	uint16_t rows, cols;
	int ret;

	if (!x)
		return;
	rows = x->rows;
	cols = x->cols;
	body = jsn_parse(p, n, &e);
	if (!cJSON_IsObject(body) || spec_window(body, &rows, &cols, &e) < 0) {
		httpd_reply_error(r, 400, "%s", e.code ? e.msg : "the body must be a JSON object");
		return;
	}
	ret = exec_resize(x, rows, cols);
	if (ret == -ENOTTY)
		httpd_reply_error(r, 409, "the command has no terminal: start it with \"pty\"");
	else if (ret == -ESRCH)
		httpd_reply_error(r, 410, "the command has ended");
	else if (ret < 0)
		httpd_reply_error(r, 500, "resize: %s", strerror(-ret));
	else
		httpd_reply_json(r, 200, cJSON_CreateObject());
}

void route_exec_delete(struct httpd_req *r)
{
	struct exec *e = named(r);
	const char *kill = httpd_query(r, "kill");

	if (!e)
		return;
	/* A client that has seen the end tidies up; the server that its command started must
	 * survive that. */
	exec_forget(e, !kill || strcmp(kill, "1") != 0);
	httpd_reply_json(r, 200, cJSON_CreateObject());
}
