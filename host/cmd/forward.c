/* SPDX-License-Identifier: Apache-2.0 */
#include <arpa/inet.h>
#include <cJSON.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
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
#include "host/cli/ports.h"
#include "host/cmd/cmd.h"
#include "host/cmd/common.h"
#include "lib/fd.h"
#include "lib/jsn.h"
#include "lib/loop.h"
#include "lib/proto.h"
#include "lib/str.h"

/*
 * TCP ports of this machine that lead into a sandbox. One process listens and looks after the
 * sandbox's state; each connection gets a child of its own, so that opening one, which blocks until
 * the guest has answered, and a slow reader hold up no other. Children die with us.
 */

#define FORWARD_MAX	64  /* ports */
#define CHILDREN_MAX	200 /* connections at a time; further ones wait in the backlog */
#define CONNECT_NS	(20LL * 1000000000)
#define BACKLOG		128
#define UNREACHABLE_MAX 3

enum { CHILD_FINE = 0, CHILD_REFUSED = 3 };

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
	const struct cli *c;
	struct core_named *n;
	struct loop loop;
	struct loop_timer poll;
	int64_t poll_ns;
	struct port ports[FORWARD_MAX];
	unsigned len;
	struct child children[CHILDREN_MAX];
	unsigned busy, failures;
};

/* --- what is wanted --- */

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

static int add(struct forward *f, const struct port_spec *spec, struct err *e)
{
	struct port *p = &f->ports[f->len];

	if (f->len == FORWARD_MAX)
		return err_set(e, ERR_USAGE, E2BIG, "at most %d ports at a time", FORWARD_MAX);
	*p = (struct port){ .f = f, .spec = *spec, .watch = LOOP_WATCH_INIT, .fd = -1 };
	if (!p->spec.address[0])
		ignore_result(str_format(p->spec.address, sizeof(p->spec.address), "%s",
					 f->c->val[OPT_ADDRESS].text)); /* it fits: checked */
	f->len++;
	return check_hook_port(spec, e);
}

static int usage(struct err *e, const char *text)
{
	(void)err_set(e, ERR_USAGE, 0, "%s", text);
	return -EINVAL;
}

static int collect(struct forward *f, struct err *e)
{
	const struct opt_value *remote = &f->c->val[OPT_REMOTE_PORT],
			       *local = &f->c->val[OPT_LOCAL_PORT];
	struct port_spec p;
	int r = 0;

	if (remote->set) {
		p = (struct port_spec){ .remote = (uint16_t)remote->number };
		p.local = local->set ? (uint16_t)local->number : p.remote;
		r = add(f, &p, e);
	} else if (local->set) {
		return usage(e, "--local-port goes with --remote-port");
	}
	for (unsigned i = 1; i < f->c->names_len && r == 0; i++)
		r = ports_parse(f->c->names[i], &p) == 0 ? add(f, &p, e) : usage(e, "not a port");
	if (r == 0 && f->len == 0)
		return usage(e, "a port is missing, such as: asb forward app 8080:80");
	return r;
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

static bool is_six(const struct port *p)
{
	return strchr(p->spec.address, ':') != NULL;
}

static int print_port(const struct port *p, const char *name)
{
	char where[80];
	AUTO_JSN *j = NULL;
	char *text;
	int r;

	ignore_result(str_format(where, sizeof(where), is_six(p) ? "[%s]:%u" : "%s:%u",
				 p->spec.address, p->spec.local)); /* it fits */
	if (!out_json_wanted())
		return out_line("forwarding %s -> %s:%u  (Ctrl+C to stop)", where, name,
				p->spec.remote);
	j = cJSON_CreateObject();
	if (!j || !jsn_add_str(j, "name", name) || !jsn_add_str(j, "address", p->spec.address) ||
	    !jsn_add_u64(j, "local_port", p->spec.local) ||
	    !jsn_add_u64(j, "remote_port", p->spec.remote))
		return -ENOMEM;
	text = cJSON_PrintUnformatted(j);
	r = text ? out_line("%s", text) : -ENOMEM;
	cJSON_free(text);
	return r;
}

/* --- connections --- */

static void tell_refused(const struct port *p, const struct err *e)
{
	if (!p->told)
		out_warn("port %u: %s", p->spec.remote, e->msg);
}

/*
 * The child: from here on there is nothing but FD and one connection into the sandbox. Unless both
 * directions came to their ends FD is reset, also when we are killed.
 */
NORETURN static void serve(const struct port *p, int fd)
{
	struct core_named *n = p->f->n;
	const struct linger reset = { .l_onoff = 1 }, orderly = { .l_onoff = 0 };
	struct err e = ERR_INIT;
	sigset_t none;
	int guest, end;

	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	if (setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset)) < 0 ||
	    prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() == 1 || dup2(fd, 3) < 0)
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
	pid_t pid;

	(void)events;
	if (fd < 0)
		return;
	(void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	while (slot < CHILDREN_MAX && f->children[slot].pid)
		slot++;
	pid = slot < CHILDREN_MAX ? fork() : -1;
	if (pid == 0)
		serve(p, fd);
	if (pid < 0)
		return;
	f->children[slot] = (struct child){ pid, p };
	if (++f->busy == CHILDREN_MAX)
		listen_events(f, 0);
}

