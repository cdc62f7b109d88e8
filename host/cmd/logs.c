/* SPDX-License-Identifier: Apache-2.0 */
#include <cJSON.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "host/agent/tail.h"
#include "host/cli/out.h"
#include "host/cli/since.h"
#include "host/cmd/cmd.h"
#include "host/cmd/common.h"
#include "host/cmd/execid.h"
#include "lib/fd.h"
#include "lib/jsn.h"
#include "lib/str.h"

/*
 * The console's log of a sandbox: lines with their time in front, which is shown only when asked
 * for. It is read whole (it has a cap), filtered, and with -f read on as it grows; a file that has
 * become shorter lost its oldest half, and what is newer than the last line shown goes on.
 */

#define LOG_MAX	    (64U << 20)
#define FOLLOW_NS   (200LL * 1000000)
#define ASK_NS	    (2000LL * 1000000) /* where each look is a request */
#define ALIVE_TURNS 5 /* of those, between two looks whether the sandbox still runs */
#define LATE_TURNS  3 /* of requests, after its end: what is logged comes late */

struct log {
	const struct cli *c;
	const struct core_named *n;
	struct backend_log log;
	off_t at;	     /* read so far */
	struct buf text;     /* not shown yet */
	struct buf shown;    /* what goes out next */
	int64_t since, last; /* of lines: shown from then on; the newest seen */
	bool again;	     /* the file was cut: lines up to LAST are known */
};

/* --- lines --- */

/* The line at P, of N bytes with its end. 0, or what writing failed of. */
static int add_line(struct log *l, const char *p, size_t n)
{
	int64_t when = 0;
	unsigned stamp = since_stamp(p, n, &when);

	if (stamp && (when < l->since || (l->again && when <= l->last)))
		return 0;
	if (stamp)
		l->last = when;
	if (!l->c->val[OPT_TIMESTAMPS].set) {
		p += stamp;
		n -= stamp;
	}
	return buf_add(&l->shown, p, n);
}

/* Takes the whole lines out of the text; the rest too when nothing more comes. */
static int take_lines(struct log *l, bool all)
{
	size_t used = 0;
	int r = 0;

	while (used < l->text.len && r == 0) {
		const char *p = l->text.p + used, *nl = memchr(p, '\n', l->text.len - used);

		if (!nl && !all)
			break;
		r = add_line(l, p, nl ? (size_t)(nl - p) + 1 : l->text.len - used);
		used += nl ? (size_t)(nl - p) + 1 : l->text.len - used;
	}
	buf_drop(&l->text, used);
	return r;
}

/* Where the last N lines begin. */
static size_t last_lines(const struct buf *b, uint64_t n)
{
	size_t at = b->len;

	if (n == 0)
		return at;
	if (at && b->p[at - 1] == '\n')
		at--;
	for (; at > 0; at--)
		if (b->p[at - 1] == '\n' && --n == 0)
			break;
	return at;
}

static int show(struct log *l)
{
	int r = l->shown.len ? out_bytes(l->shown.p, l->shown.len) : 0;

	buf_clear(&l->shown);
	return r;
}

/* --- the file --- */

static int read_more(struct log *l, struct err *e)
{
	struct stat st;
	char p[4096];
	ssize_t k = 1;

	if (l->log.anew)
		l->at = 0;
	l->log.anew = false;
	if (fstat(l->log.fd, &st) == 0 && st.st_size < l->at) {
		l->at = 0;
		l->again = true;
		buf_clear(&l->text);
	}
	while (k > 0) {
		k = pread(l->log.fd, p, sizeof(p), l->at);
		if (k < 0 && errno == EINTR)
			k = 1;
		else if (k < 0)
			return err_set(e, ERR_IO, errno, "reading the log");
		else if (k > 0 && buf_add(&l->text, p, (size_t)k) < 0)
			return err_set(e, ERR_TOO_BIG, 0, "the log is longer than %u MiB",
				       LOG_MAX >> 20);
		else
			l->at += k;
	}
	return 0;
}

static bool is_running(const struct log *l)
{
	struct sandbox_info i;

	return l->n->backend->info(l->n->record.microvm_id, &i, NULL) == 0 &&
	       i.state != SANDBOX_TERMINATED;
}

static void pause_for(int64_t ns)
{
	const struct timespec t = { .tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000 };

	(void)nanosleep(&t, NULL);
}

/* Until the sandbox has ended, or a signal ends us. */
static int follow(struct log *l, struct err *e)
{
	unsigned late = l->log.more ? LATE_TURNS : 0;
	bool alive = true;
	int r = 0;

	for (unsigned turn = 1; r == 0; turn++) {
		if (alive && turn % ALIVE_TURNS == 0)
			alive = is_running(l);
		if (l->log.more)
			r = l->log.more(&l->log, e);
		if (r == 0)
			r = read_more(l, e);
		if (r == 0 && take_lines(l, !alive && !late) < 0)
			r = err_set(e, ERR_INTERNAL, ENOMEM, "reading the log");
		if (r == 0)
			r = show(l);
		if (!alive && !late--)
			break;
		pause_for(l->log.more ? ASK_NS : FOLLOW_NS);
	}
	return r;
}

static int document(const struct log *l)
{
	cJSON *j = cJSON_CreateObject();

	if (j && (!jsn_add_str(j, "name", l->c->names[0]) ||
		  !jsn_add_text(j, "log", l->shown.p ? l->shown.p : "", l->shown.len))) {
		cJSON_Delete(j);
		j = NULL;
	}
	return out_doc(j);
}

