/* SPDX-License-Identifier: Apache-2.0 */
#include "httpd.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "fd.h"
#include "httpd_int.h"

/*
 * libmicrohttpd inside our loop. It runs without threads on an epoll descriptor of its own, which
 * is a watch of the loop. MHD_run is called from three places only: that watch, the kick timer
 * (after a resume, and whenever the library says that it has work without an event), and never from
 * inside a handler. Its own timeouts reach the loop through a preparer.
 *
 * One httpd_req lives as long as its connection and serves one request after another. The library
 * calls on_request
 *   1. when the head is in (head_seen is false): checks, routing, authentication, then STREAM
 * handlers;
 *   2. with pieces of the body: collected, dropped, or given to the sink;
 *   3. without bytes, when the body is complete: BUFFER and NONE handlers, sink(N == 0), then the
 * answer is queued, or the connection is suspended until somebody answers; after the resume it is
 * called like that again. The library takes an answer only in 1 and 3, and in 1 it closes the
 * connection at once when a body was announced. One that must go out before the body has been read
 * (no token, a sink that has had enough, a body above its cap) is therefore written to the socket
 * by httpd_reply_early, the rest of the body is dropped for DRAIN_S seconds so that the client can
 * read the answer before it sees a reset, and the connection ends. A streamed one can go on while the
 * body does: httpd_duplex.c.
 *
 * Deadlines: the whole head of a request must arrive within idle_s of the connection's start or of
 * the answer before (a client that sends a byte now and then does not extend it). Bodies and
 * answers have the library's timeout, idle_s without any progress. A suspended connection has none:
 * what it waits for has its own.
 */

#define POOL_BYTES (32U << 10) /* of each connection: head, fields, and the buffer of a chunk */
#define DRAIN_S	   2
#define GONE_S	   10 /* for the rest of a request whose last byte has been sent */
#define NS_PER_S   1000000000LL

static void run_library(struct httpd *h)
{
	(void)MHD_run(h->daemon);
}

static void on_kick(struct loop_timer *t)
{
	run_library(t->arg);
}

static void on_event(struct loop_watch *w, uint32_t events)
{
	(void)events;
	run_library(w->arg);
}

static int on_prepare(void *arg)
{
	struct httpd *h = arg;
	MHD_UNSIGNED_LONG_LONG ms;

	if (MHD_get_timeout(h->daemon, &ms) != MHD_YES)
		return -1;
	if (ms == 0)
		loop_arm(h->loop, &h->kick, 0);
	return ms > 3600000 ? 3600000 : (int)ms;
}

/* --- suspension, and the end of what a client sends --- */
/*
 * The library's epoll is edge-triggered and it does not read on when a read has given less than it asked for. So it
 * misses the end that came together with the last bytes, and would keep the connection, and its place among max_conns,
 * until the deadline. After a resume it reads again.
 */
static void read_again(struct httpd_req *r)
{
	MHD_suspend_connection(r->con);
	MHD_resume_connection(r->con);
	loop_arm(r->h->loop, &r->h->kick, 0);
}

/* The client has closed its sending side. It may still be reading: the next byte that we send tells. */
static void on_hup(struct loop_watch *w, uint32_t events)
{
	struct httpd_req *r = w->arg;
	bool broken = events & (EPOLLHUP | EPOLLERR);

	r->eof = true;
	if (broken)
		loop_del(w);
	else
		ignore_result(loop_set(w, 0));
	if (!r->suspended) {
		if (r->x.reply != HTTPD_REPLY_QUEUED) { /* else when that has been sent */
			read_again(r);
			/* There are states in which it does not, e.g. a chunk's size that fills its buffer. */
			if (r->x.reply != HTTPD_REPLY_EARLY)
				loop_arm(r->h->loop, &r->deadline, GONE_S * NS_PER_S);
		}
	} else if ((r->x.reply == HTTPD_REPLY_QUEUED || r->x.reply == HTTPD_REPLY_DUPLEX) &&
		   broken) {
		r->gone = true;
		httpd_resume(r);
	} else if (!r->x.hup_told &&
		   (r->x.reply == HTTPD_REPLY_QUEUED || (r->x.body_done && r->x.on_hup))) {
		r->x.hup_told = true;
		if (r->x.on_hup)
			r->x.on_hup(r->x.hup_arg);
	}
}

