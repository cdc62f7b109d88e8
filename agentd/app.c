/* SPDX-License-Identifier: Apache-2.0 */
#include "app.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "cgroup.h"
#include "child.h"
#include "confine.h"
#include "exec.h"
#include "lib/fd.h"
#include "lib/log.h"
#include "lib/proc.h"
#include "lib/proto.h"
#include "limits.h"
#include "reap.h"
#include "version.h"
#include "worker.h"

/*
 * One loop: the TCP server, the private socket, the children. Nothing here waits for anything else.
 *
 * The end, on SIGTERM or SIGINT: new work is refused; requests that are being answered get
 * LIMIT_DRAIN_NS; then every tree is killed, and the answers that this causes get LIMIT_STOP_NS;
 * then the loop ends.
 */

extern char **environ;

const struct httpd_route app_routes[] = {
	{ "GET", "/healthz", HTTPD_BODY_NONE, 0, route_healthz, HTTPD_OPEN },
	{ "POST", "/v1/exec", HTTPD_BODY_BUFFER, PROTO_MAX_BODY, route_compat_exec, 0 },
	{ "POST", "/v1/fs/read", HTTPD_BODY_BUFFER, LIMIT_SMALL_BODY, route_fs_read, 0 },
	{ "POST", "/v1/fs/write", HTTPD_BODY_BUFFER, PROTO_MAX_BODY, route_fs_write, 0 },
	{ "GET", "/v1/files", HTTPD_BODY_NONE, 0, route_files_get, HTTPD_HEAD },
	{ "PUT", "/v1/files", HTTPD_BODY_STREAM, 0, route_files_put, 0 },
	{ "GET", "/v1/watch", HTTPD_BODY_NONE, 0, route_watch, 0 },
	{ "POST", "/v1/fs/list", HTTPD_BODY_BUFFER, LIMIT_SMALL_BODY, route_fsop, 0 },
	{ "POST", "/v1/fs/stat", HTTPD_BODY_BUFFER, LIMIT_SMALL_BODY, route_fsop, 0 },
	{ "POST", "/v1/fs/exists", HTTPD_BODY_BUFFER, LIMIT_SMALL_BODY, route_fsop, 0 },
	{ "POST", "/v1/fs/mkdir", HTTPD_BODY_BUFFER, LIMIT_SMALL_BODY, route_fsop, 0 },
	{ "POST", "/v1/fs/remove", HTTPD_BODY_BUFFER, LIMIT_SMALL_BODY, route_fsop, 0 },
	{ "POST", "/v1/fs/copy", HTTPD_BODY_BUFFER, LIMIT_SMALL_BODY, route_fsop, 0 },
	{ "POST", "/v1/fs/rename", HTTPD_BODY_BUFFER, LIMIT_SMALL_BODY, route_fsop, 0 },
	{ "POST", "/v1/fs/chmod", HTTPD_BODY_BUFFER, LIMIT_SMALL_BODY, route_fsop, 0 },
	{ "POST", "/v1/fs/symlink", HTTPD_BODY_BUFFER, LIMIT_SMALL_BODY, route_fsop, 0 },
	{ "PUT", "/v1/execs/{}", HTTPD_BODY_BUFFER, LIMIT_SPEC_BODY, route_exec_put, 0 },
	{ "GET", "/v1/execs/{}", HTTPD_BODY_NONE, 0, route_exec_get, 0 },
	{ "DELETE", "/v1/execs/{}", HTTPD_BODY_NONE, 0, route_exec_delete, 0 },
	{ "GET", "/v1/execs", HTTPD_BODY_NONE, 0, route_exec_list, 0 },
	{ "GET", "/v1/execs/{}/output", HTTPD_BODY_NONE, 0, route_exec_output, 0 },
	{ "GET", "/v1/execs/{}/attach", HTTPD_BODY_NONE, 0, route_exec_attach, 0 },
	{ "POST", "/v1/execs/{}/stdin", HTTPD_BODY_STREAM, 0, route_exec_stdin, 0 },
	{ "POST", "/v1/execs/{}/signal", HTTPD_BODY_BUFFER, LIMIT_SMALL_BODY, route_exec_signal,
	  0 },
	{ "POST", "/v1/execs/{}/resize", HTTPD_BODY_BUFFER, LIMIT_SMALL_BODY, route_exec_resize,
	  0 },
	{ "GET", "/v1/info", HTTPD_BODY_NONE, 0, route_info, 0 },
	{ "GET", "/v1/metrics", HTTPD_BODY_NONE, 0, route_metrics, 0 },
	{ "GET", "/v1/ports", HTTPD_BODY_NONE, 0, route_ports, 0 },
	{ "GET", "/v1/archive", HTTPD_BODY_NONE, 0, route_archive_get, 0 },
	{ "PUT", "/v1/archive", HTTPD_BODY_STREAM, 0, route_archive_put, 0 },
	{ "", NULL, HTTPD_BODY_NONE, 0, NULL, 0 },
};

