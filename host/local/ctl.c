/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "host/local/vm.h"
#include "lib/fd.h"
#include "lib/jsn.h"
#include "lib/sock.h"

/*
 * ctl.sock: one JSON line in, one JSON line out. Only the VM's owner can connect (the folder is
 * 0700). A client that goes away before its answer does not stop what it asked for.
 */

#define CTL_MAX	  320
#define HOLDS_MAX 256
#define CTL_LINE  4096
#define ASK_NS	  10000000000LL
#define GRACE_MAX 600000 /* ms */

struct client {
	struct vm *vm;
	struct client *next, **pprev;
	struct line_peer peer;
	bool asked;  /* an operation has it as its argument */
	bool orphan; /* asked, and gone before the answer */
	bool holds;
};

struct ctl {
	struct loop_watch watch;
	struct client *clients;
	int fd, count, holds;
};

static void client_free(struct client *c)
{
	line_close(&c->peer);
	*c->pprev = c->next;
	if (c->next)
		c->next->pprev = c->pprev;
	c->vm->ctl->count--;
	if (c->holds) {
		c->vm->ctl->holds--;
		idle_hold(c->vm, false);
	}
	free(c);
}

static void reply(struct client *c, cJSON *j)
{
	char *text = j ? cJSON_PrintUnformatted(j) : NULL;

	if (text)
		ignore_result(
			line_send(&c->peer, text)); /* a client that has gone is told by closed() */
	free(text);
}

static void reply_err(struct client *c, const struct err *e)
{
	AUTO_JSN *j = cJSON_CreateObject();
	const bool ok = e->code == ERR_NONE;

	if (j && jsn_add_bool(j, "ok", ok) &&
	    (ok || (jsn_add_str(j, "code", err_code_name(e->code)) &&
		    jsn_add_text(j, "message", e->msg, strlen(e->msg)))))
		reply(c, j);
}

static void on_answer(void *arg, const struct err *e)
{
	struct client *c = arg;

	c->asked = false;
	if (c->orphan)
		client_free(c);
	else
		reply_err(c, e);
}

static void reply_info(struct client *c)
{
	const struct vm *vm = c->vm;
	AUTO_JSN *j = cJSON_CreateObject();

	if (j && jsn_add_bool(j, "ok", true) &&
	    jsn_add_str(j, "state", sandbox_state_name(vm->status.state)) &&
	    jsn_add_str(j, "accel", vm->status.accel) && jsn_add_str(j, "stage", vm->boot.stage) &&
	    jsn_add_str(j, "qemu", vm->qemu) && jsn_add_i64(j, "qemu_pid", vm->qemu_child.pid) &&
	    jsn_add_i64(j, "supervisor_pid", getpid()) &&
	    jsn_add_bool(j, "channel", vm->chan && chan_is_up(vm->chan)))
		reply(c, j);
}

static void invalid(struct client *c, const char *what)
{
	struct err e = ERR_INIT;

	(void)err_set(&e, ERR_INVALID, 0, "%s", what);
	reply_err(c, &e);
}

/* Until the client goes. More than HOLDS_MAX are not counted: those that are do the same for them. */
static void hold(struct client *c)
{
	struct vm *vm = c->vm;
	struct err e = ERR_INIT;

	if (vm->phase != VM_RUNNING) {
		(void)idle_interrupt(vm); /* whatever it says: the client comes again */
		(void)err_set(&e, ERR_CONFLICT, 0, "the sandbox does not run now");
	} else if (!c->holds && vm->ctl->holds < HOLDS_MAX) {
		c->holds = true;
		vm->ctl->holds++;
		idle_hold(vm, true);
	}
	reply_err(c, &e);
}