void httpd_suspend(struct httpd_req *r)
{
	MHD_suspend_connection(r->con);
	r->suspended = true;
	if ((r->x.reply != HTTPD_REPLY_QUEUED && r->x.reply != HTTPD_REPLY_DUPLEX) || !r->eof ||
	    r->x.hup_told)
		return;
	loop_del(&r->hup); /* tell again what on_hup had no use for then */
	ignore_result(loop_add(r->h->loop, &r->hup, r->fd, EPOLLRDHUP));
}

void httpd_resume(struct httpd_req *r)
{
	if (!r->suspended)
		return;
	r->suspended = false;
	MHD_resume_connection(r->con);
	loop_arm(r->h->loop, &r->h->kick, 0);
}

/* --- the three calls of a request --- */
static void refuse(struct httpd_req *r, int status, const char *detail)
{
	if (httpd_add_header(r, "Connection", "close") < 0)
		r->gone = true;
	httpd_reply_error(r, status, "%s", detail);
}

static bool body_fits(struct httpd_req *r, uint64_t n)
{
	const struct httpd_route *rt = r->x.route;
	size_t cap = rt->body == HTTPD_BODY_NONE ? HTTPD_DROP_MAX : rt->body_cap;

	return n <= cap || (rt->body == HTTPD_BODY_STREAM && cap == 0);
}

static void start_exchange(struct httpd_req *r, const char *version)
{
	struct httpd_exchange *x = &r->x;
	int status = 400;
	const char *bad = httpd_check_head(r, version, &status);
	int64_t len = httpd_content_length(r);

	if (bad) {
		refuse(r, status, bad);
		return;
	}
	x->head_good = true;
	x->route = r->h->c.any ? r->h->c.any : httpd_find_route(r);
	if (!x->route)
		return;
	buf_init(&x->body, x->route->body_cap);
	if (r->h->c.admit && !r->h->c.admit(r, x->route)) {
		if (!httpd_has_reply(r))
			refuse(r, 403, "Forbidden");
		return;
	}
	if (len > 0 && !body_fits(r, (uint64_t)len)) {
		refuse(r, 413, "request body too large");
		return;
	}
	if (x->route->body == HTTPD_BODY_STREAM)
		x->route->fn(r);
}

static bool body_follows(const struct httpd_req *r)
{
	return httpd_content_length(r) > 0 || httpd_header(r, "Transfer-Encoding");
}

static enum MHD_Result on_head(struct httpd_req *r, const char *method, const char *version)
{
	struct httpd_exchange *x = &r->x;

	x->head_seen = true;
	x->method = method;
	loop_disarm(&r->deadline);
	r->read_again = false;
	x->in_callback = true;
	start_exchange(r, version);
	x->in_callback = false;
	if (r->gone)
		return MHD_NO;
	if (x->reply == HTTPD_REPLY_READY && x->head_good && body_follows(r) &&
	    strcmp(method, "HEAD") != 0) {
		httpd_reply_early(
			r); /* the library would close at once, and the client miss the answer */
		return MHD_YES;
	}
	return httpd_has_reply(r) ? httpd_queue(r) : MHD_YES;
}

/* How many of the N bytes were taken; a reply may have been made. */
static ssize_t take_body(struct httpd_req *r, const char *p, size_t n)
{
	struct httpd_exchange *x = &r->x;

	if (!body_fits(r, x->body_bytes + n)) {
		httpd_reply_error(r, 413, "request body too large");
		return 0;
	}
	if (x->route->body == HTTPD_BODY_BUFFER) {
		if (buf_add(&x->body, p, n) < 0)
			return -ENOMEM;
		return (ssize_t)n;
	}
	return x->sink ? x->sink(x->sink_arg, p, n) : (ssize_t)n;
}

static enum MHD_Result on_body(struct httpd_req *r, const char *p, size_t *n)
{
	struct httpd_exchange *x = &r->x;
	ssize_t k = 0;

	if (r->gone)
		return MHD_NO;
	if (!httpd_has_reply(r) || x->reply == HTTPD_REPLY_DUPLEX) {
		x->in_callback = true;
		k = take_body(r, p, *n);
		x->in_callback = false;
	}
	if (x->reply == HTTPD_REPLY_READY || x->reply == HTTPD_REPLY_STREAM ||
	    x->reply == HTTPD_REPLY_FILE)
		httpd_reply_early(r);
	if (x->reply == HTTPD_REPLY_EARLY) {
		*n = 0;
		return MHD_YES;
	}
	if (k < 0 || r->h->stopping)
		return MHD_NO;
	x->body_bytes += (uint64_t)k;
	*n -= (size_t)k;
	if (*n)
		httpd_suspend(r);
	else if (x->bulk && !httpd_has_reply(r))
		x->bulk(r);
	return MHD_YES;
}

