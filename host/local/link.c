/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "host/local/vm.h"
#include "lib/bridge.h"
#include "lib/fd.h"
#include "lib/log.h"
#include "lib/sock.h"
#include "lib/str.h"

/*
 * link.sock: "CONNECT <port>\n", answered by "OK\n" or "ERR <code>: <message>\n" (code:
 * err_code_name), then bytes: the convention of Firecracker's vsock socket. On a Unix socket an end
 * of file is all that a cut shows, too; so the line may bring a socket along, which gets a byte
 * when the guest has ended its direction, before that end is passed on.
 *
 * A connection goes: asking (its line is peeked at, so that bytes behind it stay in the socket; half a line stays there too, so
 * only what is new wakes us: EPOLLET) ->
 * waiting for the channel (asb-portd may be restarting) -> opening the stream -> bridged.
 */

#define LINK_MAX   CHAN_STREAMS_MAX
#define LINE_MAX_  16		 /* "CONNECT 65535\n" */
#define ASK_NS	   10000000000LL /* to say what is wanted */
#define CHANNEL_NS 5000000000LL	 /* for the channel to come up */
#define HOOK_NS	   60000000000LL /* the same for a hook, which hangs up at a limit of its own */
#define UNDO_NS	   60000000000LL /* for a suspension to be undone */
#define OPEN_NS	   20000000000LL /* for the guest to answer; asb-portd gives up after 10 s */

enum conn_state { ASKING, WAITING, OPENING, BRIDGED };

struct conn {
	struct vm *vm;
	struct conn *next, **pprev;
	enum conn_state state;
	struct loop_watch watch; /* until bridged */
	struct loop_timer deadline;
	struct chan_stream *stream; /* while opening */
	struct bridge bridge;
	int fd;	 /* until bridged */
	int end; /* the socket that came with the line, or -1 */
	uint16_t port;
	bool silent;   /* adopted: neither asks nor wants an OK */
	int64_t moved; /* loop_now: when it asked, or a byte came for it */
};

struct link {
	struct loop_watch watch;
	struct conn *conns;
	int fd;
	int count;
	int64_t moved; /* of those that are gone */
};

static int64_t conn_moved(const struct conn *c)
{
	if (c->silent)
		return 0;
	return c->bridge.read_at > c->moved ? c->bridge.read_at : c->moved;
}

int64_t link_moved(const struct vm *vm)
{
	int64_t last = vm->link ? vm->link->moved : 0;

	for (const struct conn *c = vm->link ? vm->link->conns : NULL; c; c = c->next)
		if (conn_moved(c) > last)
			last = conn_moved(c);
	return last;
}

static void conn_free(struct conn *c)
{
	struct link *l = c->vm->link;

	if (conn_moved(c) > l->moved)
		l->moved = conn_moved(c);
	loop_del(&c->watch);
	loop_disarm(&c->deadline);
	if (c->state == OPENING && c->stream)
		chan_reset(c->stream);
	bridge_stop(&c->bridge);
	fd_close(&c->fd);
	fd_close(&c->end);
	*c->pprev = c->next;
	if (c->next)
		c->next->pprev = c->pprev;
	l->count--;
	free(c);
}

static void refuse(struct conn *c, enum err_code code, const char *message)
{
	char line[200];

	if (!c->silent &&
	    str_format(line, sizeof(line), "ERR %s: %s\n", err_code_name(code), message) == 0 &&
	    send(c->fd, line, strlen(line), MSG_DONTWAIT | MSG_NOSIGNAL) < 0) {
		/* gone already */
	}
	conn_free(c);
}

/* --- the stream --- */
static void on_ended(struct bridge *b, int error)
{
	(void)error;
	conn_free(CONTAINER_OF(b, struct conn, bridge));
}

static void on_opened(void *arg)
{
	struct conn *c = arg;
	struct chan_stream *s = c->stream;

	loop_del(&c->watch);
	loop_disarm(&c->deadline);
	if (!c->silent && send(c->fd, "OK\n", 3, MSG_DONTWAIT | MSG_NOSIGNAL) != 3) {
		conn_free(c);
		return;
	}
	c->state = BRIDGED;
	c->stream = NULL;
	if (bridge_start(&c->bridge, &c->vm->loop, s, fd_take(&c->fd), on_ended) < 0)
		conn_free(c);
}

