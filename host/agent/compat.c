/* SPDX-License-Identifier: Apache-2.0 */
#include "host/agent/compat.h"

#include <cJSON.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host/agent/ask.h"
#include "host/agent/exec_int.h"
#include "host/agent/http.h"
#include "host/backend.h"
#include "lib/b64.h"
#include "lib/fd.h"
#include "lib/jsn.h"
#include "lib/loop.h"
#include "lib/str.h"

/*
 * One question with a long answer. A command is started by it, so it is never sent again: when the connection is cut, what became of the
 * command is not known. While it runs no byte goes through the endpoint, which AWS takes for idle and suspends after a minute at the
 * least; so the agent is asked for its health meanwhile.
 */

#define ALIVE_NS   (20LL * 1000000000)
#define ASKED_NS   (10LL * 1000000000) /* for that answer */
#define LOOK_NS	   (200LL * 1000000)
#define FILE_NS	   (600LL * 1000000000)
#define MARGIN_NS  (10LL * 1000000000) /* for an agent that kills a command late */
#define SILENT_MAX 3		       /* looks without an answer: then nobody is there any more */
#define REPLY_MAX \
	(192U << 20) /* two outputs of EXEC_CAPTURE_MAX in base64, and what is around them */

struct asking {
	struct loop loop;
	struct http *http;
	struct http_call *call, *ping;
	struct loop_timer alive, look, late, tick;
	unsigned silent;	      /* looks in a row that nobody answered */
	const struct exec_spec *spec; /* whose tick it is; NULL = nobody's */
	const volatile sig_atomic_t *cancel;
	int status; /* 0: none, see ERR */
	struct buf body;
	struct err err;
	int signal; /* that we got */
	bool over;  /* the time is */
};

static int on_data(void *arg, const void *p, size_t n)
{
	struct asking *k = arg;

	return buf_add(&k->body, p, n) < 0 ? -EMSGSIZE : 0;
}

static void on_done(void *arg, int status, const struct buf *body, const struct err *e)
{
	struct asking *k = arg;

	k->call = NULL;
	k->status = status;
	k->err = *e;
	if (status && status != 200 && buf_add(&k->body, body->p ? body->p : "", body->len) < 0)
		k->status = 0;
	loop_stop(&k->loop);
}

static void on_pong(void *arg, int status, const struct buf *body, const struct err *e)
{
	struct asking *k = arg;

	(void)body;
	k->ping = NULL;
	k->silent = status ? 0 : k->silent + 1;
	if (k->silent < SILENT_MAX)
		return;
	k->err = *e;
	loop_stop(&k->loop);
}

static void on_alive(struct loop_timer *t)
{
	struct asking *k = t->arg;
	const struct http_spec s = {
		.method = "GET", .path = "/healthz", .limit_ns = ASKED_NS, .done = on_pong, .arg = k
	};

	if (!k->ping)
		ignore_result(http_start(k->http, &s, &k->ping, NULL)); /* next time, then */
	loop_arm(&k->loop, t, ALIVE_NS);
}

static void on_look(struct loop_timer *t)
{
	struct asking *k = t->arg;

	if (*k->cancel)
		loop_stop(&k->loop);
	else
		loop_arm(&k->loop, t, LOOK_NS);
}

static void on_late(struct loop_timer *t)
{
	struct asking *k = t->arg;

	k->over = true;
	loop_stop(&k->loop);
}

static void on_tick(struct loop_timer *t)
{
	struct asking *k = t->arg;

	k->spec->tick(k->spec->tick_arg, 0); /* what it wrote comes at its end */
	loop_arm(&k->loop, t, EXEC_TICK_NS);
}

static void on_signal(void *arg, const void *info)
{
	struct asking *k = arg;

	k->signal = (int)((const struct signalfd_siginfo *)info)->ssi_signo;
	loop_stop(&k->loop);
}

static int begin(struct asking *k, const struct backend *b, const char *id, size_t most,
		 struct err *e)
{
	static loop_timer_fn *const fns[] = { on_alive, on_look, on_late, on_tick };
	struct loop_timer *const timers[] = { &k->alive, &k->look, &k->late, &k->tick };
	int r = loop_init(&k->loop);