/* --- admission and the count of requests --- */
bool app_admits(struct httpd_req *r)
{
	const struct app *a = httpd_server_arg(r);

	if (!a->closed && !a->stopping)
		return true;
	ignore_result(httpd_add_header(r, "Retry-After", "1")); /* a hint */
	httpd_reply_error(r, 503,
			  a->stopping ? "stopping" : "draining: the sandbox is being suspended");
	return false;
}

struct entered {
	struct app *a;
	void (*fn)(void *arg);
	void *arg;
};

static void leave(void *arg)
{
	struct entered *n = arg;
	struct app *a = n->a;

	if (n->fn)
		n->fn(n->arg);
	free(n);
	a->in_flight--;
	if (a->in_flight == 0 && a->priv)
		private_idle(a->priv);
}

int app_enter(struct httpd_req *r, void (*fn)(void *arg), void *arg)
{
	struct app *a = httpd_server_arg(r);
	struct entered *n = malloc(sizeof(*n));

	if (!n) {
		httpd_reply_error(r, 503, "out of memory");
		return -ENOMEM;
	}
	*n = (struct entered){ a, fn, arg };
	a->in_flight++;
	httpd_on_end(r, leave, n);
	return 0;
}

/* --- what the private socket asks for --- */
static void on_admit(void *arg, bool open)
{
	struct app *a = arg;

	a->closed = !open;
}

static unsigned on_in_flight(void *arg)
{
	const struct app *a = arg;

	return a->in_flight;
}

static void on_terminate(void *arg)
{
	(void)arg;
	exec_signal_all(SIGTERM);
}

static const struct private_ops private_ops = {
	.version = ASB_VERSION,
	.admit = on_admit,
	.in_flight = on_in_flight,
	.exec_check = app_exec_check,
	.identity = app_identity,
	.terminate = on_terminate,
};

/* --- the end --- */
enum { STOP_DRAIN, STOP_KILL };

#define STOP_POLL_NS (20 * 1000000LL)

static void stop_step(struct loop_timer *t)
{
	struct app *a = t->arg;
	int64_t waited = loop_now() - a->stop_since;

	if (a->stop_phase == STOP_DRAIN && (a->in_flight == 0 || waited >= LIMIT_DRAIN_NS)) {
		a->stop_phase = STOP_KILL;
		a->stop_since = loop_now();
		waited = 0;
	}
	if (a->stop_phase == STOP_KILL) {
		exec_kill_all();
		worker_kill_all();
		if ((a->in_flight == 0 && exec_running() == 0) || waited >= LIMIT_STOP_NS) {
			loop_stop(&a->loop);
			return;
		}
	}
	loop_arm(&a->loop, t, STOP_POLL_NS);
}

