/* SPDX-License-Identifier: Apache-2.0 */
#include "host/core/forward.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host/agent/relay.h"
#include "host/cli/out.h"
#include "host/proxy/proxy.h"
#include "lib/fd.h"
#include "lib/loop.h"
#include "lib/proto.h"
#include "lib/str.h"

/*
 * TCP ports of this machine that lead into a sandbox. One process listens and has a child look after the
 * sandbox's state. Where the backend opens streams, each connection gets a child of its own, so that opening one, which blocks until
 * the guest has answered, and a slow reader hold up no other. Where it has a route, which takes HTTP alone, the proxy serves them all.
 * Children die with us.
 */

#define CHILDREN_MAX	200 /* connections at a time; further ones wait in the backlog */
#define CONNECT_NS	(20LL * 1000000000)
#define BACKLOG		128
#define UNREACHABLE_MAX 3
#define LOOK_LEAST_MS	100

enum { CHILD_FINE = 0, CHILD_REFUSED = 3 };
/* What the looker says, a byte each time: the sandbox's state, ... */
enum { LOOK_ENDED = 32 /* ... added: it does not go on */, LOOK_MISSING = 64, LOOK_FAILED };
static_assert((int)SANDBOX_STATE_COUNT < (int)LOOK_ENDED, "one range for each");

struct forward;

struct port {
	struct forward *f;
	struct port_spec spec;
	struct loop_watch watch;
	int fd;	   /* owned; -1 = not listening */
	bool told; /* that the guest refuses it, until it does not */
};

struct child {
	pid_t pid; /* 0 = free */
	struct port *port;
};

struct forward {
	struct core_named *n;
	struct loop loop;
	struct loop_timer poll;
	int64_t poll_ns;
	pid_t looker;		/* asks for the sandbox's state; 0 = none */
	struct loop_watch seen; /* its descriptor: where the looker tells; -1 = none */
	struct proxy *proxy;	/* owned; NULL: connections are children's */
	struct port ports[FORWARD_MAX];
	unsigned len;
	struct child children[CHILDREN_MAX];
	unsigned busy, failures;
};

static int check_hook_port(const struct port_spec *p, struct err *e)
{
	const char *var = getenv("AGENT_SANDBOX_HOOK_PORT");
	uint64_t hook = PROTO_HOOK_PORT;

	if (var && str_to_u64(var, 1, 65535, &hook) < 0)
		return err_set(e, ERR_INVALID, 0, "$AGENT_SANDBOX_HOOK_PORT is no port: %.40s",
			       var);
	if (p->remote != hook)
		return 0;
	return err_set(
		e, ERR_DENIED, 0,
		"port %u is the reserved lifecycle-hook port and cannot be forwarded (it is "
		"the platform's private control plane). Set $AGENT_SANDBOX_HOOK_PORT if your "
		"image uses a different hook port.",
		p->remote);
}

/* --- listening --- */

static socklen_t make_address(const struct port_spec *p, struct sockaddr_storage *ret)
{
	struct sockaddr_in *four = (struct sockaddr_in *)(void *)ret;
	struct sockaddr_in6 *six = (struct sockaddr_in6 *)(void *)ret;

	memset(ret, 0, sizeof(*ret));
	if (inet_pton(AF_INET, p->address, &four->sin_addr) == 1) {
		four->sin_family = AF_INET;
		four->sin_port = htons(p->local);
		return sizeof(*four);
	}
	if (inet_pton(AF_INET6, p->address, &six->sin6_addr) != 1)
		return 0;
	six->sin6_family = AF_INET6;
	six->sin6_port = htons(p->local);
	return sizeof(*six);
}

/* The port that the kernel has picked. */
static int read_port(struct port *p)
{
	union {
		struct sockaddr any;
		struct sockaddr_in four;
		struct sockaddr_in6 six;
	} a;
	socklen_t len = sizeof(a);

	memset(&a, 0, sizeof(a));
	if (getsockname(p->fd, &a.any, &len) < 0)
		return -errno;
	p->spec.local = ntohs(a.any.sa_family == AF_INET ? a.four.sin_port : a.six.sin6_port);
	return 0;
}

