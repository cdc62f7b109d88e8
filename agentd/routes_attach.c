/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "app.h"
#include "control.h"
#include "exec.h"
#include "lib/jsn.h"
#include "lib/ring.h"
#include "lib/str.h"
#include "lib/ws.h"

/*
 * GET /v1/execs/{id}/attach: a terminal over a WebSocket. For the engine this is one follower of the output and one feeder of the
 * input, as GET output and POST stdin are, so a second client may read along there, and whoever begins to feed takes the
 * input over: an attached client is told and ended then.
 *
 * Output goes from the log into the socket's queue while that has room; what has been queued counts as fetched. Input that the
 * terminal does not take waits in PENDING; when that could not hold one message more, nothing is read from the client. An
 * end of input keeps its place behind what was typed before it: until it has been typed nothing is read either.
 *
 * The object lives as long as the request (on_end). E is NULL in the follower when the command has been forgotten.
 */

#define CHUNK	  (16U << 10) /* of output in one message */
#define PENDING	  (2 * LIMIT_WS_MESSAGE)
#define TAKEN	  4001 /* close code of a client that another one has superseded */
#define EVENT_MAX 320

struct attach {
	struct exec_follower out; /* first */
	struct exec_feeder in;
	struct exec *fed; /* whose input is ours; NULL when it is no more */
	struct httpd_req *r;
	struct loop *loop;
	struct ws ws;
	struct ws_config config;
	struct ring pending;
	uint64_t asked; /* offset that the client wants */
	bool open, eof_due;
};

/* Control messages are small; a client that does not even take those is behind anyway. */
static void tell(struct attach *a, cJSON *o)
{
	char *s = o ? cJSON_PrintUnformatted(o) : NULL;

	cJSON_Delete(o);
	if (s)
		ignore_result(ws_send(&a->ws, true, s, strlen(s)));
	free(s);
}

static cJSON *message(const char *type)
{
	cJSON *o = cJSON_CreateObject();

	if (o && !jsn_add_str(o, "type", type))
		jsn_free(&o);
	return o;
}

static void tell_error(struct attach *a, const char *text)
{
	cJSON *o = message("error");

	if (o && !jsn_add_text(o, "message", text, strlen(text)))
		jsn_free(&o);
	tell(a, o);
}

/* --- output --- */
static bool skip_gap(struct attach *a, const struct exec *e)
{
	cJSON *o;

	if (a->out.offset >= e->log.start)
		return true;
	if (ws_room(&a->ws, EVENT_MAX) < EVENT_MAX)
		return false;
	o = message("gap");
	if (o && (!jsn_add_u64(o, "from", a->out.offset) || !jsn_add_u64(o, "to", e->log.start)))
		jsn_free(&o);
	tell(a, o);
	a->out.offset = e->log.start;
	return true;
}

static void tell_exit(struct attach *a, const struct exec *e)
{
	char text[EVENT_MAX];

	if (ws_room(&a->ws, EVENT_MAX) < EVENT_MAX)
		return;
	control_exit(e, "type", text, sizeof(text));
	ignore_result(ws_send(&a->ws, true, text, strlen(text)));
	ws_close(&a->ws, WS_NORMAL, NULL);
}

/* As much of the log as the queue takes; at the end of a finished command its result. */
static void pump(struct attach *a)
{
	struct exec *e = a->out.e;

	if (!a->open)
		return;
	if (!e) {
		ws_close(&a->ws, WS_GOING_AWAY, "the command has been forgotten");
		return;
	}
	while (skip_gap(a, e)) {
		unsigned stream;
		const char *p;
		size_t n = outlog_peek(&e->log, a->out.offset, &stream, &p), room;

		if (n > CHUNK)
			n = CHUNK;
		room = n ? ws_room(&a->ws, n) : 0;
		if (n > room)
			return; /* on_room comes back here */
		if (n == 0) {
			if (e->state == EXEC_EXITED)
				tell_exit(a, e);
			return;
		}
		if (ws_send(&a->ws, false, p, n) < 0)
			return;
		exec_fetched(&a->out, n);
	}
}

