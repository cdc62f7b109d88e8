/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>

#include "host/agent/ask.h"
#include "host/agent/stream.h"
#include "host/cli/since.h"
#include "host/mcp/tools.h"
#include "lib/fd.h"
#include "lib/line.h"
#include "lib/loop.h"
#include "lib/str.h"

/* What goes on in a sandbox: its log, its metrics, changes of its files. */

#define LOG_MAX	    (64U << 20)
#define STEP_MS	    100
#define ASK_MS	    2000 /* where each look is a request */
#define EVENTS_MAX  10000
#define STAMP_BYTES 27 /* of a line's time, without the space behind it */

/* --- the log --- */

/* A place in the log: the time of the last line that was told, and how many lines of that time were. "TIME/N". */
struct cursor {
	char stamp[STAMP_BYTES + 1];
	unsigned n;
};

static bool parse_cursor(const char *s, struct cursor *c)
{
	const char *slash = strchr(s, '/');
	uint64_t n;

	*c = (struct cursor){ .n = 0 };
	if (!slash || slash - s != STAMP_BYTES || str_to_u64(slash + 1, 0, 1U << 20, &n) < 0)
		return false;
	memcpy(c->stamp, s, STAMP_BYTES);
	c->n = (unsigned)n;
	return true;
}

struct lines {
	const char *grep;  /* NULL = all */
	int64_t since;	   /* Unix time in ns */
	struct cursor at;  /* lines up to here are known */
	struct cursor now; /* of the last line seen */
	struct buf text;   /* lines that are wanted */
	uint64_t count;
	uint64_t tail; /* what comes before the last TAIL lines is not asked for */
	bool asked;    /* each look is a request */
};

static int add_line(struct lines *l, const char *p, size_t n)
{
	char stamp[STAMP_BYTES + 1] = "";
	int64_t when = 0;
	int order;

	if (n > STAMP_BYTES && since_stamp(p, n, &when))
		memcpy(stamp, p, STAMP_BYTES);
	order = strcmp(stamp, l->now.stamp);
	if (order > 0)
		l->now = (struct cursor){ .n = 0 };
	if (order > 0)
		memcpy(l->now.stamp, stamp, sizeof(stamp));
	l->now.n++;
	if (when && when < l->since)
		return 0;
	order = strcmp(l->now.stamp, l->at.stamp);
	if (l->at.stamp[0] && (order < 0 || (order == 0 && l->now.n <= l->at.n)))
		return 0;
	if (l->grep && !memmem(p, n, l->grep, strlen(l->grep)))
		return 0;
	l->count++;
	return buf_add(&l->text, p, n);
}

static int read_log(struct mcp_job *j, const struct core_named *n, struct lines *l, struct err *e)
{
	struct log_wish w = { .since_ns = l->since,
			      .tail = l->tail,
			      .group = job_str(j, "log_group") };
	struct backend_log log = BACKEND_LOG_NONE;
	AUTO_BUF all;
	int r;

	buf_init(&all, LOG_MAX);
	if (!n->backend->open_log)
		return job_unsupported(n->backend, "logs", e);
	if (l->at.stamp[0]) /* the lines of that moment are counted */
		ignore_result(since_parse(l->at.stamp, 0, &w.since_ns));
	r = n->backend->open_log(n->record.microvm_id, &w, &log, e);
	if (r == -ENOENT || r == -ENODATA)
		j->code = "not_found";
	if (r == -ENOENT)
		return err_set(e, ERR_NOT_FOUND, 0, "there is no log of '%s'", n->record.name);
	if (r == 0)
		r = fd_read_all(log.fd, &all);
	l->asked = log.more != NULL;
	backend_log_done(&log);
	for (size_t at = 0; r == 0 && at < all.len;) {
		const char *p = all.p + at, *nl = memchr(p, '\n', all.len - at);

		if (!nl)
			break; /* not whole yet */
		r = add_line(l, p, (size_t)(nl - p) + 1);
		at += (size_t)(nl - p) + 1;
	}
	return r < 0 && !e->code ? err_set(e, ERR_IO, -r, "reading the log") : r;
}