static int bind_port(struct port *p)
{
	struct sockaddr_storage a;
	socklen_t len = make_address(&p->spec, &a);
	int on = 1;

	p->fd = socket(a.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (p->fd < 0)
		return -errno;
	if (setsockopt(p->fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0)
		return -errno;
	if (a.ss_family == AF_INET6 &&
	    setsockopt(p->fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on)) < 0)
		return -errno;
	if (bind(p->fd, (struct sockaddr *)&a, len) < 0 || listen(p->fd, BACKLOG) < 0)
		return -errno;
	return read_port(p);
}

/* --- connections --- */

static void tell_refused(const struct port *p, const struct err *e)
{
	if (!p->told)
		out_warn("port %u: %s", p->spec.remote, e->msg);
}

/* In a child: no signal is ours to take, and it ends with its parent. */
static bool begin_child(pid_t parent)
{
	sigset_t none;

	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	return prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && getppid() == parent;
}

/*
 * The child: from here on there is nothing but FD and one connection into the sandbox. Unless both
 * directions came to their ends FD is reset, also when we are killed.
 */
NORETURN static void serve(const struct port *p, int fd, pid_t parent)
{
	struct core_named *n = p->f->n;
	const struct linger reset = { .l_onoff = 1 }, orderly = { .l_onoff = 0 };
	struct err e = ERR_INIT;
	int guest, end;

	if (setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset)) < 0 ||
	    !begin_child(parent) || dup2(fd, 3) < 0)
		_exit(1);
	fd_close_from(4);
	if (core_wake(n, &e) < 0 ||
	    n->backend->connect(n->record.microvm_id, p->spec.remote, loop_now() + CONNECT_NS,
				&guest, &end, &e) < 0) {
		tell_refused(p, &e);
		_exit(CHILD_REFUSED);
	}
	core_let_go(n); /* from here on only bytes keep it awake */
	if (relay(3, guest, end) == 0)
		(void)setsockopt(3, SOL_SOCKET, SO_LINGER, &orderly, sizeof(orderly));
	_exit(CHILD_FINE);
}

static void listen_events(struct forward *f, uint32_t events)
{
	for (unsigned i = 0; i < f->len; i++)
		ignore_result(loop_set(&f->ports[i].watch, events)); /* they are there already */
}

static void on_connection(struct loop_watch *w, uint32_t events)
{
	struct port *p = w->arg;
	struct forward *f = p->f;
	unsigned slot = 0;
	int on = 1;
	AUTO_FD fd = accept4(w->fd, NULL, NULL, SOCK_CLOEXEC);
	pid_t pid, parent = getpid();

	(void)events;
	if (fd < 0)
		return;
	(void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	while (slot < CHILDREN_MAX && f->children[slot].pid)
		slot++;
	pid = slot < CHILDREN_MAX ? fork() : -1;
	if (pid == 0)
		serve(p, fd, parent);
	if (pid < 0)
		return;
	f->children[slot] = (struct child){ pid, p };
	if (++f->busy == CHILDREN_MAX)
		listen_events(f, 0);
}

static void end_child(struct forward *f, pid_t pid, int status)
{
	for (unsigned i = 0; i < CHILDREN_MAX; i++) {
		struct child *k = &f->children[i];

		if (k->pid != pid)
			continue;
		k->port->told = WIFEXITED(status) && WEXITSTATUS(status) == CHILD_REFUSED;
		k->pid = 0;
		if (f->busy-- == CHILDREN_MAX)
			listen_events(f, EPOLLIN);
	}
}

/* --- the sandbox --- */

/* One that is suspended whenever it is idle goes on with the next connection. */
static bool may_go_on(const struct sandbox_info *i)
{
	return i->state == SANDBOX_RUNNING || i->state == SANDBOX_PENDING ||
	       i->state == SANDBOX_UNKNOWN ||
	       (i->idle_timeout_ms > 0 &&
		(i->state == SANDBOX_SUSPENDING || i->state == SANDBOX_SUSPENDED));
}

static uint8_t look(const struct forward *f)
{
	struct sandbox_info i;
	int r = f->n->backend->info(f->n->record.microvm_id, &i, NULL);

	if (r < 0)
		return r == -ENOENT ? LOOK_MISSING : LOOK_FAILED;
	return (uint8_t)((int)i.state + (may_go_on(&i) ? 0 : LOOK_ENDED));
}

/*
 * The child that looks: where the platform is far away, that may take as long as it likes. It stays, because there each one that begins
 * has to find credentials and to connect.
 */
NORETURN static void keep_looking(const struct forward *f, int fd, pid_t parent)
{
	int64_t ms = f->poll_ns / 1000000;
	uint8_t seen;

	if (!begin_child(parent) || dup2(fd, 3) < 0)
		_exit(1);
	fd_close_from(4);
	do {
		seen = look(f);
		if (fd_write_all(3, &seen, 1) < 0)
			_exit(1);
		(void)poll(NULL, 0, ms > LOOK_LEAST_MS ? (int)ms : LOOK_LEAST_MS);
	} while (getppid() == parent);
	_exit(0);
}

static void on_poll(struct loop_timer *t)
{
	struct forward *f = t->arg;
	pid_t parent = getpid(), pid = -1;
	int ends[2];

	if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) == 0) {
		pid = fork();
		if (pid == 0)
			keep_looking(f, ends[1], parent);
		fd_close(&ends[1]);
		if (pid < 0 || loop_add(&f->loop, &f->seen, ends[0], EPOLLIN) < 0)
			fd_close(&ends[0]); /* a looker ends at its next word */
	}
	if (f->seen.fd >= 0)
		f->looker = pid;
	else
		loop_arm(&f->loop, &f->poll, f->poll_ns);
}

