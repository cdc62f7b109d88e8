/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host/local/life_int.h"
#include "host/local/saved.h"
#include "host/local/template.h"
#include "lib/fd.h"
#include "lib/log.h"

/*
 * A named sandbox to disk. Its suspend hook has been answered; the channel is brought to silence, so that no session
 * spans the pause (clients take their streams up again at their offset), the guest is stopped and written to
 * saved.new/, that is made durable and gets the name saved/ in one step. Until then nothing is lost: the guest can
 * still go on. From then on the folder says that it is suspended, whatever becomes of this process and of QEMU.
 *
 * The disk needs no copy: the guest does not run any more, and when it does, saved/ is gone first.
 */

#define QUIET_NS \
	3000000000LL /* a guest that does not end its channel by then is written down with it */
#define SAVE_NS	  900000000000LL
#define RESUME_NS 10000000000LL

#define CLIENT_CAME "a client came"

static void on_undone(struct vm *vm, int status, const char *text)
{
	if (vm->phase != VM_SUSPENDING)
		return;
	if (status < 200 || status > 299)
		log_warn("resume hook: %d %s", status, text);
	vm->phase = VM_RUNNING;
	vm_set_status(vm, SANDBOX_RUNNING, "");
	loop_disarm(&vm->timer);
	life_answer(vm, ERR_IO, vm->why);
	link_channel_up(vm);
}

static void on_continued(void *arg, const cJSON *ret, const char *why)
{
	struct vm *vm = arg;

	if (vm->phase != VM_SUSPENDING)
		return;
	if (!ret) {
		log_error("QEMU cannot continue the guest: %s", why);
		life_answer(vm, ERR_INTERNAL, vm->why);
		life_finish(vm, false, "it could neither be suspended nor go on");
		return;
	}
	machine_new_channel(vm);
	life_arm(vm, RESUME_NS + QUIET_NS);
	life_post(vm, "resume", RESUME_NS, on_undone);
}

/* It was not written down: the guest goes on. */
static void undo(struct vm *vm, const char *why)
{
	(void)snprintf(vm->why, sizeof(vm->why), "the sandbox cannot be suspended: %.200s", why);
	if (!idle_wanted(vm))
		log_error("%s", vm->why);
	vm->saving = false;
	save_stop(vm);
	ignore_result(fd_remove_tree(SAVED_NEW));
	life_arm(vm, RESUME_NS);
	if (qmp_send(&vm->qmp, "cont", on_continued, vm) < 0)
		on_continued(vm, NULL, "its monitor is closed");
}

static void on_saved(struct vm *vm, int result, const char *why)
{
	char fit[TEMPLATE_KEY_LEN + 1];
	struct err e = ERR_INIT;
	int r;

	if (vm->phase != VM_SUSPENDING)
		return;
	if (result < 0) {
		undo(vm, why);
		return;
	}
	r = template_fit(vm->qemu, &vm->share, &vm->config, vm->accel != ACCEL_TCG, fit, &e);
	if (r == 0)
		r = saved_commit(vm->dirfd,
				 &(struct saved){
					 .fit = fit, .balloon = vm->balloon, .based = vm->based },
				 &e);
	if (r < 0) {
		undo(vm, e.msg);
		return;
	}
	vm->saving = false;
	vm_set_status(vm, SANDBOX_SUSPENDED, vm->idle_reason);
	life_leave(vm);
}

static void take(struct vm *vm)
{
	int r;

	loop_disarm(&vm->quiet);
	if (idle_wanted(vm)) {
		undo(vm, CLIENT_CAME);
		return;
	}
	vm->saving = true;
	r = fd_remove_tree(SAVED_NEW);
	if (r == 0 && mkdir(SAVED_NEW, 0700) < 0)
		r = -errno;
	if (r == 0)
		r = save_start(vm, SAVED_NEW, vm->based ? RAM_CHANGES : RAM_ALL, on_saved);
	if (r < 0)
		undo(vm, strerror(-r));
}

/* The guest did not close the channel. The next session begins with a hello all the same; only what is under way
 * on this one may be lost. */
static void on_quiet(struct loop_timer *t)
{
	take(t->arg);
}

void suspend_channel_down(struct vm *vm)
{
	if (vm->phase == VM_SUSPENDING && vm->quiet.loop)
		loop_arm(&vm->loop, &vm->quiet, 0);
}

void suspend_to_disk(struct vm *vm)
{
	vm->quiet.fn = on_quiet;
	vm->quiet.arg = vm;
	if (idle_wanted(vm)) {
		undo(vm, CLIENT_CAME);
		return;
	}
	life_arm(vm, SAVE_NS);
	if (!vm->chan || chan_quiesce(vm->chan) < 0)
		take(vm);
	else
		loop_arm(&vm->loop, &vm->quiet, QUIET_NS);
}

void suspend_interrupt(struct vm *vm)
{
	if (vm->saving)
		undo(vm, CLIENT_CAME); /* else take, which comes soon, sees it */
}

void suspend_late(struct vm *vm)
{
	if (vm->saving)
		undo(vm, "it took too long");
	else
		life_finish(vm, false, "it could neither be suspended nor go on");
}