/* Leaves the last N lines. */
static void last_lines(struct lines *l, uint64_t n)
{
	size_t at = l->text.len;

	if (l->count <= n)
		return;
	l->count = n;
	for (n++; at > 0; at--)
		if (l->text.p[at - 1] == '\n' && --n == 0)
			break;
	buf_drop(&l->text, at);
}

static int tell_log(struct mcp_job *j, const struct lines *l)
{
	return jsn_add_str(j->data, "log_group", job_str(j, "log_group")) &&
			       jsn_add_u64(j->data, "count", l->count) &&
			       job_add_capped(j, j->data, "logs", l->text.p, l->text.len,
					      l->text.len)
		       ? 0
		       : -ENOMEM;
}

static int64_t unix_now(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_REALTIME, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

int tool_logs_read(struct mcp_job *j, struct err *e)
{
	struct lines l = { .grep = job_str(j, "grep"), .since = INT64_MIN, .tail = UINT64_MAX };
	int64_t tail = job_int(j, "tail");
	struct core_named n;
	int r;

	if (!job_null(j, "since_minutes"))
		l.since = unix_now() - (int64_t)(job_num(j, "since_minutes") * 60e9);
	r = job_find(j, &n, "not_found", e);
	if (r < 0)
		return r;
	tail = tail < 1 ? 1 : tail > 10000 ? 10000 : tail;
	if (!l.grep)
		l.tail = (uint64_t)tail;
	buf_init(&l.text, LOG_MAX);
	r = read_log(j, &n, &l, e);
	last_lines(&l, (uint64_t)tail);
	if (r == 0)
		r = tell_log(j, &l);
	core_named_done(&n);
	buf_done(&l.text);
	return r;
}

int tool_logs_stream(struct mcp_job *j, struct err *e)
{
	const char *from = job_str(j, "cursor");
	double wait = job_num(j, "follow_timeout_ms");
	int64_t until = loop_now() + (int64_t)((wait > 60000 ? 60000 : wait > 0 ? wait : 0) * 1e6);
	struct lines l = { .since = INT64_MIN, .tail = UINT64_MAX };
	char cursor[STAMP_BYTES + 24] = "";
	struct core_named n;
	int r;

	if (!from)
		l.since = unix_now() - 60LL * 1000000000;
	else if (!parse_cursor(from, &l.at))
		return job_fail(j, e, "ValueError", "cursor is not one of this tool");
	r = job_find(j, &n, "not_found", e);
	if (r < 0)
		return r;
	buf_init(&l.text, LOG_MAX);
	while ((r = read_log(j, &n, &l, e)) == 0 && l.count == 0 && loop_now() < until) {
		job_pause(j, (l.asked ? ASK_MS : STEP_MS) * 1000000LL);
		l.now = (struct cursor){ .n = 0 };
	}
	if (l.now.stamp[0])
		ignore_result(str_format(cursor, sizeof(cursor), "%s/%u", l.now.stamp,
					 l.now.n)); /* it fits */
	if (r == 0)
		r = tell_log(j, &l);
	if (r == 0 && !jsn_add_str(j->data, "cursor", cursor[0] ? cursor : from))
		r = -ENOMEM;
	core_named_done(&n);
	buf_done(&l.text);
	return r;
}

/* --- metrics --- */

static int ask_metrics(const struct core_named *n, cJSON **ret, struct err *e)
{
	struct ask a = { .backend = n->backend,
			 .id = n->record.microvm_id,
			 .method = "GET",
			 .path = "/v1/metrics?format=json" };

	return agent_ask(&a, ret, e);
}

static double part(const cJSON *doc, const char *group, const char *name)
{
	const cJSON *o = jsn_get(doc, group), *v = cJSON_IsObject(o) ? jsn_get(o, name) : NULL;

	return v && cJSON_IsNumber(v) && isfinite(v->valuedouble) && v->valuedouble >= 0
		       ? v->valuedouble
		       : -1;
}

static bool add_percent(cJSON *o, const char *name, double v)
{
	if (v < 0)
		return cJSON_AddNullToObject(o, name) != NULL;
	return cJSON_AddNumberToObject(o, name, round(v * 100) / 100) != NULL;
}

/* The two numbers that the Python project has, from DOC, the agent's. */
static bool add_two(cJSON *to, const cJSON *doc)
{
	cJSON *o = cJSON_AddObjectToObject(to, "metrics");
	double used = part(doc, "memory", "used"), total = part(doc, "memory", "total");

	return o && add_percent(o, "CPUUtilization", part(doc, "cpu", "percent")) &&
	       add_percent(o, "MemoryUtilization",
			   used >= 0 && total > 0 ? used / total * 100 : -1);
}

int tool_metrics(struct mcp_job *j, struct err *e)
{
	struct core_named n;
	AUTO_JSN *doc = NULL;
	int r = job_reach(j, &n, "not_found", e);

	if (r < 0)
		return r;
	r = ask_metrics(&n, &doc, e);
	if (r == 0 &&
	    (!jsn_add_str(j->data, "name", n.record.name) ||
	     !jsn_add_str(j->data, "microvm_id", n.record.microvm_id) || !add_two(j->data, doc)))
		r = -ENOMEM;
	if (r == 0) {
		r = cJSON_AddItemToObject(j->data, "live", doc) ? 0 : -ENOMEM;
		doc = NULL;
	}
	core_named_done(&n);
	return r;
}

/* Of one sandbox, which is not woken up for it. */
static int add_metrics(void *list, const struct state_record *rec)
{
	struct core_named n = { .backend = backend_of_id(rec->microvm_id),
				.record = *rec,
				.hold = -1 };
	cJSON *o = cJSON_CreateObject();
	AUTO_JSN *doc = NULL;
	struct sandbox_info i;
	struct err e = ERR_INIT;
	int r;

	if (!o || !cJSON_AddItemToArray(list, o) || !jsn_add_str(o, "name", rec->name) ||
	    !jsn_add_str(o, "microvm_id", rec->microvm_id))
		return -ENOMEM;
	r = n.backend->info(rec->microvm_id, &i, &e);
	if (r == 0 && i.state != SANDBOX_RUNNING)
		r = err_set(&e, ERR_UNAVAILABLE, 0, "it is %s", sandbox_state_name(i.state));
	if (r == 0)
		r = ask_metrics(&n, &doc, &e);
	if (r == 0)
		return add_two(o, doc) ? 0 : -ENOMEM;
	return jsn_add_str(o, "error", e.msg[0] ? e.msg : "there is no machine behind it")
		       ? 0
		       : -ENOMEM;
}

int tool_metrics_all(struct mcp_job *j, struct err *e)
{
	cJSON *list = cJSON_AddArrayToObject(j->data, "sandboxes");

	return list ? state_each(add_metrics, list, e) : -ENOMEM;
}

static bool add_now(cJSON *o)
{
	int64_t now = unix_now();
	time_t t = (time_t)(now / 1000000000);
	char text[40], at[64];
	struct tm tm;

	if (!gmtime_r(&t, &tm) || !strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm))
		return false;
	ignore_result(str_format(at, sizeof(at), "%s.%06ld+00:00", text,
				 (long)(now % 1000000000 / 1000))); /* it fits */
	return jsn_add_str(o, "at", at);
}