static void end_looker(struct forward *f)
{
	int fd = f->seen.fd;

	loop_del(&f->seen);
	fd_close(&fd);
	if (f->looker)
		(void)kill(f->looker, SIGKILL);
	f->looker = 0;
}

static void looked(struct forward *f, uint8_t seen)
{
	const char *name = f->n->record.name, *state = NULL;

	f->failures = seen == LOOK_FAILED ? f->failures + 1 : 0;
	if (seen < LOOK_MISSING)
		proxy_told(f->proxy, seen == SANDBOX_RUNNING);
	if (seen == LOOK_MISSING)
		state = "MISSING";
	else if (seen >= LOOK_ENDED && seen < LOOK_MISSING)
		state = sandbox_state_name((enum sandbox_state)(seen - LOOK_ENDED));
	if (state)
		out_note("%s is no longer running (%s); disconnecting", name, state);
	else if (f->failures == UNREACHABLE_MAX)
		out_note("%s is unreachable; disconnecting", name);
	if (state || f->failures == UNREACHABLE_MAX)
		loop_stop(&f->loop);
}

static void on_seen(struct loop_watch *w, uint32_t events)
{
	struct forward *f = w->arg;
	uint8_t words[64];
	ssize_t n = read(w->fd, words, sizeof(words));

	(void)events;
	if (n > 0) {
		looked(f, words[n - 1]);
		return;
	}
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	end_looker(f); /* another one begins */
	looked(f, LOOK_FAILED);
	loop_arm(&f->loop, &f->poll, f->poll_ns);
}

static void reap(struct forward *f)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		if (pid == f->looker)
			f->looker = 0; /* what it had to say is in the pipe, and then its end */
		else if (!proxy_reaped(f->proxy, pid, status))
			end_child(f, pid, status);
	}
}

static void on_signal(void *arg, const void *siginfo)
{
	const struct signalfd_siginfo *si = siginfo;
	struct forward *f = arg;

	if (si->ssi_signo == SIGCHLD) {
		reap(f);
		return;
	}
	out_note("stopped");
	loop_stop(&f->loop);
}

static int check_running(const struct forward *f, struct err *e)
{
	struct sandbox_info i = { .state = SANDBOX_UNKNOWN };
	int r = core_wake(f->n, e);

	core_let_go(f->n); /* each connection looks for itself */
	if (r == 0)
		r = f->n->backend->info(f->n->record.microvm_id, &i, e);
	if (r < 0)
		return r;
	if (may_go_on(&i))
		return 0;
	return err_set(e, ERR_UNAVAILABLE, 0, "'%s' is not running (%s)", f->n->record.name,
		       sandbox_state_name(i.state));
}

static int add(struct forward *f, const struct port_spec *spec, struct err *e)
{
	struct port *p = &f->ports[f->len];
	int r = check_hook_port(spec, e);

	if (r < 0)
		return r;
	*p = (struct port){ .f = f, .spec = *spec, .watch = LOOP_WATCH_INIT, .fd = -1 };
	p->watch.fn = on_connection;
	p->watch.arg = p;
	f->len++;
	return 0;
}