static size_t on_data(void *arg, const void *p, size_t n)
{
	struct conn *c = arg;

	c->moved = loop_now();
	if (n == 0 && c->end >= 0) {
		/* One that does not take it sees a cut. */
		(void)send(c->end, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
		fd_close(&c->end);
	}
	return c->state == BRIDGED ? bridge_ops.data(&c->bridge, p, n) : 0;
}

static void on_writable(void *arg)
{
	struct conn *c = arg;

	if (c->state == BRIDGED)
		bridge_ops.writable(&c->bridge);
}

static void on_closed(void *arg, int error)
{
	struct conn *c = arg;
	char text[160];

	if (c->state == BRIDGED) {
		bridge_ops.closed(&c->bridge, error);
		return;
	}
	c->stream = NULL;
	if (error == -ECONNREFUSED)
		(void)snprintf(text, sizeof(text), "nothing listens on port %u in the sandbox",
			       c->port);
	else
		(void)snprintf(text, sizeof(text), "port %u in the sandbox: %s", c->port,
			       strerror(-error));
	refuse(c, ERR_UNAVAILABLE, text);
}

static const struct chan_stream_ops stream_ops = { on_opened, on_data, on_writable, on_closed };

/* Opens the stream, or waits for the channel. C may be gone afterwards. */
static void go(struct conn *c)
{
	struct vm *vm = c->vm;
	int r;

	if (!c->silent && idle_interrupt(vm)) {
		c->state = WAITING;
		loop_arm(&vm->loop, &c->deadline, UNDO_NS);
		return;
	}
	if (vm->phase != VM_RUNNING && !c->silent) {
		refuse(c, ERR_UNAVAILABLE,
		       vm->phase == VM_SUSPENDED || vm->phase == VM_SUSPENDING
			       ? "the sandbox is suspended"
			       : "the sandbox is not running");
		return;
	}
	r = vm->chan ? chan_connect(vm->chan, c->port, &stream_ops, c, &c->stream) : -ENOTCONN;
	if (r == 0) {
		c->state = OPENING;
		loop_arm(&vm->loop, &c->deadline, OPEN_NS);
	} else if (r == -ENOTCONN) {
		c->state = WAITING;
		loop_arm(&vm->loop, &c->deadline, c->silent ? HOOK_NS : CHANNEL_NS);
	} else {
		refuse(c, r == -EMFILE ? ERR_FULL : ERR_INTERNAL,
		       r == -EMFILE ? "too many connections to the sandbox" : "out of memory");
	}
}

/* --- the socket --- */
/* The port that the line asks for: 0 when it is not whole yet, -EINVAL. Takes the line out of the
 * socket, and what came with it into *RET_END. */
static int read_request(int fd, int *ret_end)
{
	char line[LINE_MAX_ + 1];
	ssize_t n = recv(fd, line, LINE_MAX_, MSG_PEEK | MSG_DONTWAIT);
	char *nl;
	uint64_t port;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n <= 0)
		return -EINVAL;
	line[n] = '\0';
	nl = memchr(line, '\n', (size_t)n);
	if (!nl)
		return n == LINE_MAX_ ? -EINVAL : 0;
	*nl = '\0';
	if (!str_starts(line, "CONNECT ") || str_to_u64(line + 8, 1, 65535, &port) < 0)
		return -EINVAL;
	n = nl - line + 1;
	return sock_recv_fd(fd, line, (size_t)n, ret_end) == n ? (int)port : -EINVAL;
}

static void on_conn(struct loop_watch *w, uint32_t events)
{
	struct conn *c = w->arg;
	int port;

	if (c->state != ASKING) { /* only that it has hung up is told */
		conn_free(c);
		return;
	}
	port = read_request(c->fd, &c->end);
	if (port < 0 || (port == 0 && (events & (EPOLLHUP | EPOLLERR)))) {
		refuse(c, ERR_INVALID, "expected CONNECT <port>");
	} else if (port > 0) {
		c->port = (uint16_t)port;
		c->moved = loop_now();
		if (loop_set(&c->watch, 0) < 0)
			conn_free(c);
		else
			go(c);
	}
}