static void on_line(struct line_peer *p, char *s, size_t n)
{
	struct client *c = p->arg;
	AUTO_JSN *j = jsn_parse(s, n, NULL);
	const char *op = "", *name = "";
	uint64_t grace = 10000;
	bool sync = false, disk = false;

	line_deadline(p, -1);
	if (c->asked) {
		invalid(c, "one request at a time");
		return;
	}
	if (!j || !cJSON_IsObject(j) || jsn_str(j, "op", &op, NULL) < 0 ||
	    jsn_str(j, "name", &name, NULL) < 0 || jsn_bool(j, "sync", &sync, NULL) < 0 ||
	    jsn_bool(j, "disk_only", &disk, NULL) < 0 ||
	    jsn_u64(j, "grace_ms", 0, GRACE_MAX, &grace, NULL) < 0) {
		invalid(c, "expected one JSON object with \"op\"");
		return;
	}
	c->asked = strcmp(op, "info") != 0 && strcmp(op, "hold") != 0;
	if (!strcmp(op, "info")) {
		reply_info(c);
	} else if (!strcmp(op, "hold")) {
		hold(c);
	} else if (!strcmp(op, "suspend")) {
		life_suspend(c->vm, on_answer, c);
	} else if (!strcmp(op, "branch")) {
		life_branch(c->vm, name, (sync ? BRANCH_SYNC : 0) | (disk ? BRANCH_DISK : 0),
			    on_answer, c);
	} else if (!strcmp(op, "resume")) {
		life_resume(c->vm, on_answer, c);
	} else if (!strcmp(op, "power_off")) {
		life_power_off(c->vm, (int64_t)grace * 1000000, on_answer, c);
	} else if (!strcmp(op, "remove")) {
		life_remove(c->vm, on_answer, c);
	} else {
		c->asked = false;
		invalid(c, "unknown operation");
	}
}

static void on_closed(struct line_peer *p, int error)
{
	struct client *c = p->arg;

	(void)error;
	if (c->asked)
		c->orphan = true;
	else
		client_free(c);
}

static const struct line_ops ops = { .line = on_line, .closed = on_closed };

static void on_listener(struct loop_watch *w, uint32_t events)
{
	struct vm *vm = w->arg;
	struct ctl *ctl = vm->ctl;
	struct client *c;
	int fd;

	(void)events;
	if (sock_accept(w->fd, &fd) < 0)
		return;
	c = ctl->count < CTL_MAX ? calloc(1, sizeof(*c)) : NULL;
	if (!c) {
		fd_close(&fd);
		return;
	}
	if (line_open(&vm->loop, &c->peer, fd, CTL_LINE, &ops, c) < 0) {
		free(c);
		return;
	}
	c->vm = vm;
	c->next = ctl->clients;
	c->pprev = &ctl->clients;
	if (c->next)
		c->next->pprev = &c->next;
	ctl->clients = c;
	ctl->count++;
	line_deadline(&c->peer, ASK_NS);
}

int ctl_start(struct vm *vm, struct err *e)
{
	struct ctl *ctl = calloc(1, sizeof(*ctl));
	int r;

	if (!ctl)
		return err_set(e, ERR_INTERNAL, ENOMEM, "ctl.sock");
	ctl->watch = (struct loop_watch)LOOP_WATCH_INIT;
	ctl->watch.fn = on_listener;
	ctl->watch.arg = vm;
	vm->ctl = ctl;
	r = sock_listen("ctl.sock", 0600, &ctl->fd);
	if (r < 0)
		ctl->fd = -1;
	else
		r = loop_add(&vm->loop, &ctl->watch, ctl->fd, EPOLLIN);
	return r < 0 ? err_set(e, ERR_IO, -r, "ctl.sock") : 0;
}

void ctl_stop(struct vm *vm)
{
	struct ctl *ctl = vm->ctl;

	if (!ctl)
		return;
	loop_del(&ctl->watch);
	if (ctl->fd >= 0)
		(void)unlink("ctl.sock");
	fd_close(&ctl->fd);
	for (struct client *c = ctl->clients, *next; c; c = next) {
		next = c->next;
		client_free(c);
	}
	vm->ctl = NULL;
	free(ctl);
}