	if (r < 0)
		return err_set(e, ERR_INTERNAL, -r, "asking the agent");
	buf_init(&k->body, most);
	for (size_t i = 0; i < ARRAY_LEN(timers); i++) {
		*timers[i] = (struct loop_timer)LOOP_TIMER_INIT;
		timers[i]->fn = fns[i];
		timers[i]->arg = k;
	}
	r = http_open(&k->loop, b, id, &k->http, e);
	if (r < 0) {
		loop_done(&k->loop);
		buf_done(&k->body);
	}
	return r;
}

static void end(struct asking *k)
{
	loop_disarm(&k->alive);
	loop_disarm(&k->look);
	loop_disarm(&k->late);
	loop_disarm(&k->tick);
	http_free(k->http);
	loop_done(&k->loop);
	buf_done(&k->body);
}

/* POSTs BODY to PATH. 0: K->status, or K->signal, or K->over; else a negative errno with E. */
static int post(struct asking *k, const char *path, const cJSON *body, int64_t limit_ns,
		struct err *e)
{
	char *text = body ? cJSON_PrintUnformatted(body) : NULL;
	struct http_spec s = { .method = "POST",
			       .path = path,
			       .body = text,
			       .type = "application/json",
			       .limit_ns = limit_ns,
			       .once = true,
			       .data = on_data,
			       .done = on_done,
			       .arg = k };
	int r = text ? 0 : err_set(e, ERR_INTERNAL, ENOMEM, "asking the agent");

	if (r == 0) {
		s.body_len = strlen(text);
		r = http_start(k->http, &s, &k->call, e);
	}
	if (r == 0) {
		loop_arm(&k->loop, &k->alive, ALIVE_NS);
		if (k->cancel)
			loop_arm(&k->loop, &k->look, LOOK_NS);
		r = loop_run(&k->loop);
		if (r < 0)
			r = err_set(e, ERR_INTERNAL, -r, "waiting for the agent");
	}
	http_cancel(k->call);
	k->call = NULL;
	free(text);
	if (r < 0 || k->status || k->signal || k->over)
		return r;
	if (k->cancel && *k->cancel)
		return err_set(e, ERR_UNAVAILABLE, EINTR, "asking the agent");
	if (e)
		*e = k->err;
	return k->err.errnum > 0 ? -k->err.errnum : -EIO;
}

/* Text of base64 in member NAME, added to RET. 0, -EPROTO, -ENOSPC. */
static int take_bytes(const cJSON *j, const char *name, struct buf *ret)
{
	const char *s = NULL;
	size_t n, got;
	int r;

	if (jsn_str(j, name, &s, NULL) != 1)
		return -EPROTO;
	n = strlen(s);
	r = buf_reserve(ret, n / 4 * 3 + 4);
	if (r == 0 && b64_decode(s, n, ret->p + ret->len, &got) < 0)
		r = -EPROTO;
	if (r == 0) {
		ret->len += got;
		ret->p[ret->len] = '\0';
	}
	return r;
}

/* --- commands --- */

/* What is asked for and cannot be; NULL: nothing. */
static const char *impossible(const struct exec_spec *s, bool had_input)
{
	struct pollfd in = { .fd = STDIN_FILENO, .events = POLLIN };
	struct stat st;

	if (s->attach || s->detach)
		return "leaves no command running that one could come back to";
	if (s->tty_asked)
		return "has no terminals";
	if (s->user || s->seccomp)
		return "runs commands as itself only";
	if (s->memory || s->cpus > 0 || s->pids)
		return "has no limits for commands";
	if (!s->use_stdin || s->tty)
		return NULL;
	if (!had_input && fstat(STDIN_FILENO, &st) == 0 && S_ISREG(st.st_mode) &&
	    lseek(STDIN_FILENO, 0, SEEK_CUR) >= st.st_size)
		return NULL; /* nothing is left in it */
	if (!had_input && poll(&in, 1, 0) == 1 && (in.revents & POLLHUP) && !(in.revents & POLLIN))
		return NULL;
	return "gives commands no standard input (--no-stdin does without)";
}