static void on_output(struct exec_follower *f)
{
	pump((struct attach *)(void *)f); /* its first member */
}

static void on_room(void *arg)
{
	pump(arg);
}

/* --- input --- */
static void hold_or_read(struct attach *a)
{
	if (a->open)
		ws_pause(&a->ws,
			 a->fed && (a->eof_due || ring_room(&a->pending) < LIMIT_WS_MESSAGE));
}

static void drop_input(struct attach *a)
{
	a->fed = NULL;
	a->eof_due = false;
	ring_drop(&a->pending, a->pending.len);
	hold_or_read(a);
}

/* The terminal may be gone at each of these writes; on_fed_end has dropped the rest then. */
static void feed(struct attach *a)
{
	while (a->fed && a->pending.len) {
		const char *p;
		size_t n = ring_peek(&a->pending, &p);
		ssize_t k = exec_write(a->fed, p, n);

		if (k < 0 && a->fed)
			ring_drop(&a->pending, a->pending.len);
		if (k < 0)
			break;
		ring_drop(&a->pending, (size_t)k);
		if ((size_t)k < n)
			break; /* on_writable */
	}
	if (a->fed && a->eof_due && a->pending.len == 0)
		a->eof_due = exec_tty_eof(a->fed) == -EAGAIN;
	hold_or_read(a);
}

static void on_writable(struct exec_feeder *f)
{
	feed(CONTAINER_OF(f, struct attach, in));
}

/* The command has ended, or somebody else feeds it from now on. */
static void on_fed_end(struct exec_feeder *f)
{
	struct attach *a = CONTAINER_OF(f, struct attach, in);
	bool taken = a->fed && a->fed->in.feeder;

	drop_input(a);
	if (!taken || !a->open)
		return;
	exec_unfollow(&a->out);
	tell(a, message("taken"));
	ws_close(&a->ws, TAKEN, "another client has attached");
}

static void on_typed(struct attach *a, const char *p, size_t n)
{
	if (!a->fed)
		return; /* the command has ended: its result is on its way */
	if (ring_put(&a->pending, p, n) < 0) {
		ws_close(&a->ws, WS_INTERNAL, "out of memory");
		return;
	}
	feed(a);
}

/* --- control --- */
static int resize(struct attach *a, cJSON *o, struct err *e)
{
	struct exec *x = a->out.e;
	uint16_t rows = x->rows, cols = x->cols;
	int r;

	cJSON_DeleteItemFromObjectCaseSensitive(o, "type"); /* which a window does not know */
	r = spec_window(o, &rows, &cols, e);
	if (r < 0)
		return r;
	r = exec_resize(x, rows, cols);
	return r < 0 && r != -ESRCH ? err_set(e, ERR_IO, -r, "resize") : 0;
}

static int send_signal(struct attach *a, const cJSON *o, struct err *e)
{
	enum exec_to to = EXEC_TO_TREE;
	int sig, r = control_signal(o, &sig, &to, e);

	if (r < 0)
		return r;
	r = control_send(a->out.e, sig, to);
	return r < 0 && r != -ESRCH ? err_set(e, ERR_IO, -r, "signal") : 0;
}

static void on_control(struct attach *a, const char *p, size_t n)
{
	struct err e = ERR_INIT;
	AUTO_JSN *o = jsn_parse(p, n, &e);
	const char *type = "";
	int r = 0;

	if (!o) {
		tell_error(a, e.msg);
		return;
	}
	if (!cJSON_IsObject(o) || jsn_str(o, "type", &type, &e) < 0)
		r = err_set(&e, ERR_INVALID, 0, "a control message is an object with a type");
	else if (!a->out.e)
		return;
	else if (!strcmp(type, "resize"))
		r = resize(a, o, &e);
	else if (!strcmp(type, "signal"))
		r = send_signal(a, o, &e);
	else if (!strcmp(type, "eof"))
		a->eof_due = a->fed != NULL;
	else
		r = err_set(&e, ERR_INVALID, 0, "unknown type: resize, signal and eof are known");
	if (r < 0)
		tell_error(a, e.msg);
	feed(a);
}