static void reap(struct forward *f)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
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

static void on_poll(struct loop_timer *t)
{
	struct forward *f = t->arg;
	struct sandbox_info i;
	const char *name = f->c->names[0], *state = NULL;
	int r = f->n->backend->info(f->n->record.microvm_id, &i, NULL);

	f->failures = r < 0 && r != -ENOENT ? f->failures + 1 : 0;
	if (r == -ENOENT)
		state = "MISSING";
	else if (r == 0 && !may_go_on(&i))
		state = sandbox_state_name(i.state);
	if (state)
		out_note("%s is no longer running (%s); disconnecting", name, state);
	else if (f->failures == UNREACHABLE_MAX)
		out_note("%s is unreachable; disconnecting", name);
	if (state || f->failures == UNREACHABLE_MAX)
		loop_stop(&f->loop);
	else
		loop_arm(&f->loop, &f->poll, f->poll_ns);
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
	if (i.state == SANDBOX_RUNNING || i.state == SANDBOX_PENDING || i.state == SANDBOX_UNKNOWN)
		return 0;
	return err_set(e, ERR_UNAVAILABLE, 0, "'%s' is not running (%s)", f->c->names[0],
		       sandbox_state_name(i.state));
}

static int start(struct forward *f, struct err *e)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP, SIGCHLD };
	sigset_t set;
	int r = collect(f, e);

	if (r == 0)
		r = check_running(f, e);
	for (unsigned i = 0; i < f->len && r == 0; i++) {
		struct port *p = &f->ports[i];

		r = bind_port(p);
		p->watch.fn = on_connection;
		p->watch.arg = p;
		if (r == 0)
			r = loop_add(&f->loop, &p->watch, p->fd, EPOLLIN);
		if (r < 0)
			return err_set(e, ERR_IO, -r, "cannot listen on port %u of %s",
				       p->spec.local, p->spec.address);
	}
	if (r < 0)
		return r;
	(void)sigemptyset(&set);
	for (size_t i = 0; i < ARRAY_LEN(signals); i++)
		(void)sigaddset(&set, signals[i]);
	r = loop_signals(&f->loop, &set, on_signal, f);
	f->poll = (struct loop_timer)LOOP_TIMER_INIT;
	f->poll.fn = on_poll;
	f->poll.arg = f;
	loop_arm(&f->loop, &f->poll, f->poll_ns);
	return r < 0 ? err_set(e, ERR_INTERNAL, -r, "waiting for connections") : 0;
}

static int run(struct forward *f, struct err *e)
{
	int r = 0;

	for (unsigned i = 0; i < f->len && r == 0; i++)
		r = print_port(&f->ports[i], f->c->names[0]);
	if (r == 0)
		r = loop_run(&f->loop);
	return r < 0 ? err_set(e, ERR_INTERNAL, -r, "forwarding") : 0;
}

static void stop(struct forward *f)
{
	loop_disarm(&f->poll);
	for (unsigned i = 0; i < f->len; i++) {
		loop_del(&f->ports[i].watch);
		fd_close(&f->ports[i].fd);
	}
	for (unsigned i = 0; i < CHILDREN_MAX; i++)
		if (f->children[i].pid)
			(void)kill(f->children[i].pid, SIGKILL);
	loop_done(&f->loop);
}

static const char *hint_of(const struct cli *c, const struct err *e)
{
	if (e->code == ERR_IO && e->errnum == EADDRINUSE)
		return "LOCAL:REMOTE takes another local port; with 0 a free one is picked";
	if (e->code == ERR_IO && e->errnum == EACCES)
		return "ports below 1024 are for root: LOCAL:REMOTE takes another local port";
	if (e->code == ERR_IO && e->errnum == EADDRNOTAVAIL)
		return "the ADDRESS must be one of this machine's own";
	return e->code == ERR_USAGE || e->code == ERR_DENIED ? NULL : cmd_hint(e, c->names[0]);
}

int cmd_forward(const struct cli *c)
{
	struct core_named n;
	struct err e = ERR_INIT;
	struct forward *f;
	int r = core_find(c->names[0], &n, &e);

	if (r < 0)
		return cmd_fail(c, &e, cmd_hint(&e, NULL));
	f = calloc(1, sizeof(*f));
	r = f ? loop_init(&f->loop) : -ENOMEM;
	if (r < 0) {
		r = err_set(&e, ERR_INTERNAL, -r, "forwarding");
	} else {
		f->c = c;
		f->n = &n;
		f->poll_ns = c->val[OPT_POLL_INTERVAL].ns;
		r = n.backend->connect ? start(f, &e)
				       : cmd_unsupported(n.backend, "forward ports", &e);
		if (r == 0)
			r = run(f, &e);
		stop(f);
	}
	free(f);
	core_named_done(&n);
	return r < 0 ? cmd_fail(c, &e, hint_of(c, &e)) : 0;
}