static int console(struct log *l, struct err *e)
{
	const struct opt_value *v = l->c->val;
	bool more = v[OPT_FOLLOW].set;
	int r = read_more(l, e);

	if (r < 0)
		return r;
	r = take_lines(l, !more);
	if (r < 0)
		return err_set(e, ERR_INTERNAL, -r, "reading the log");
	if (v[OPT_TAIL].set)
		buf_drop(&l->shown, last_lines(&l->shown, v[OPT_TAIL].number));
	if (out_json_wanted())
		return document(l);
	r = show(l);
	return r == 0 && more ? follow(l, e) : r;
}

static int show_console(const struct cli *c, const struct core_named *n, struct err *e)
{
	const struct opt_value *v = c->val;
	struct log l = { .c = c, .n = n, .log = BACKEND_LOG_NONE };
	const struct log_wish w = { .since_ns = v[OPT_SINCE].set ? v[OPT_SINCE].ns : INT64_MIN,
				    .tail = v[OPT_TAIL].set ? v[OPT_TAIL].number : UINT64_MAX,
				    .wait = v[OPT_FOLLOW].set,
				    .group = v[OPT_LOG_GROUP].text };
	int r;

	l.since = w.since_ns;
	if (w.group && n->backend == &backend_local) {
		(void)err_set(e, ERR_USAGE, 0, "--log-group: only sandboxes on AWS have one");
		return -EINVAL;
	}
	buf_init(&l.text, LOG_MAX);
	buf_init(&l.shown, LOG_MAX);
	r = n->backend->open_log ? n->backend->open_log(n->record.microvm_id, &w, &l.log, e)
				 : cmd_unsupported(n->backend, "show logs", e);
	if (r == -ENOENT)
		(void)err_set(e, ERR_NOT_FOUND, 0, "there is no log of '%s'", c->names[0]);
	if (r == 0)
		r = console(&l, e);
	backend_log_done(&l.log);
	buf_done(&l.text);
	buf_done(&l.shown);
	return r;
}

/* --- a command's output --- */

static int output_document(const struct cli *c, const char *id, const struct exec_result *res)
{
	cJSON *j = cJSON_CreateObject();
	static const char *const names[] = { "stdout", "stderr" };
	bool good = j && jsn_add_str(j, "name", c->names[0]) && jsn_add_str(j, "id", id);

	for (int i = 0; i < 2 && good; i++)
		good = jsn_add_text(j, names[i], res->output[i].p ? res->output[i].p : "",
				    res->output[i].len);
	if (!good) {
		cJSON_Delete(j);
		j = NULL;
	}
	return out_doc(j);
}

static int show_output(const struct cli *c, const struct core_named *n, struct err *e)
{
	char id[EXECID_MAX + 1];
	struct exec_spec s = { .backend = n->backend,
			       .id = n->record.microvm_id,
			       .attach = id,
			       .watch = c->val[OPT_FOLLOW].set ? EXEC_WATCH_END : EXEC_WATCH_NOW,
			       .capture = out_json_wanted() };
	struct exec_result res = { .end = EXEC_ENDED };
	int r = 0;

	if (c->val[OPT_LOG_GROUP].set) {
		(void)err_set(e, ERR_USAGE, 0,
			      "--log-group: the output of a command is in the sandbox");
		return -EINVAL;
	}
	if (c->val[OPT_SINCE].set || c->val[OPT_TIMESTAMPS].set) {
		(void)err_set(e, ERR_USAGE, 0,
			      "--since and --timestamps: the output of a command has no times");
		return -EINVAL;
	}
	r = execid_find(n, c->names[1], id, e);
	if (r == 0 && c->val[OPT_TAIL].set)
		r = tail_offset(n->backend, s.id, id, c->val[OPT_TAIL].number, &s.offset, e);
	if (r < 0)
		return r;
	r = exec_run(&s, &res, e);
	if (r == 0 && (res.skipped || res.lost))
		out_note("%llu bytes of the output are not held any more",
			 (unsigned long long)res.skipped + res.lost);
	if (r == 0 && out_json_wanted())
		r = output_document(c, id, &res);
	if (r == 0 && res.end == EXEC_READER_GONE)
		out_die_of_pipe();
	if (r == 0 && res.end == EXEC_INTERRUPTED)
		core_die_of(res.own_signal);
	exec_result_done(&res);
	return r;
}

int cmd_logs(const struct cli *c)
{
	struct core_named n;
	struct err e = ERR_INIT;
	int r = core_find(c->names[0], &n, &e);

	if (r < 0)
		return cmd_fail(c, &e, cmd_hint(&e, NULL));
	if (out_json_wanted() && c->val[OPT_FOLLOW].set) {
		(void)err_set(&e, ERR_USAGE, 0, "--json and --follow: a document has an end");
		r = -EINVAL;
	} else if (c->names_len > 1) {
		r = core_wake(&n, &e);
		if (r == 0)
			r = show_output(c, &n, &e);
	} else {
		r = show_console(c, &n, &e);
	}
	core_named_done(&n);
	if (r < 0 && !e.code)
		return c->cmd->failure; /* told already: standard output */
	if (r < 0 && c->names_len > 1)
		return cmd_fail(c, &e,
				e.code == ERR_USAGE ? NULL : execid_hint(&e, r, c->names[0]));
	return r < 0 ? cmd_fail(c, &e, r == -ENODATA ? NULL : cmd_hint(&e, c->names[0])) : 0;
}