static void on_message(void *arg, bool text, const char *p, size_t n)
{
	if (text)
		on_control(arg, p, n);
	else
		on_typed(arg, p, n);
}

/* --- begin and end --- */
static void on_closed(void *arg, unsigned code)
{
	struct attach *a = arg;

	(void)code;
	a->open = false;
	httpd_upgrade_done(a->r);
}

static const struct ws_config config = {
	.message_max = LIMIT_WS_MESSAGE,
	.queue_max = LIMIT_WS_QUEUE,
	.ping_ns = LIMIT_WS_PING_NS,
	.stall_ns = LIMIT_STALL_NS,
	.message = on_message,
	.writable = on_room,
	.closed = on_closed,
};

static void tell_attached(struct attach *a)
{
	const struct exec *e = a->out.e;
	cJSON *o = message("attached");

	if (o && !jsn_add_u64(o, "offset", a->asked < e->log.start ? e->log.start : a->asked))
		jsn_free(&o);
	tell(a, o);
}

static void on_upgraded(void *arg, int fd, const char *p, size_t n)
{
	struct attach *a = arg;
	struct exec *e = a->out.e;

	a->config = config;
	a->config.arg = a;
	if (ws_start(&a->ws, a->loop, fd, &a->config, p, n) < 0) {
		httpd_upgrade_done(a->r);
		return;
	}
	a->open = true;
	if (e) {
		tell_attached(a);
		if (e->in.fd >= 0 && !e->leader_ended) {
			a->fed = e;
			exec_feed(e, &a->in);
		}
	}
	pump(a);
}

static void on_end(void *arg)
{
	struct attach *a = arg;

	if (a->open)
		ws_stop(&a->ws);
	a->open = false;
	exec_unfollow(&a->out);
	if (a->fed)
		exec_unfeed(a->fed, &a->in);
	ring_done(&a->pending);
	free(a);
}

static void begin(struct httpd_req *r, struct exec *e, uint64_t offset)
{
	struct app *app = httpd_server_arg(r);
	struct attach *a = calloc(1, sizeof(*a));

	if (!a) {
		httpd_reply_error(r, 503, "out of memory");
		return;
	}
	a->r = r;
	a->loop = &app->loop;
	a->asked = a->out.offset = offset;
	a->out.wake = on_output;
	a->in = (struct exec_feeder){ on_writable, on_fed_end };
	ring_init(&a->pending, PENDING);
	exec_follow(e, &a->out);
	httpd_on_end(r, on_end, a);
	httpd_reply_upgrade(r, "websocket", on_upgraded, a);
}

void route_exec_attach(struct httpd_req *r)
{
	struct exec *e = exec_find(httpd_segment(r, 0));
	const char *query = httpd_query(r, "offset");
	uint64_t offset = e ? e->log.start : 0;

	if (!e)
		httpd_reply_error(r, 404, "no such exec: %s", httpd_segment(r, 0));
	else if (!e->pty)
		httpd_reply_error(r, 409, "the command has no terminal: start it with \"pty\"");
	else if (query && str_to_u64(query, 0, UINT64_MAX, &offset) < 0)
		httpd_reply_error(r, 400, "offset must be a number");
	else if (offset > e->log.end)
		httpd_reply_error(r, 416, "offset %llu is behind the end, which is %llu",
				  (unsigned long long)offset, (unsigned long long)e->log.end);
	else if (ws_handshake(r))
		begin(r, e, offset);
}
