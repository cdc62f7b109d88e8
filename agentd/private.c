/* SPDX-License-Identifier: Apache-2.0 */
#include "private.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "lib/fd.h"
#include "lib/jsn.h"
#include "lib/line.h"
#include "lib/sock.h"

/*
 * A connection is idle, or it waits for one answer; while it waits it is paused, so that requests
 * on it are answered in their order. Two things can be waited for: the end of a drain, which has a
 * deadline for each waiter, and the end of the check program, which all waiters share.
 *
 * The gate (admission) belongs to no connection: a client that dies in its drain leaves it shut,
 * and the reopen timer, set anew by each drain, opens it.
 */

#define REQUEST_MAX    (64UL << 10)
#define REOPEN_DEFAULT 30000
#define WAIT_MAX_MS    60000
#define CHECK_LIMIT_NS (10000 * 1000000LL)
#define IDLE_LIMIT_NS  (120000 * 1000000LL)
#define NS_PER_MS      1000000LL

enum waits { WAITS_NOT, WAITS_DRAIN, WAITS_CHECK };

struct conn {
	struct private *p;
	struct line_peer peer;
	enum waits waits;
	struct loop_timer limit;
};

struct private
{
	struct loop *loop;
	const struct private_ops *ops; /* borrowed */
	void *arg;		       /* the caller's */
	struct loop_watch listener;
	int listen_fd; /* owned */
	char path[PATH_MAX];
	struct loop_timer reopen;
	bool checking;
	struct conn conn[PRIVATE_CONNS_MAX];
};

/* --- answers --- */

/* Takes J. A client that does not read its answers, or no memory for one: the connection goes. */
static void send_json(struct conn *c, cJSON *j)
{
	char *s = j ? cJSON_PrintUnformatted(j) : NULL;

	cJSON_Delete(j);
	if (!s || line_send(&c->peer, s) < 0)
		line_close(&c->peer);
	cJSON_free(s);
}

static cJSON *new_answer(bool ok)
{
	cJSON *j = cJSON_CreateObject();

	if (j && !jsn_add_bool(j, "ok", ok))
		jsn_free(&j);
	return j;
}

static void answer_ok(struct conn *c)
{
	send_json(c, new_answer(true));
}

static void answer_error(struct conn *c, const char *message)
{
	cJSON *j = new_answer(false);

	if (j && !jsn_add_str(j, "message", message))
		jsn_free(&j);
	send_json(c, j);
}

static void wait_for(struct conn *c, enum waits what, int64_t limit_ns)
{
	c->waits = what;
	line_pause(&c->peer, true);
	loop_arm(c->p->loop, &c->limit, limit_ns);
}

static void go_on(struct conn *c)
{
	c->waits = WAITS_NOT;
	loop_disarm(&c->limit);
	line_pause(&c->peer, false);
}

static void answer_drain(struct conn *c)
{
	unsigned n = c->p->ops->in_flight(c->p->arg);
	cJSON *j = new_answer(true);

	if (j && (!jsn_add_bool(j, "drained", n == 0) || !jsn_add_u64(j, "in_flight", n)))
		jsn_free(&j);
	go_on(c);
	send_json(c, j);
}

static void answer_check(struct conn *c, int result)
{
	go_on(c);
	if (result == 0)
		answer_ok(c);
	else
		answer_error(c, strerror(-result));
}

static void on_limit(struct loop_timer *t)
{
	struct conn *c = t->arg;

	if (c->waits == WAITS_DRAIN)
		answer_drain(c);
	else
		answer_check(c, -ETIMEDOUT);
}

/* --- operations --- */

static void open_gate(struct private *p)
{
	loop_disarm(&p->reopen);
	p->ops->admit(p->arg, true);
}

static void on_reopen(struct loop_timer *t)
{
	open_gate(t->arg);
}

static void op_ping(struct conn *c, const cJSON *q)
{
	cJSON *j = new_answer(true);

	(void)q;
	if (j && !jsn_add_str(j, "version", c->p->ops->version))
		jsn_free(&j);
	send_json(c, j);
}