static cJSON *request(const struct exec_spec *s)
{
	AUTO_JSN *j = cJSON_CreateObject();
	cJSON *args, *env, *ret = j;
	bool good = j && jsn_add_str(j, "command", s->argv[0]) &&
		    (!s->cwd || jsn_add_str(j, "cwd", s->cwd));

	args = cJSON_AddArrayToObject(j, "args");
	for (unsigned i = 1; good && i < s->argc; i++)
		good = cJSON_AddItemToArray(args, cJSON_CreateString(s->argv[i]));
	env = s->env && s->env[0] ? cJSON_AddObjectToObject(j, "env") : NULL;
	for (char *const *v = s->env; env && good && *v; v++) {
		const char *eq = strchr(*v, '=');
		char *name = eq ? strndup(*v, (size_t)(eq - *v)) : NULL;

		if (name)
			cJSON_DeleteItemFromObjectCaseSensitive(env,
								name); /* the last one counts */
		good = name && jsn_add_str(env, name, eq + 1);
		free(name);
	}
	good = good && (env || !s->env || !s->env[0]);
	if (good && s->timeout_ns)
		good = cJSON_AddNumberToObject(j, "timeout", (double)s->timeout_ns / 1e9) != NULL;
	if (!good || !args)
		return NULL;
	j = NULL;
	return ret;
}

/* The bytes to where they belong. */
static int give(const struct exec_spec *s, struct exec_result *ret, struct buf *out, int i,
		struct err *e)
{
	size_t room = ret->output[i].cap - ret->output[i].len;
	int r = 0;

	ret->total[i] = out->len;
	if (s->capture) {
		ret->truncated |= out->len > room;
		r = buf_add(&ret->output[i], out->p ? out->p : "",
			    out->len < room ? out->len : room);
		return r < 0 ? err_set(e, ERR_INTERNAL, -r, "the output") : 0;
	}
	r = out->len ? fd_write_all(i == 0 ? STDOUT_FILENO : STDERR_FILENO, out->p, out->len) : 0;
	if (r == -EPIPE && i == 0) {
		ret->end = EXEC_READER_GONE;
		return 0;
	}
	return r < 0 && i == 0 ? err_set(e, ERR_IO, -r, "cannot write to standard output") : 0;
}

/* A good answer. */
static int ended(const struct exec_spec *s, struct exec_result *ret, const struct buf *body,
		 struct err *e)
{
	AUTO_JSN *j = jsn_parse(body->p ? body->p : "", body->len, NULL);
	const cJSON *code = jsn_get(j, "exit_code");
	struct buf out[2];
	int r = 0;

	for (int i = 0; i < 2; i++)
		buf_init(&out[i], REPLY_MAX);
	if (!cJSON_IsNumber(code) || code->valuedouble < -127 || code->valuedouble > 255 ||
	    code->valuedouble != (double)code->valueint)
		r = -EPROTO;
	if (r == 0)
		r = take_bytes(j, "stdout", &out[0]);
	if (r == 0)
		r = take_bytes(j, "stderr", &out[1]);
	if (r < 0)
		r = err_set(e, ERR_INTERNAL, -r, "the agent's answer about the command");
	if (r == 0 && code->valueint < 0)
		ret->signal = -code->valueint;
	else if (r == 0)
		ret->exit_code = code->valueint;
	for (int i = 0; i < 2; i++) {
		if (r == 0)
			r = give(s, ret, &out[i], i, e);
		buf_done(&out[i]);
	}
	return r;
}

/* The Python project's agent says of a missing working directory that the command is not found. */
static int refused(const struct exec_spec *s, const struct asking *k, struct exec_result *ret,
		   struct err *e)
{
	struct err why = ERR_INIT;
	const char *and = s->cwd ? ", or there is no directory " : "";
	int r = ask_take(k->status, &k->body, NULL, &why);
	bool missing = k->status == 400 && str_starts(why.msg, "command not found");

	if (k->status == 504) {
		ret->end = EXEC_TIMED_OUT;
		return 0;
	}
	if (missing || (k->status == 400 && str_starts(why.msg, "cannot execute"))) {
		ret->end = missing ? EXEC_NO_COMMAND : EXEC_NOT_EXECUTABLE;
		(void)err_set(e, missing ? ERR_NOT_FOUND : ERR_DENIED, 0, "%s%s%.100s", why.msg,
			      missing ? and : "", missing && s->cwd ? s->cwd : "");
		return 0;
	}
	if (k->status == 500)
		return err_set(
			e, ERR_UNAVAILABLE, 0,
			"the agent failed on '%.100s', as it does when a file is not executable or the "
			"working directory is none",
			s->argv[0]);
	(void)err_set(e, why.code, 0, "the sandbox cannot start '%.100s': %s", s->argv[0], why.msg);
	return r;
}

static int answered(const struct exec_spec *s, const struct asking *k, struct exec_result *ret,
		    struct err *e)
{
	if (k->signal) {
		ret->end = EXEC_INTERRUPTED;
		ret->own_signal = k->signal;
		ret->runs_on = !s->leave;
		return 0;
	}
	if (k->over) {
		ret->end = EXEC_TIMED_OUT;
		return 0;
	}
	return k->status == 200 ? ended(s, ret, &k->body, e) : refused(s, k, ret, e);
}