static int listen_all(struct forward *f, struct err *e)
{
	for (unsigned i = 0; i < f->len; i++) {
		struct port *p = &f->ports[i];
		int r = bind_port(p);

		if (r == 0 && !f->proxy)
			r = loop_add(&f->loop, &p->watch, p->fd, EPOLLIN);
		if (r < 0)
			return err_set(e, ERR_IO, -r, "cannot listen on port %u of %s",
				       p->spec.local, p->spec.address);
		if (f->proxy)
			r = proxy_listen(f->proxy, fd_take(&p->fd), &p->spec, e);
		if (r < 0)
			return r;
	}
	return 0;
}

/* Where there is a route, HTTP to the guest takes it. */
static int open_proxy(struct forward *f, struct err *e)
{
	const struct proxy_config c = { .loop = &f->loop,
					.backend = f->n->backend,
					.id = f->n->record.microvm_id,
					.name = f->n->record.name };
	struct port_spec specs[FORWARD_MAX];

	if (!f->n->backend->route)
		return 0;
	for (unsigned i = 0; i < f->len; i++)
		specs[i] = f->ports[i].spec;
	return proxy_open(&c, specs, f->len, &f->proxy, e);
}

static int start(struct forward *f, struct err *e)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP, SIGCHLD };
	sigset_t set;
	int r = check_running(f, e);

	if (r == 0)
		r = open_proxy(f, e);
	if (r == 0)
		r = listen_all(f, e);
	if (r < 0)
		return r;
	(void)sigemptyset(&set);
	for (size_t i = 0; i < ARRAY_LEN(signals); i++)
		(void)sigaddset(&set, signals[i]);
	r = loop_signals(&f->loop, &set, on_signal, f);
	loop_arm(&f->loop, &f->poll, f->poll_ns);
	return r < 0 ? err_set(e, ERR_INTERNAL, -r, "waiting for connections") : 0;
}

int forward_open(struct core_named *n, const struct port_spec *ports, unsigned len, int64_t poll_ns,
		 struct forward **ret, struct err *e)
{
	struct forward *f = calloc(1, sizeof(*f));
	int r = f ? loop_init(&f->loop) : -ENOMEM;

	if (r < 0) {
		free(f);
		return err_set(e, ERR_INTERNAL, -r, "forwarding");
	}
	f->n = n;
	f->poll_ns = poll_ns;
	f->poll = (struct loop_timer)LOOP_TIMER_INIT;
	f->poll.fn = on_poll;
	f->poll.arg = f;
	f->seen = (struct loop_watch)LOOP_WATCH_INIT;
	f->seen.fn = on_seen;
	f->seen.arg = f;
	for (unsigned i = 0; i < len && r == 0; i++)
		r = i < FORWARD_MAX ? add(f, &ports[i], e)
				    : err_set(e, ERR_USAGE, E2BIG, "at most %d ports at a time",
					      FORWARD_MAX);
	if (r == 0)
		r = start(f, e);
	if (r < 0)
		forward_close(f);
	else
		*ret = f;
	return r;
}

bool forward_possible(const struct backend *b)
{
	return b->connect || b->route;
}

bool forward_is_http(const struct forward *f)
{
	return f->proxy != NULL;
}

const struct port_spec *forward_port(const struct forward *f, unsigned i)
{
	return i < f->len ? &f->ports[i].spec : NULL;
}

int forward_run(struct forward *f, struct err *e)
{
	int r = loop_run(&f->loop);

	return r < 0 ? err_set(e, ERR_INTERNAL, -r, "forwarding") : 0;
}

void forward_close(struct forward *f)
{
	loop_disarm(&f->poll);
	proxy_close(f->proxy);
	end_looker(f);
	for (unsigned i = 0; i < f->len; i++) {
		loop_del(&f->ports[i].watch);
		fd_close(&f->ports[i].fd);
	}
	for (unsigned i = 0; i < CHILDREN_MAX; i++)
		if (f->children[i].pid)
			(void)kill(f->children[i].pid, SIGKILL);
	loop_done(&f->loop);
	free(f);
}