static void on_deadline(struct loop_timer *t)
{
	struct conn *c = t->arg;

	if (c->state == ASKING)
		refuse(c, ERR_TIMEOUT, "no request came");
	else if (c->state == WAITING)
		refuse(c, ERR_UNAVAILABLE, "the sandbox does not answer on its channel");
	else
		refuse(c, ERR_TIMEOUT, "the sandbox did not answer");
}

/* FD is owned, also on failure. */
static int conn_new(struct vm *vm, int fd, struct conn **ret)
{
	struct link *l = vm->link;
	struct conn *c = l->count < LINK_MAX ? calloc(1, sizeof(*c)) : NULL;

	if (!c) {
		fd_close(&fd);
		return l->count < LINK_MAX ? -ENOMEM : -EMFILE;
	}
	c->vm = vm;
	c->fd = fd;
	c->bridge.fd = c->end = -1;
	c->watch = (struct loop_watch)LOOP_WATCH_INIT;
	c->watch.fn = on_conn;
	c->deadline.fn = on_deadline;
	c->watch.arg = c->deadline.arg = c;
	c->next = l->conns;
	c->pprev = &l->conns;
	if (c->next)
		c->next->pprev = &c->next;
	l->conns = c;
	l->count++;
	*ret = c;
	return 0;
}

static void on_listener(struct loop_watch *w, uint32_t events)
{
	struct vm *vm = w->arg;

	(void)events;
	for (int i = 0; i < 16; i++) {
		struct conn *c;
		int fd;

		if (sock_accept(w->fd, &fd) < 0 || conn_new(vm, fd, &c) < 0)
			return;
		loop_arm(&vm->loop, &c->deadline, ASK_NS);
		if (loop_add(&vm->loop, &c->watch, c->fd, EPOLLIN | EPOLLET) < 0)
			conn_free(c);
	}
}

int link_adopt(struct vm *vm, int fd, uint16_t port)
{
	struct conn *c;
	int r = conn_new(vm, fd, &c);

	if (r < 0)
		return r;
	c->silent = true;
	c->port = port;
	r = loop_add(&vm->loop, &c->watch, c->fd, 0);
	if (r < 0) {
		conn_free(c);
		return r;
	}
	go(c); /* a failure closes FD, which its other end sees */
	return 0;
}

void link_channel_up(struct vm *vm)
{
	struct conn *c, *next;

	for (c = vm->link ? vm->link->conns : NULL; c; c = next) {
		next = c->next;
		if (c->state == WAITING)
			go(c);
	}
}

void link_cut(struct vm *vm)
{
	struct conn *c, *next;

	for (c = vm->link ? vm->link->conns : NULL; c; c = next) {
		next = c->next;
		if (c->state == OPENING || c->state == BRIDGED)
			conn_free(c);
	}
}

int link_start(struct vm *vm, struct err *e)
{
	struct link *l = calloc(1, sizeof(*l));
	int r;

	if (!l)
		return err_set(e, ERR_INTERNAL, ENOMEM, "link.sock");
	l->watch = (struct loop_watch)LOOP_WATCH_INIT;
	l->watch.fn = on_listener;
	l->watch.arg = vm;
	vm->link = l;
	r = sock_listen("link.sock", 0600, &l->fd);
	if (r < 0)
		l->fd = -1;
	else
		r = loop_add(&vm->loop, &l->watch, l->fd, EPOLLIN);
	return r < 0 ? err_set(e, ERR_IO, -r, "link.sock") : 0;
}

void link_stop(struct vm *vm)
{
	struct link *l = vm->link;

	if (!l)
		return;
	loop_del(&l->watch);
	if (l->fd >= 0)
		(void)unlink("link.sock");
	fd_close(&l->fd);
	for (struct conn *c = l->conns, *next; c; c = next) {
		next = c->next;
		conn_free(c);
	}
	vm->link = NULL;
	free(l);
}
