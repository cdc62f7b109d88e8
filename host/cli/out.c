/* SPDX-License-Identifier: Apache-2.0 */
#include "host/cli/out.h"

#include <cJSON.h>
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host/backend.h"
#include "lib/fd.h"
#include "lib/jsn.h"
#include "lib/pretty.h"
#include "lib/str.h"

/*
 * stdio is not used: a partly written buffer would be written again by a forked child, and errors
 * would come late. Each line is one write(2), so that two processes on one terminal do not mix
 * within a line.
 */

#define LINE_CAP (ERR_MSG_MAX * 2)
#define DOC_CAP	 (512U << 20)

static struct {
	bool json, quiet, verbose;
	bool rewrite;	 /* stderr is a terminal that can take a line back */
	bool line_shown; /* a progress line is on the screen */
	const char *what;
} out;

void out_init(const struct cli *c)
{
	const char *term = getenv("TERM"), *no_color = getenv("NO_COLOR");

	out.json = c->val[OPT_JSON].set;
	out.quiet = c->val[OPT_QUIET].set;
	out.verbose = c->val[OPT_VERBOSE].set;
	out.rewrite = isatty(STDERR_FILENO) && term && strcmp(term, "dumb") != 0 &&
		      !(no_color && *no_color);
}

bool out_json_wanted(void)
{
	return out.json;
}

void out_die_of_pipe(void)
{
	sigset_t set;

	(void)signal(SIGPIPE, SIG_DFL);
	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGPIPE);
	(void)sigprocmask(SIG_UNBLOCK, &set, NULL);
	(void)raise(SIGPIPE);
	_exit(128 + SIGPIPE);
}

int out_bytes(const void *p, size_t n)
{
	struct err e = ERR_INIT;
	int r = fd_write_all(STDOUT_FILENO, p, n);

	if (r == -EPIPE)
		out_die_of_pipe();
	if (r < 0) {
		(void)err_set(&e, ERR_IO, -r, "cannot write to standard output");
		out_error_line(&e, NULL);
	}
	return r;
}

int out_line(const char *fmt, ...)
{
	char line[LINE_CAP];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(line, sizeof(line) - 1, fmt, ap);
	va_end(ap);
	if (n < 0)
		return -EINVAL;
	if ((size_t)n > sizeof(line) - 2)
		n = (int)sizeof(line) - 2;
	line[n++] = '\n';
	return out_bytes(line, (size_t)n);
}

int out_doc(cJSON *j)
{
	AUTO_BUF b;
	int r;

	buf_init(&b, DOC_CAP);
	r = j ? pretty_json(j, &b) : -ENOMEM;
	cJSON_Delete(j);
	if (r < 0) {
		struct err e = ERR_INIT;

		(void)err_set(&e, ERR_INTERNAL, -r, "cannot print the JSON document");
		out_error_line(&e, NULL);
		return r;
	}
	return out_bytes(b.p, b.len);
}

void out_size(double bytes, char ret[static OUT_SIZE_LEN])
{
	static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
	size_t u = 0;

	for (; bytes >= 1024 && u + 1 < ARRAY_LEN(units); u++)
		bytes /= 1024;
	(void)snprintf(ret, OUT_SIZE_LEN, u ? "%.1f %s" : "%.0f %s", bytes, units[u]);
}

/* --- stderr --- */

/* TEXT may be a guest's: what its agent says, and names of its files. */
static void err_line(const char *prefix, const char *text)
{
	char line[LINE_CAP];
	size_t n;

	(void)snprintf(line, sizeof(line) - 1, "%s%s", prefix, text); /* cut is fine */
	str_clean(line);
	n = strlen(line);
	line[n++] = '\n';
	out_progress_end();
	ignore_result(fd_write_all(STDERR_FILENO, line, n)); /* nowhere to tell it */
}

void out_note(const char *fmt, ...)
{
	char text[ERR_MSG_MAX];
	va_list ap;

	if (out.quiet)
		return;
	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	err_line("asb: ", text);
}

void out_warn(const char *fmt, ...)
{
	char text[ERR_MSG_MAX];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	err_line("warning: ", text);
}

void out_log_line(const char *text)
{
	err_line("  ", text);
}

void out_error_line(const struct err *e, const char *hint)
{
	err_line("error: ", e->msg[0] ? e->msg : "unknown");
	if (hint)
		err_line("hint: ", hint);
}

cJSON *out_error_json(const struct err *e, const char *hint)
{
	AUTO_JSN *j = cJSON_CreateObject();
	cJSON *ret = j;

	if (!j || !jsn_add_str(j, "code", err_code_name(e->code)) ||
	    !jsn_add_text(j, "message", e->msg, strlen(e->msg)) || !jsn_add_str(j, "hint", hint))
		return NULL;
	j = NULL;
	return ret;
}

void out_error(const struct err *e, const char *hint)
{
	cJSON *j;

	out_error_line(e, hint);
	if (!out.json)
		return;
	j = cJSON_CreateObject();
	if (j && !cJSON_AddItemToObject(j, "error", out_error_json(e, hint))) {
		cJSON_Delete(j);
		j = NULL;
	}
	ignore_result(out_doc(j)); /* the exit status tells the failure in any case */
}

/* --- progress --- */

static void on_stage(void *arg, const char *stage, int64_t ms)
{
	char line[160];
	int n;

	(void)arg;
	if (out.verbose) {
		(void)snprintf(line, sizeof(line), "%.40s %lld ms", stage, (long long)ms);
		err_line("asb: ", line);
		return;
	}
	if (!out.rewrite || out.quiet)
		return;
	n = snprintf(line, sizeof(line), "\r\033[K%.60s: %.40s", out.what, stage);
	if (n > 0)
		ignore_result(fd_write_all(STDERR_FILENO, line, (size_t)n)); /* decoration */
	out.line_shown = true;
}

void out_progress(struct progress *ret, const char *what)
{
	out.what = what;
	*ret = (struct progress){ .fn = on_stage };
}

void out_progress_end(void)
{
	if (!out.line_shown)
		return;
	out.line_shown = false;
	ignore_result(fd_write_all(STDERR_FILENO, "\r\033[K", 4)); /* decoration */
}