static enum MHD_Result on_complete(struct httpd_req *r)
{
	struct httpd_exchange *x = &r->x;

	if (x->reply == HTTPD_REPLY_EARLY || r->h->stopping)
		return MHD_NO; /* ends the connection */
	loop_disarm(&r->deadline);
	if (!x->body_done) {
		x->body_done = true;
		x->in_callback = true;
		if (x->route->body != HTTPD_BODY_STREAM)
			x->route->fn(r);
		else if (x->sink && (!httpd_has_reply(r) || x->reply == HTTPD_REPLY_DUPLEX) &&
			 x->sink(x->sink_arg, NULL, 0) < 0)
			r->gone = true;
		x->in_callback = false;
	}
	if (r->gone)
		return MHD_NO;
	if (httpd_has_reply(r) && x->reply != HTTPD_REPLY_DUPLEX)
		return httpd_queue(r);
	httpd_suspend(r);
	return MHD_YES;
}

static enum MHD_Result on_request(void *cls, struct MHD_Connection *con, const char *url,
				  const char *method, const char *version, const char *upload,
				  size_t *upload_size, void **req_cls)
{
	struct httpd_req *r = *req_cls;

	(void)cls;
	(void)con;
	(void)url;
	if (!r)
		return MHD_NO;
	if (!r->x.head_seen)
		return on_head(r, method, version);
	return *upload_size ? on_body(r, upload, upload_size) : on_complete(r);
}

/* --- the library's other calls --- */
static void want_head(struct httpd_req *r)
{
	loop_arm(r->h->loop, &r->deadline, (int64_t)r->h->c.idle_s * NS_PER_S);
}

static void on_deadline(struct loop_timer *t)
{
	struct httpd_req *r = t->arg;

	if (r->read_again && !r->suspended) {
		r->read_again = false;
		want_head(r);
		read_again(r);
		return;
	}
	if (r->suspended && !r->x.in_bulk)
		return;			  /* what it waits for has its own */
	(void)shutdown(r->fd, SHUT_RDWR); /* the library sees the end and closes */
	httpd_set_timeout(r, 1);	  /* or, where it does not look, its own limit does */
}

static void connection_begins(struct httpd *h, struct MHD_Connection *con, void **ctx)
{
	const union MHD_ConnectionInfo *ci =
		MHD_get_connection_info(con, MHD_CONNECTION_INFO_CONNECTION_FD);
	struct httpd_req *r = ci ? calloc(1, sizeof(*r)) : NULL;

	*ctx = r;
	if (!r)
		return; /* on_target then finds nothing and the request is cut */
	r->h = h;
	r->con = con;
	r->fd = ci->connect_fd;
	r->hup = (struct loop_watch)LOOP_WATCH_INIT;
	r->hup.fn = on_hup;
	r->hup.arg = r;
	ignore_result(loop_add(h->loop, &r->hup, r->fd, EPOLLRDHUP)); /* else the deadline tells */
	r->deadline.fn = on_deadline;
	r->deadline.arg = r;
	r->timeout_s = h->c.idle_s;
	r->next = h->conns;
	if (r->next)
		r->next->prev = r;
	h->conns = r;
	h->nconns++;
	want_head(r);
}

static void connection_ends(struct httpd_req *r)
{
	struct httpd *h = r->h;

	loop_disarm(&r->deadline);
	loop_del(&r->hup);
	if (r->prev)
		r->prev->next = r->next;
	else
		h->conns = r->next;
	if (r->next)
		r->next->prev = r->prev;
	h->nconns--;
	free(r);
}

static void on_connection(void *cls, struct MHD_Connection *con, void **ctx,
			  enum MHD_ConnectionNotificationCode code)
{
	if (code == MHD_CONNECTION_NOTIFY_STARTED)
		connection_begins(cls, con, ctx);
	else if (*ctx)
		connection_ends(*ctx);
}