static void op_exec_check(struct conn *c, const cJSON *q)
{
	struct private *p = c->p;
	struct err e = ERR_INIT;
	bool start = !p->checking;

	(void)q;
	wait_for(c, WAITS_CHECK, CHECK_LIMIT_NS);
	if (!start)
		return;
	p->checking = true;
	if (p->ops->exec_check(p->arg, &e) < 0) {
		p->checking = false;
		go_on(c);
		answer_error(c, e.msg);
	}
}

static void op_drain(struct conn *c, const cJSON *q)
{
	struct private *p = c->p;
	struct err e = ERR_INIT;
	uint64_t timeout = 0, reopen = 0;

	if (jsn_u64(q, "timeout_ms", 0, WAIT_MAX_MS, &timeout, &e) < 0 ||
	    jsn_u64(q, "reopen_ms", 0, WAIT_MAX_MS, &reopen, &e) < 0) {
		answer_error(c, e.msg);
		return;
	}
	loop_arm(p->loop, &p->reopen, (int64_t)(reopen ? reopen : REOPEN_DEFAULT) * NS_PER_MS);
	p->ops->admit(p->arg, false);
	if (timeout == 0 || p->ops->in_flight(p->arg) == 0)
		answer_drain(c);
	else
		wait_for(c, WAITS_DRAIN, (int64_t)timeout * NS_PER_MS);
}

static void op_reopen(struct conn *c, const cJSON *q)
{
	(void)q;
	open_gate(c->p);
	answer_ok(c);
}

static int check_generation(const char *s, struct err *e)
{
	if (!s)
		return err_set(e, ERR_INVALID, 0, "generation is missing");
	if (strlen(s) != 32 || strspn(s, "0123456789abcdef") != 32)
		return err_set(e, ERR_INVALID, 0, "generation is not 32 hexadecimal digits");
	return 0;
}

/* Names and values that execve(2) can carry; that they are strings without a NUL, jsn_parse and
 * this have seen to. */
static int check_env(const cJSON *env, struct err *e)
{
	const cJSON *v;

	cJSON_ArrayForEach(v, env)
	{
		if (!cJSON_IsString(v))
			return err_set(e, ERR_INVALID, 0, "env.%s is not a string", v->string);
		if (!v->string[0] || strchr(v->string, '='))
			return err_set(e, ERR_INVALID, 0, "\"%s\" cannot be the name of a variable",
				       v->string);
	}
	return 0;
}

int private_read_identity(const cJSON *q, struct private_identity *id, struct err *e)
{
	int r = jsn_str(q, "generation", &id->generation, e);

	if (r >= 0)
		r = check_generation(id->generation, e);
	if (r >= 0)
		r = jsn_object(q, "env", &id->env, e);
	if (r >= 0 && id->env)
		r = check_env(id->env, e);
	if (r >= 0)
		r = jsn_str(q, "agent_token", &id->agent_token, e);
	if (r >= 0 && id->agent_token && !*id->agent_token)
		r = err_set(e, ERR_INVALID, 0, "agent_token is empty");
	return r < 0 ? r : 0;
}

static void op_identity(struct conn *c, const cJSON *q)
{
	struct private_identity id = { NULL, NULL, NULL };
	struct err e = ERR_INIT;

	if (private_read_identity(q, &id, &e) < 0 || c->p->ops->identity(c->p->arg, &id, &e) < 0)
		answer_error(c, e.msg);
	else
		answer_ok(c);
}

static void op_terminate(struct conn *c, const cJSON *q)
{
	(void)q;
	c->p->ops->terminate(c->p->arg);
	answer_ok(c);
}

static const struct {
	const char *name;
	void (*fn)(struct conn *c, const cJSON *request);
} operations[] = {
	{ "ping", op_ping },	 { "exec_check", op_exec_check }, { "drain", op_drain },
	{ "reopen", op_reopen }, { "identity", op_identity },	  { "terminate", op_terminate },
};

/* --- connections --- */

