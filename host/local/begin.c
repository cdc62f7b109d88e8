/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host/local/expiry.h"
#include "host/local/life_int.h"
#include "host/local/saved.h"
#include "host/local/template.h"
#include "host/local/vmfile.h"
#include "lib/log.h"
#include "lib/str.h"

/*
 * From nothing to RUNNING. A guest that boots: QEMU answers, the guest's init reports `ready`, and the run hook is
 * posted. One that goes on from a template is ready when its channel is up: its QEMU loads the device state by
 * itself and runs. Nothing of a client passes before the run hook was answered.
 *
 * The first boot under KVM is a test: when no line of init has come in PROBE_NS, or QEMU has died, it begins anew
 * under emulation. A template that does not run is removed, and its sandbox boots.
 */

#define RUN_NS	    60000000000LL
#define PROBE_NS    20000000000LL /* for the first line under KVM, and for a template's channel */
#define RESUME_NS   10000000000LL
#define VALIDATE_NS 15000000000LL
#define FAILED_NS   3000000000LL /* from the guest's report of a failure to its power-off */

void begin_failed(struct vm *vm, const struct err *e)
{
	char reason[256];

	if (str_format(reason, sizeof(reason), "%.250s", e->msg) < 0)
		reason[0] = '\0';
	vm_failed(vm, e);
	life_finish(vm, vm->mode == VM_CREATE, reason);
}

static void fail_boot(struct vm *vm, const char *what, enum err_code code)
{
	struct err e = ERR_INIT;

	(void)boot_fail(&vm->boot, what, code, &e);
	begin_failed(vm, &e);
}

static void start_machine(struct vm *vm)
{
	struct err e = ERR_INIT;

	if (machine_start(vm, &e) < 0)
		begin_failed(vm, &e);
}

/* QEMU has died or the guest stands still, and KVM was not known to work: so it does not. */
static void fall_back(struct vm *vm)
{
	log_warn("KVM does not run a guest on this machine; using emulation from now on");
	vm_stage(vm, "no-kvm");
	accel_remember(vm->qemu, vm->share.kernel, ACCEL_TCG);
	loop_disarm(&vm->probe);
	vm->accel = ACCEL_TCG;
	machine_close(vm);
	start_machine(vm);
}

static void discard_template(const struct vm *vm)
{
	char key[TEMPLATE_KEY_LEN + 1];

	if (template_key(vm->qemu, &vm->share, &vm->config, vm->accel != ACCEL_TCG, key, NULL) == 0)
		template_discard(key);
}

/* The template's guest does not go on: this sandbox boots, as if there had been none. */
static void fall_back_to_boot(struct vm *vm, const char *how)
{
	struct err e = ERR_INIT;
	int r;

	log_warn("the template does not work: %s", how);
	vm_stage(vm, "no-template");
	loop_disarm(&vm->probe);
	discard_template(vm);
	machine_close(vm);
	vm->origin = VM_BOOTED;
	vm->based = false;
	(void)unlinkat(vm->dirfd, TEMPLATE_DEVICES, 0);
	(void)unlinkat(vm->dirfd, TEMPLATE_RAM, 0);
	(void)unlinkat(vm->dirfd, "disk.qcow2", 0);
	r = vmfile_copy(vm->share.upper, vm->dirfd, "disk.qcow2");
	if (r < 0) {
		(void)err_set(&e, ERR_IO, -r, "cannot make the sandbox's disk");
		begin_failed(vm, &e);
		return;
	}
	start_machine(vm);
}

static void fail_restored(struct vm *vm, const char *how)
{
	struct err e = ERR_INIT;

	(void)err_set(&e, ERR_UNAVAILABLE, 0, "the suspended sandbox cannot go on: %s", how);
	begin_failed(vm, &e);
}

void begin_exited(struct vm *vm, const char *how)
{
	if (vm->origin == VM_CLONED && !vm->run_posted && !vm->config.build)
		fall_back_to_boot(vm, how);
	else if (vm->origin == VM_RESTORED)
		fail_restored(vm, how);
	else if (vm->accel != ACCEL_TCG && !vm->init_seen)
		fall_back(vm);
	else
		fail_boot(vm, how, ERR_UNAVAILABLE);
}