/* The request line has been read: the only place where the target is seen as it was sent. */
static void *on_target(void *cls, const char *uri, struct MHD_Connection *con)
{
	const union MHD_ConnectionInfo *ci =
		MHD_get_connection_info(con, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
	struct httpd_req *r = ci ? ci->socket_context : NULL;

	(void)cls;
	if (!r)
		return NULL;
	r->x.raw_uri = uri;
	r->x.raw_end = uri ? uri + strlen(uri) : NULL;
	if (!uri)
		r->x.status = -EINVAL;
	else if (r->h->c.any)
		r->x.status = httpd_target_keep(&r->x.target, uri);
	else
		r->x.status = httpd_target_parse(&r->x.target, uri);
	return r;
}

static void on_completed(void *cls, struct MHD_Connection *con, void **req_cls,
			 enum MHD_RequestTerminationCode code)
{
	struct httpd_req *r = *req_cls;
	struct httpd_exchange *x;

	(void)cls;
	(void)con;
	(void)code;
	if (!r)
		return;
	*req_cls = NULL;
	x = &r->x;
	x->ended = true;
	if (x->on_end)
		x->on_end(x->end_arg);
	httpd_reply_done(x);
	buf_done(&x->body);
	httpd_target_done(&x->target);
	*x = (struct httpd_exchange){ 0 };
	httpd_set_timeout(r, r->h->c.idle_s);
	want_head(r);
	r->read_again = r->eof;
	if (r->read_again)
		loop_arm(r->h->loop, &r->deadline, 0);
}

/* Identity: the target is decoded by httpd_target_parse, once. */
static size_t no_unescape(void *cls, struct MHD_Connection *con, char *s)
{
	(void)cls;
	(void)con;
	return strlen(s);
}

/* --- start and stop --- */
static struct MHD_Daemon *start_library(struct httpd *h)
{
	return MHD_start_daemon(MHD_USE_EPOLL | MHD_ALLOW_UPGRADE | MHD_ALLOW_SUSPEND_RESUME, 0,
				NULL, NULL, on_request, h, MHD_OPTION_LISTEN_SOCKET,
				(MHD_socket)h->c.listen_fd, MHD_OPTION_CONNECTION_LIMIT,
				h->c.max_conns, MHD_OPTION_CONNECTION_TIMEOUT, h->c.idle_s,
				MHD_OPTION_CONNECTION_MEMORY_LIMIT,
				h->c.pool ? h->c.pool : (size_t)POOL_BYTES,
				MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_NOTIFY_CONNECTION,
				on_connection, h, MHD_OPTION_NOTIFY_COMPLETED, on_completed, h,
				MHD_OPTION_URI_LOG_CALLBACK, on_target, h,
				MHD_OPTION_UNESCAPE_CALLBACK, no_unescape, h, MHD_OPTION_END);
}

int httpd_start(struct loop *l, const struct httpd_config *c, struct httpd **ret)
{
	AUTO_FD listener = c->listen_fd;
	struct httpd *h = calloc(1, sizeof(*h));
	const union MHD_DaemonInfo *di;
	int r;

	if (!h)
		return -ENOMEM;
	h->c = *c;
	h->loop = l;
	h->watch = (struct loop_watch)LOOP_WATCH_INIT;
	h->watch.fn = on_event;
	h->watch.arg = h->kick.arg = h;
	h->kick.fn = on_kick;
	h->daemon = start_library(h);
	if (!h->daemon) {
		r = errno ? -errno : -EIO;
		free(h);
		return r;
	}
	(void)fd_take(&listener); /* the library closes it */
	di = MHD_get_daemon_info(h->daemon, MHD_DAEMON_INFO_EPOLL_FD);
	r = di ? loop_add(l, &h->watch, di->epoll_fd, EPOLLIN) : -EIO;
	if (r < 0) {
		MHD_stop_daemon(h->daemon);
		free(h);
		return r;
	}
	h->prepare.fn = on_prepare;
	h->prepare.arg = h;
	loop_add_prepare(l, &h->prepare);
	loop_arm(l, &h->kick, 0); /* the listener joins its epoll set at the first run */
	*ret = h;
	return 0;
}

void httpd_stop(struct httpd *h)
{
	if (!h)
		return;
	h->stopping = true;
	for (struct httpd_req *r = h->conns; r; r = r->next)
		httpd_resume(r); /* the library cannot stop with suspended connections */
	loop_del_prepare(h->loop, &h->prepare);
	loop_del(&h->watch);
	MHD_stop_daemon(h->daemon);
	loop_disarm(&h->kick);
	free(h);
}

unsigned httpd_connections(const struct httpd *h)
{
	return h->nconns;
}

void httpd_drain_soon(struct httpd_req *r)
{
	loop_arm(r->h->loop, &r->deadline, DRAIN_S * NS_PER_S);
}