static void on_signal(void *arg, const void *siginfo)
{
	const struct signalfd_siginfo *si = siginfo;
	struct app *a = arg;

	if (si->ssi_signo == SIGCHLD) {
		reap(&a->loop);
		return;
	}
	if (a->stopping)
		return;
	a->stopping = true;
	a->stop_since = loop_now();
	loop_arm(&a->loop, &a->stop_timer, 0);
}

/* --- start --- */
static int take_signals(struct app *a)
{
	struct sigaction ignore = { .sa_handler = SIG_IGN };
	sigset_t set;

	if (sigaction(SIGPIPE, &ignore, NULL) < 0 || sigemptyset(&set) < 0 ||
	    sigaddset(&set, SIGCHLD) < 0 || sigaddset(&set, SIGTERM) < 0 ||
	    sigaddset(&set, SIGINT) < 0)
		return -errno;
	return loop_signals(&a->loop, &set, on_signal, a);
}

static int serve_tcp(struct app *a, struct err *e)
{
	struct httpd_config c = { .name = "agentd",
				  .listen_fd = -1,
				  .routes = app_routes,
				  .max_conns = LIMIT_CONNS,
				  .idle_s = LIMIT_IDLE_S,
				  .admit = app_authorized,
				  .arg = a };
	int r = httpd_listen_tcp(a->bind_addr, a->port, &c.listen_fd);

	if (r < 0)
		return err_set(e, ERR_IO, -r, "listen on %s port %u", a->bind_addr, a->port);
	r = httpd_start(&a->loop, &c, &a->tcp);
	return r < 0 ? err_set(e, ERR_IO, -r, "HTTP server") : 0;
}

/* Without it hooks cannot drain, but commands run: in a third-party image /run may be read-only. */
static void serve_private(struct app *a)
{
	struct err e = ERR_INIT;

	if (private_start(&a->loop, a->socket_path, &private_ops, a, &a->priv, &e) < 0) {
		a->priv = NULL;
		log_warn("no private socket: %s", e.msg);
	}
}

/*
 * musl's allocator gives a page back with the last object in it and takes one again for the next, which costs a short request
 * more than all its other allocations. One object of about each of its sizes, kept for ever, keeps those pages.
 */
static void keep_heap(void)
{
	static void *volatile kept[24];
	size_t n = 0;

	for (size_t size = 16; size <= 1024 && n < ARRAY_LEN(kept);
	     size += (size / 4 + 15) & ~(size_t)15)
		kept[n++] = malloc(size - 4);
}

int app_start(struct app *a, struct err *e)
{
	int r = loop_init(&a->loop);

	if (r == 0)
		r = take_signals(a);
	if (r < 0)
		return err_set(e, ERR_IO, -r, "cannot start");
	if (getpid() != 1 && proc_become_subreaper() < 0) /* qemu-user has no such thing */
		log_warn("orphans of commands go to PID 1, not to agentd");
	a->stop_timer.fn = stop_step;
	a->stop_timer.arg = a;
	child_remember();
	child_protect_self();
	child_protect_memory();
	r = envbase_build(&a->env, environ, a->passwd_path, NULL);
	if (r < 0)
		return err_set(e, ERR_IO, -r, "environment");
	if (app_read_token(a, e) < 0 || app_restore_identity(a, e) < 0)
		return -EINVAL;
	cgroup_start(&a->loop, a->cgroup_root);
	exec_init(&a->loop);
	confine_start(&a->loop);
	confine_self();
	worker_start(&a->loop);
	serve_private(a);
	keep_heap();
	return serve_tcp(a, e);
}

int app_run(struct app *a)
{
	return loop_run(&a->loop);
}

void app_done(struct app *a)
{
	exec_kill_all();
	httpd_stop(a->tcp);
	private_stop(a->priv);
	exec_stop();
	worker_stop();
	cgroup_stop();
	confine_stop();
	envbase_done(&a->env);
	cJSON_Delete(a->identity_env);
	free(a->token);
	loop_done(&a->loop);
}