int compat_exec(const struct exec_spec *s, bool had_input, struct exec_result *ret, struct err *e)
{
	const char *no = impossible(s, had_input);
	struct asking k = { .spec = s };
	AUTO_JSN *q = NULL;
	int64_t began = loop_now();
	sigset_t set, before;
	int r;

	if (no)
		return ask_unsupported(e, no);
	ret->id[0] = '\0';
	ret->no_tty = s->tty;
	q = request(s);
	r = begin(&k, s->backend, s->id, REPLY_MAX, e);
	if (r < 0)
		return r;
	stop_signals(&set);
	(void)sigprocmask(SIG_BLOCK, NULL, &before);
	r = loop_signals(&k.loop, &set, on_signal, &k);
	if (s->timeout_ns)
		loop_arm(&k.loop, &k.late, s->timeout_ns + MARGIN_NS);
	if (s->tick)
		loop_arm(&k.loop, &k.tick, EXEC_TICK_NS);
	r = r < 0 ? err_set(e, ERR_INTERNAL, -r, "asking the agent")
		  : post(&k, "/v1/exec", q, 0, e);
	if (r == -ECONNRESET || r == -ETIMEDOUT)
		(void)err_wrap(e, "what became of the command is not known");
	(void)sigprocmask(SIG_SETMASK, &before, NULL);
	ret->duration_ms = (loop_now() - began) / 1000000;
	if (r == 0)
		r = answered(s, &k, ret, e);
	end(&k);
	return r;
}

/* --- files --- */

/* What the agent refuses in the words of Python, "[Errno 21] Is a directory: '/tmp'". */
static int file_answer(const struct asking *k, cJSON **ret, struct err *e)
{
	struct err why = ERR_INIT;
	int r = ask_take(k->status, &k->body, ret, &why);

	if (r < 0 && e)
		*e = why;
	return r == -EINVAL && strstr(why.msg, "[Errno 21]") ? -EISDIR : r;
}

static int ask_file(const struct compat_file *f, const char *route, const cJSON *q, cJSON **ret,
		    struct err *e)
{
	struct asking k = { .cancel = f->cancel };
	int r = begin(&k, f->backend, f->id, B64_LEN(COMPAT_FILE_MAX) + 4096, e);

	if (r < 0)
		return r;
	r = post(&k, route, q, FILE_NS, e);
	if (r == 0)
		r = file_answer(&k, ret, e);
	end(&k);
	return r;
}

int compat_too_big(const char *path, struct err *e)
{
	(void)err_set(
		e, ERR_TOO_BIG, 0,
		"%.300s: the agent of this image takes and gives a file in one piece, and asb "
		"at most %u MiB of it",
		path, COMPAT_FILE_MAX >> 20);
	return -EFBIG;
}

int compat_read(const struct compat_file *f, struct buf *ret, struct err *e)
{
	AUTO_JSN *q = cJSON_CreateObject(), *j = NULL;
	int r;

	if (!q || !jsn_add_str(q, "path", f->path))
		return err_set(e, ERR_INTERNAL, ENOMEM, "asking the agent");
	r = ask_file(f, "/v1/fs/read", q, &j, e);
	if (r < 0)
		return r == -EMSGSIZE ? compat_too_big(f->path, e) : r;
	r = take_bytes(j, "content", ret);
	if (r == -ENOSPC)
		return compat_too_big(f->path, e);
	return r < 0 ? err_set(e, ERR_INTERNAL, -r, "the content of %.300s", f->path) : 0;
}

int compat_write(const struct compat_file *f, const void *p, size_t n, struct err *e)
{
	AUTO_JSN *q = cJSON_CreateObject();
	AUTO_BUF text;

	buf_init(&text, B64_LEN(COMPAT_FILE_MAX) + 1);
	if (n > COMPAT_FILE_MAX)
		return compat_too_big(f->path, e);
	if (b64_append(&text, p, n) < 0 || !q || !jsn_add_str(q, "path", f->path) ||
	    !jsn_add_str(q, "content", text.p ? text.p : "") ||
	    !jsn_add_str(q, "encoding", "base64"))
		return err_set(e, ERR_INTERNAL, ENOMEM, "asking the agent");
	return ask_file(f, "/v1/fs/write", q, NULL, e);
}
