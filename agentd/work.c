/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "confine.h"
#include "fsop.h"
#include "lib/fd.h"
#include "lib/jsn.h"
#include "lib/loop.h"
#include "limits.h"
#include "worker.h"

/*
 * The worker's side. It may block: nothing but the answer to its one request waits for it. What it reads is hostile, so
 * it gives up what it does not need before the first byte. Its output is a pipe that agentd reads; when that is gone, so is
 * the worker (SIGPIPE, and the death signal).
 */

#define OOM_SCORE "500" /* before agentd, and before most of the workload */

static bool begun;

/* --- the answer --- */
static int say(cJSON *o)
{
	char *s = o ? cJSON_PrintUnformatted(o) : NULL;
	int r = s && strlen(s) < LIMIT_WORKER_HEAD - 1 ? 0 : -E2BIG;

	if (r == 0)
		r = fd_write_all(STDOUT_FILENO, s, strlen(s));
	if (r == 0)
		r = fd_write_all(STDOUT_FILENO, "\n", 1);
	cJSON_free(s);
	cJSON_Delete(o);
	return r;
}

int work_reply(int status, cJSON *o)
{
	if (!o)
		o = cJSON_CreateObject();
	if (begun || !o || !jsn_add_i64(o, "status", status)) {
		cJSON_Delete(o);
		return EXIT_FAILURE;
	}
	begun = true;
	return say(o) < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* Consumes O, which may hold further members. */
static int say_error(int status, int errnum, const char *text, cJSON *o)
{
	const char *name = errnum ? fsop_errno_name(errnum) : NULL;

	if (!o || !jsn_add_text(o, "detail", text, strlen(text)) ||
	    (name && !jsn_add_str(o, "errno", name))) {
		cJSON_Delete(o);
		return EXIT_FAILURE;
	}
	return work_reply(status ? status : fsop_status(errnum), o);
}

int work_error(int status, int errnum, const char *fmt, ...)
{
	char text[4096 + 512] = ""; /* a path and what went wrong with it */
	va_list ap;
	size_t n;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap); /* cut is fine */
	va_end(ap);
	n = strlen(text);
	if (errnum)
		(void)snprintf(text + n, sizeof(text) - n, ": %s", strerror(errnum));
	return say_error(status, errnum, text, cJSON_CreateObject());
}

int work_fail(const struct err *e, cJSON *o)
{
	return say_error(e->errnum ? 0 : err_http_status(e->code), e->errnum, e->msg,
			 o ? o : cJSON_CreateObject());
}

int work_begin(const char *content_type, int64_t length)
{
	cJSON *o = cJSON_CreateObject();

	if (begun || !o || !jsn_add_i64(o, "status", 200) ||
	    !jsn_add_str(o, "type", content_type) ||
	    (length >= 0 && !jsn_add_i64(o, "length", length))) {
		cJSON_Delete(o);
		return -EINVAL;
	}
	begun = true;
	return say(o);
}

int work_write(const void *p, size_t n)
{
	return fd_write_all(STDOUT_FILENO, p, n);
}

void work_alive(void)
{
	static int64_t last;
	int64_t now = loop_now();

	if (begun || now - last < LIMIT_WORKER_ALIVE_NS)
		return;
	last = now;
	ignore_result(fd_write_all(STDOUT_FILENO, "\n", 1)); /* a hint */
}

/* --- the process --- */
static void limit(int what, rlim_t most)
{
	struct rlimit l;

	if (getrlimit(what, &l) < 0)
		return;
	if (most < l.rlim_max)
		l.rlim_max = most;
	l.rlim_cur = l.rlim_max;
	(void)setrlimit(what, &l);
}

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/lsan_interface.h>

static bool confined;

/* The leak checker traces its own process at the end, which a worker may not. */
int __lsan_is_turned_off(void)
{
	return confined;
}

/* The sanitizer's shadow takes terabytes of addresses. */
static void limit_memory(void)
{
	confined = true;
}
#else
static void limit_memory(void)
{
	limit(RLIMIT_AS, LIMIT_WORKER_MEMORY);
}
#endif

static void give_up_privileges(void)
{
	fd_close_from(STDERR_FILENO + 1);
	limit_memory();
	limit(RLIMIT_CPU, LIMIT_WORKER_CPU_S);
	limit(RLIMIT_NOFILE, LIMIT_WORKER_FILES);
	limit(RLIMIT_CORE, 0);
	ignore_result(fd_write_str(AT_FDCWD, "/proc/self/oom_score_adj", OOM_SCORE)); /* a hint */
	(void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
}

int worker_main(int argc, char **argv)
{
	const char *verb = argc > 1 ? argv[1] : "";
	int r;

	give_up_privileges();
	r = confine_worker();
	if (r < 0 && r != -ENOSYS && r != -EINVAL) /* these: the kernel has no filters */
		return work_error(500, -r, "cannot confine the worker");
	for (const struct work_verb *v = work_verbs; v->name; v++)
		if (!strcmp(v->name, verb))
			return v->fn(argc - 2, argv + 2);
	return work_error(500, 0, "no such work: %s", verb);
}