int tool_metrics_stream(struct mcp_job *j, struct err *e)
{
	int64_t samples = job_int(j, "samples");
	double ms = job_num(j, "interval_ms");
	cJSON *list = cJSON_AddArrayToObject(j->data, "samples"), *o;
	char text[64];
	struct core_named n;
	int r = job_reach(j, &n, "not_found", e);

	if (r < 0)
		return r;
	samples = samples < 1 ? 1 : samples > 60 ? 60 : samples;
	ms = ms > 3600000 ? 3600000 : ms > 0 ? ms : 0;
	for (int64_t i = 0; i < samples && r == 0; i++) {
		AUTO_JSN *doc = NULL;

		if (i)
			job_pause(j, (int64_t)(ms * 1e6));
		r = ask_metrics(&n, &doc, e);
		o = r == 0 && list ? cJSON_CreateObject() : NULL;
		if (r == 0 && (!o || !cJSON_AddItemToArray(list, o) ||
			       !jsn_add_i64(o, "sample", i + 1) || !add_now(o) || !add_two(o, doc)))
			r = -ENOMEM;
		ignore_result(str_format(text, sizeof(text), "sample %lld of %lld",
					 (long long)i + 1, (long long)samples)); /* it fits */
		job_elapsed(j, 0, text);
	}
	if (r == 0 && !jsn_add_str(j->data, "name", n.record.name))
		r = -ENOMEM;
	core_named_done(&n);
	return r;
}

