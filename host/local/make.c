/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host/local/life_int.h"
#include "host/local/template.h"
#include "host/local/vmfile.h"
#include "lib/fd.h"
#include "lib/log.h"
#include "lib/str.h"

/*
 * The first sandbox of a kind leaves a template behind: its guest is ready, asked whether the image is (hook
 * `ready`), made to run a command once, so that what the first command needs is in memory (hook `validate`), the
 * channel is brought to silence, it is stopped and written down. Then it goes on and gets its own run hook, as every
 * clone will. So a template costs no machine of its own, and the sandbox that makes it a moment.
 *
 * Nothing in here can fail a start: whatever goes wrong, the guest goes on without a template. Only where an image is
 * being built the template is what the start is for: then each failure is one of the start, and the image may take as
 * long to be ready as the start may take. Its owner tells by the stages how far it came.
 */

#define READY_NS    8000000000LL
#define VALIDATE_NS 15000000000LL
#define QUIET_NS    3000000000LL
#define AGAIN_NS    200000000LL
#define READY_TRIES 50

struct make {
	struct template_new t;
	char key[TEMPLATE_KEY_LEN + 1];
	struct loop_timer timer;
	int tries;
	bool silent;   /* the channel is */
	bool written;  /* everything is */
	char why[256]; /* not */
};

void make_stop(struct vm *vm)
{
	struct make *m = vm->make;

	if (!m)
		return;
	vm->make = NULL;
	loop_disarm(&m->timer);
	template_abort(&m->t);
	free(m);
}

/* The guest goes on without; or, in a build, it does not. */
static void go_without(struct vm *vm, const char *what, const char *why)
{
	struct err e = ERR_INIT;

	(void)err_set(&e, ERR_UNAVAILABLE, 0, "%s%s%s", what, why[0] ? ": " : "", why);
	log_warn("no template was made: %s", e.msg);
	make_stop(vm);
	if (vm->config.build)
		begin_failed(vm, &e);
	else
		begin_run(vm);
}

/* It runs again. */
static void on_continued(void *arg, const cJSON *ret, const char *why)
{
	struct vm *vm = arg;
	struct err e = ERR_INIT;

	if (!vm->make)
		return;
	if (!ret) { /* then it does not come up in time, and that is told */
		log_error("QEMU cannot continue the guest: %s", why);
		make_stop(vm);
		return;
	}
	if (vm->chan)
		chan_hello(vm->chan);
	if (!vm->make->written) {
		go_without(vm, "it could not be written", vm->make->why);
	} else if (template_publish(&vm->make->t, vm->make->key, &e) < 0) {
		go_without(vm, "it could not be kept", e.msg);
	} else {
		make_stop(vm);
		begin_run(vm);
	}
}

static void on_saved(struct vm *vm, int result, const char *why)
{
	struct make *m = vm->make;
	AUTO_FD dirfd = -1;
	int r = result;

	if (!m)
		return;
	if (r == 0) {
		dirfd = open(m->t.dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		r = dirfd < 0 ? -errno : vmfile_copy("disk.qcow2", dirfd, "disk.qcow2");
	}
	m->written = r == 0;
	if (r < 0 && str_format(m->why, sizeof(m->why), "%.200s", why[0] ? why : strerror(-r)) < 0)
		m->why[0] = '\0';
	if (qmp_send(&vm->qmp, "cont", on_continued, vm) < 0)
		on_continued(vm, NULL, "its monitor is closed");
}

static void on_silent(struct loop_timer *t)
{
	struct vm *vm = t->arg;
	int r;

	if (!vm->make->silent) { /* the deadline: a guest that does not answer will not be a template */
		machine_new_channel(vm);
		go_without(vm, "the guest does not close its channel", "");
		return;
	}
	r = save_start(vm, vm->make->t.dir, RAM_FLAT, on_saved);
	if (r < 0)
		on_saved(vm, r, strerror(-r));
}

void make_channel_down(struct vm *vm)
{
	struct make *m = vm->make;

	if (!m || m->silent || m->timer.fn != on_silent)
		return;
	m->silent = true;
	loop_arm(&vm->loop, &m->timer, 0);
}

static void on_validated(struct vm *vm, int status, const char *text)
{
	struct make *m = vm->make;
	int r;

	if (!m)
		return;
	if (status < 200 || status > 299) {
		go_without(vm, "its validate hook", text);
		return;
	}
	vm_stage(vm, "snapshot");
	r = vm->chan ? chan_quiesce(vm->chan) : -ENOTCONN;
	if (r < 0) {
		go_without(vm, "the channel", strerror(-r));
		return;
	}
	m->timer.fn = on_silent;
	loop_arm(&vm->loop, &m->timer, QUIET_NS);
}

static void on_ready(struct vm *vm, int status, const char *text)
{
	struct make *m = vm->make;

	if (!m)
		return;
	if (status >= 200 && status <= 299) {
		vm_stage(vm, "validate");
		life_post(vm, "validate", VALIDATE_NS, on_validated);
	} else if (status == 503 && (vm->config.build || ++m->tries < READY_TRIES)) {
		loop_arm(&vm->loop, &m->timer, AGAIN_NS);
	} else {
		go_without(vm, "its ready hook", text);
	}
}

static void on_ask(struct loop_timer *t)
{
	life_post(t->arg, "ready", READY_NS, on_ready);
}

/* Of an image that is being built: another process makes a template, or removes some. */
static void on_again(struct loop_timer *t)
{
	struct vm *vm = t->arg;
	struct err e = ERR_INIT;
	int r = template_begin(vm->make->key, &vm->share, &vm->config, &vm->make->t, &e);

	if (r == -EBUSY) {
		loop_arm(&vm->loop, t, AGAIN_NS);
	} else if (r == -EEXIST) { /* of the same content, meanwhile: that one will do */
		make_stop(vm);
		begin_run(vm);
	} else if (r < 0) {
		go_without(vm, "it cannot be begun", e.msg);
	} else {
		t->fn = on_ask;
		loop_arm(&vm->loop, t, 0);
	}
}

static struct make *new_make(struct vm *vm, struct err *e)
{
	struct make *m = calloc(1, sizeof(*m));

	if (!m) {
		(void)err_set(e, ERR_INTERNAL, ENOMEM, "the template");
		return NULL;
	}
	m->t.lock = -1;
	m->timer.fn = vm->config.build ? on_again : on_ask;
	m->timer.arg = vm;
	if (template_key(vm->qemu, &vm->share, &vm->config, vm->accel != ACCEL_TCG, m->key, e) == 0)
		return m;
	free(m);
	return NULL;
}

void make_template(struct vm *vm)
{
	struct err e = ERR_INIT;
	int r = 0;

	if (vm->origin != VM_BOOTED || vm->mode != VM_CREATE || !vm->config.template) {
		begin_run(vm);
		return;
	}
	vm->make = new_make(vm, &e);
	if (vm->make && !vm->config.build)
		r = template_begin(vm->make->key, &vm->share, &vm->config, &vm->make->t, &e);
	if (!vm->make || r < 0) {
		if (e.code != ERR_NONE || vm->config.build)
			go_without(vm, "it cannot be begun", e.msg);
		else { /* there is one, or somebody makes it */
			make_stop(vm);
			begin_run(vm);
		}
		return;
	}
	vm_stage(vm, "template");
	loop_arm(&vm->loop, &vm->make->timer, 0);
}