/* All is in QEMU and nowhere else: to kill it because it is slow would lose it. Only who waits is told. When its
 * channel comes up it gets its resume hook, and only then are there streams to it. */
static void late_restored(struct vm *vm)
{
	struct err e = ERR_INIT;

	(void)err_set(&e, ERR_TIMEOUT, 0,
		      "the sandbox goes on, but it has not answered in time; it is given more");
	vm_failed(vm, &e);
}

void begin_late(struct vm *vm)
{
	char what[64];

	if (vm->let_go) {
		late_restored(vm);
		return;
	}
	(void)snprintf(what, sizeof(what), "not ready after %lld s",
		       (long long)((loop_now() - vm->started + 500000000) / 1000000000));
	if (vm->origin == VM_CLONED && loop_now() - vm->started > PROBE_NS)
		discard_template(vm); /* not to fail for ever */
	if (vm->origin == VM_RESTORED)
		fail_restored(vm, what);
	else
		fail_boot(vm, what, ERR_TIMEOUT);
}

static void on_probe(struct loop_timer *t)
{
	struct vm *vm = t->arg;

	if (vm->qemu_runs)
		machine_kill(vm); /* its end tells the rest */
}

/* QEMU makes a file that is not there, and enlarges one that is empty: the guest would go on with zeroes. */
static int check_base(const struct vm *vm, struct err *e)
{
	struct stat st;

	if (!vm->based ||
	    (fstatat(vm->dirfd, TEMPLATE_RAM, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	     S_ISREG(st.st_mode) && (uint64_t)st.st_size == vm->config.memory_mib << 20))
		return 0;
	(void)err_set(e, ERR_IO, 0,
		      "the memory that the sandbox began with (" TEMPLATE_RAM
		      ") is missing or has another size; `asb restart` boots it from its disk");
	return -EINVAL;
}

static int choose_origin(struct vm *vm, struct err *e)
{
	char fit[TEMPLATE_KEY_LEN + 1];
	struct saved saved = { .fit = NULL };
	int r;

	vm->balloon = vm->mode == VM_START || !vm->config.template;
	if (vm->mode == VM_START && saved_is_there(vm->dirfd)) {
		vm->origin = VM_RESTORED;
		r = template_fit(vm->qemu, &vm->share, &vm->config, vm->accel != ACCEL_TCG, fit, e);
		if (r == 0)
			r = saved_read(vm->dirfd, fit, &saved, e);
		if (r < 0)
			return r;
		vm->balloon = saved.balloon;
		vm->based = saved.based;
		r = check_base(vm, e);
		if (r < 0)
			return r;
	} else if (vm->mode == VM_START) {
		(void)unlinkat(vm->dirfd, TEMPLATE_RAM, 0);
		ignore_result(saved_drop(vm->dirfd, NULL)); /* what is half made, or damaged */
	} else if (faccessat(vm->dirfd, TEMPLATE_DEVICES, F_OK, 0) == 0) {
		vm->origin = VM_CLONED;
		vm->based = true;
	}
	return 0;
}

void life_boot(struct vm *vm)
{
	struct err e = ERR_INIT;

	vm->phase = VM_BOOTING;
	vm->accel = accel_choose(vm->qemu, vm->share.kernel);
	if (vm->mode == VM_START)
		saved_collect(vm->dirfd);
	if (vm->mode == VM_START && saved_is_there(vm->dirfd)) { /* its time goes on */
		struct vm_status was;

		vmdir_read_status(vm->dirfd, &was);
		vm->status.started_ms = was.started_ms;
	} else {
		vm->status.started_ms = expiry_now();
	}
	if (choose_origin(vm, &e) < 0) {
		begin_failed(vm, &e);
		return;
	}
	vm->probe.fn = on_probe;
	vm->probe.arg = vm;
	if (vm->accel == ACCEL_KVM_UNPROVEN || vm->origin == VM_CLONED)
		loop_arm(&vm->loop, &vm->probe, PROBE_NS);
	vm_set_status(vm, SANDBOX_PENDING, "");
	life_arm(vm, vm->deadline - loop_now());
	start_machine(vm);
}

void life_qemu_ready(struct vm *vm)
{
	if (vm->phase != VM_BOOTING)
		return;
	vm_stage(vm, "qemu");
	if (vm->origin == VM_RESTORED)
		restore_start(vm);
}

void life_guest_seen(struct vm *vm)
{
	if (vm->phase == VM_BOOTING)
		vm_stage(vm, "kernel");
}

static void runs(struct vm *vm)
{
	loop_disarm(&vm->timer);
	loop_disarm(&vm->probe);
	vm->phase = VM_RUNNING;
	vm_set_status(vm, SANDBOX_RUNNING, "");
	vm_ready(vm);
}

/* In a clone of an image that is being built. */
static void on_validated(struct vm *vm, int status, const char *text)
{
	struct err e = ERR_INIT;

	if (vm->phase != VM_BOOTING)
		return;
	if (status >= 200 && status < 300) {
		runs(vm);
		return;
	}
	(void)err_set(&e, ERR_UNAVAILABLE, 0, "its validate hook%s%s", text[0] ? ": " : "", text);
	begin_failed(vm, &e);
}

static void on_run_done(struct vm *vm, int status, const char *text)
{
	struct err e = ERR_INIT;

	if (vm->phase != VM_BOOTING)
		return;
	if (status >= 200 && status < 300) {
		(void)unlinkat(vm->dirfd, TEMPLATE_DEVICES, 0);
		if (vm->config.build && vm->origin == VM_CLONED)
			life_post(vm, "validate", VALIDATE_NS, on_validated);
		else
			runs(vm);
		return;
	}
	if (status < 0 && vm->origin == VM_CLONED)
		discard_template(vm);
	if (status < 0)
		(void)err_set(&e, ERR_UNAVAILABLE, 0,
			      "the guest is up, but its run hook failed: %s", text);
	else
		(void)err_set(&e, ERR_UNAVAILABLE, 0, "the guest's run hook answered HTTP %d: %s",
			      status, text);
	begin_failed(vm, &e);
}

void begin_run(struct vm *vm)
{
	if (vm->phase == VM_BOOTING)
		life_post(vm, "run", RUN_NS, on_run_done);
}

static void guest_ready(struct vm *vm)
{
	vm->run_posted = true;
	loop_disarm(&vm->probe);
	vm_stage(vm, "agent");
	make_template(vm);
}

/* Of a guest that was restored. It runs: that its identity was not renewed is worth a line, not its life. */
static void on_resumed(struct vm *vm, int status, const char *text)
{
	if (vm->phase != VM_BOOTING)
		return;
	if (status < 200 || status > 299)
		log_warn("resume hook: %d %s", status, text);
	runs(vm);
}

void life_channel_up(struct vm *vm)
{
	if (vm->phase == VM_BOOTING && vm->origin == VM_CLONED && !vm->run_posted) {
		guest_ready(vm);
	} else if (vm->phase == VM_BOOTING && vm->origin == VM_RESTORED && !vm->run_posted) {
		vm->run_posted = true;
		life_post(vm, "resume", RESUME_NS, on_resumed);
	}
	link_channel_up(vm);
}

void life_channel_down(struct vm *vm)
{
	make_channel_down(vm);
	suspend_channel_down(vm);
	branch_channel_down(vm);
}

void life_boot_changed(struct vm *vm, const char *stage)
{
	if (vm->phase != VM_BOOTING)
		return;
	if (vm->accel == ACCEL_KVM_UNPROVEN && vm->origin == VM_BOOTED) {
		vm->accel = ACCEL_KVM;
		loop_disarm(&vm->probe);
		accel_remember(vm->qemu, vm->share.kernel, ACCEL_KVM);
	}
	if (!vm->init_seen) {
		vm->init_seen = true;
		vm_stage(vm, "init");
	}
	if (vm->boot.error[0]) {
		life_arm(vm, FAILED_NS); /* it powers itself off */
	} else if (vm->boot.ready && vm->origin == VM_BOOTED && !vm->run_posted) {
		guest_ready(vm);
	} else if (*stage) {
		log_info("guest: %s", stage);
	}
}