/* --- files --- */

static volatile sig_atomic_t time_is_over;

static void on_alarm(int sig)
{
	(void)sig;
	time_is_over = 1;
}

static void on_turn(void *job)
{
	job_elapsed(job, JOB_SELDOM_NS, NULL);
}

static void begin_alarm(double ms)
{
	struct itimerval t = { .it_value = { .tv_sec = (time_t)(ms / 1000),
					     .tv_usec =
						     (suseconds_t)(fmod(ms, 1000) * 1000) + 1 } };
	struct sigaction sa = { .sa_flags = 0 };

	sa.sa_handler = on_alarm;
	(void)sigaction(SIGALRM, &sa, NULL);
	(void)setitimer(ITIMER_REAL, &t, NULL);
}

/* 1: enough; 0; negative. */
static int add_event(cJSON *list, const char *line, size_t n, const char **ret_end)
{
	cJSON *o = jsn_parse(line, n, NULL);
	const char *what = "";

	if (!o || jsn_str(o, "event", &what, NULL) != 1) {
		cJSON_Delete(o);
		return -EPROTO;
	}
	if (!strcmp(what, "alive") || !strcmp(what, "ready")) {
		cJSON_Delete(o);
		return 0;
	}
	if (!cJSON_AddItemToArray(list, o))
		return -ENOMEM;
	*ret_end = "events";
	return cJSON_GetArraySize(list) >= EVENTS_MAX;
}

/* After the first event it goes on for as long as events follow closely. */
static int read_events(struct stream *s, cJSON *list, double settle_ms, struct err *e)
{
	struct line_cutter c;
	const char *end = "time";
	char p[4096], *line;
	size_t len;
	ssize_t n = 0;
	int r = 0;

	line_cutter_init(&c, 16384);
	while (r == 0 && (n = stream_read(s, p, sizeof(p))) > 0) {
		r = line_feed(&c, p, (size_t)n);
		while (r == 0 && (line = line_next(&c, &len)) != NULL)
			r = add_event(list, line, len, &end);
		if (!strcmp(end, "events"))
			begin_alarm(settle_ms);
	}
	line_cutter_done(&c);
	if (r < 0)
		return err_set(e, ERR_INTERNAL, EPROTO, "the agent's list of changes");
	return n < 0 && !time_is_over ? stream_end(s, NULL, e) : 0;
}

int tool_fs_watch(struct mcp_job *j, struct err *e)
{
	double ms = job_num(j, "timeout_ms");
	char *path = fs_path(j, job_str(j, "path"));
	cJSON *list = cJSON_AddArrayToObject(j->data, "events");
	struct stream *st = NULL;
	struct core_named n;
	AUTO_BUF b;
	int r = path && list ? job_reach(j, &n, "SandboxError", e) : -ENOMEM;

	buf_init(&b, 16384);
	if (r < 0) {
		free(path);
		return r;
	}
	r = fs_request(&b, "/v1/watch?path=", path, job_bool(j, "recursive") ? "&recursive=1" : "");
	if (r == 0) {
		struct stream_spec s = { .backend = n.backend,
					 .id = n.record.microvm_id,
					 .method = "GET",
					 .path = b.p,
					 .cancel = &time_is_over,
					 .turn = on_turn,
					 .turn_arg = j };

		begin_alarm(ms > 0 && ms < 600000 ? ms : 600000);
		r = stream_open(&s, &st, e);
	}
	if (r == 0)
		r = read_events(st, list, 200, e);
	if (r < 0)
		j->code = "fs_error";
	stream_free(st);
	core_named_done(&n);
	if (r == 0 && (!jsn_add_str(j->data, "path", path) ||
		       !jsn_add_bool(j->data, "truncated", cJSON_GetArraySize(list) >= EVENTS_MAX)))
		r = -ENOMEM;
	free(path);
	return r;
}