static void on_line(struct line_peer *peer, char *s, size_t len)
{
	struct conn *c = peer->arg;
	AUTO_JSN *q = jsn_parse(s, len, NULL);
	const char *op = "";

	line_deadline(peer, IDLE_LIMIT_NS);
	if (!cJSON_IsObject(q) || jsn_str(q, "op", &op, NULL) < 0) {
		line_close(peer);
		return;
	}
	for (size_t i = 0; i < ARRAY_LEN(operations); i++)
		if (!strcmp(op, operations[i].name)) {
			operations[i].fn(c, q);
			return;
		}
	answer_error(c, "unknown op");
}

static void on_closed(struct line_peer *peer, int error)
{
	struct conn *c = peer->arg;

	(void)error;
	c->waits = WAITS_NOT;
	loop_disarm(&c->limit);
}

static void on_connection(struct loop_watch *w, uint32_t events)
{
	static const struct line_ops ops = { on_line, on_closed };
	struct private *p = w->arg;
	int fd;

	(void)events;
	if (sock_accept(w->fd, &fd) < 0)
		return;
	for (int i = 0; i < PRIVATE_CONNS_MAX; i++) {
		struct conn *c = &p->conn[i];

		if (c->peer.fd >= 0)
			continue;
		c->waits = WAITS_NOT;
		if (line_open(p->loop, &c->peer, fd, REQUEST_MAX, &ops, c) == 0)
			line_deadline(&c->peer, IDLE_LIMIT_NS);
		return;
	}
	fd_close(&fd);
}

/* The folder of PATH; /run may be a fresh tmpfs. */
static int make_folder(const char *path)
{
	const char *slash = strrchr(path, '/');
	char dir[PATH_MAX];

	if (!slash || slash == path)
		return 0;
	memcpy(dir, path, (size_t)(slash - path));
	dir[slash - path] = '\0';
	return fd_mkdirs(dir, 0755);
}

int private_start(struct loop *l, const char *path, const struct private_ops *ops, void *arg,
		  struct private **ret, struct err *e)
{
	size_t n = strlen(path);
	struct private *p;
	int r;

	if (n >= sizeof(p->path))
		return err_set(e, ERR_INVALID, ENAMETOOLONG, "private socket");
	r = make_folder(path);
	if (r < 0)
		return err_set(e, ERR_IO, -r, "folder of %s", path);
	p = calloc(1, sizeof(*p));
	if (!p)
		return err_set(e, ERR_IO, ENOMEM, "private socket");
	p->loop = l;
	p->ops = ops;
	p->arg = arg;
	p->listen_fd = -1;
	memcpy(p->path, path, n + 1);
	p->reopen = (struct loop_timer){ .fn = on_reopen, .arg = p };
	p->listener = (struct loop_watch){ .fd = -1, .fn = on_connection, .arg = p };
	for (int i = 0; i < PRIVATE_CONNS_MAX; i++) {
		p->conn[i] = (struct conn){ .p = p, .peer = LINE_PEER_INIT };
		p->conn[i].limit = (struct loop_timer){ .fn = on_limit, .arg = &p->conn[i] };
	}
	r = sock_listen(path, 0600, &p->listen_fd);
	if (r == 0)
		r = loop_add(l, &p->listener, p->listen_fd, EPOLLIN);
	if (r < 0) {
		private_stop(p);
		return err_set(e, ERR_IO, -r, "listen at %s", path);
	}
	*ret = p;
	return 0;
}

void private_stop(struct private *p)
{
	if (!p)
		return;
	loop_disarm(&p->reopen);
	loop_del(&p->listener);
	if (p->listen_fd >= 0)
		(void)unlink(p->path);
	fd_close(&p->listen_fd);
	for (int i = 0; i < PRIVATE_CONNS_MAX; i++) {
		loop_disarm(&p->conn[i].limit);
		line_close(&p->conn[i].peer);
	}
	free(p);
}

void private_idle(struct private *p)
{
	for (int i = 0; i < PRIVATE_CONNS_MAX; i++)
		if (p->conn[i].waits == WAITS_DRAIN)
			answer_drain(&p->conn[i]);
}

void private_exec_checked(struct private *p, int result)
{
	p->checking = false;
	for (int i = 0; i < PRIVATE_CONNS_MAX; i++)
		if (p->conn[i].waits == WAITS_CHECK)
			answer_check(&p->conn[i], result);
}
