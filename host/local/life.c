/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "host/local/qemu.h"
#include "host/local/life_int.h"
#include "host/local/saved.h"
#include "lib/b64.h"
#include "lib/log.h"
#include "lib/proto.h"
#include "lib/str.h"

/*
 * The phases of a VM. BOOTING is begin.c's affair, until it is RUNNING. Operations (suspend, resume, power off, remove) come one at a
 * time. `vm->timer` is the deadline of whatever is under way, so nothing waits for the guest or for
 * QEMU without one.
 */

#define RESUME_NS    10000000000LL
#define SUSPEND_NS   10000000000LL
#define TERMINATE_NS 2000000000LL
#define ASK_OFF_NS   5000000000LL /* for the guest to take the request to power off */
#define OFF_EXTRA_NS 5000000000LL /* on top of the grace it was given */
#define QMP_NS	     10000000000LL
#define QUIT_NS	     3000000000LL
#define KILL_NS	     10000000000LL

static void on_timer(struct loop_timer *t);

void life_arm(struct vm *vm, int64_t ns)
{
	vm->timer.fn = on_timer;
	vm->timer.arg = vm;
	loop_arm(&vm->loop, &vm->timer, ns);
}

/* --- operations --- */
static void answer_err(struct vm *vm, const struct err *e)
{
	vm_answer_fn *fn = vm->op_answer;

	vm->op_answer = NULL;
	if (fn)
		fn(vm->op_arg, e);
}

static void answer_ok(struct vm *vm)
{
	const struct err none = ERR_INIT;

	answer_err(vm, &none);
}

static void answer_fail(struct vm *vm, enum err_code code, const char *message)
{
	struct err e = ERR_INIT;

	(void)err_set(&e, code, 0, "%s", message);
	answer_err(vm, &e);
}

void life_answer(struct vm *vm, enum err_code code, const char *message)
{
	if (code == ERR_NONE)
		answer_ok(vm);
	else
		answer_fail(vm, code, message);
}

bool life_begin(struct vm *vm, vm_answer_fn *answer, void *arg)
{
	struct err e = ERR_INIT;

	if (!vm->op_answer && vm->phase != VM_BOOTING && vm->phase < VM_STOPPING) {
		vm->op_answer = answer;
		vm->op_arg = arg;
		return true;
	}
	(void)err_set(&e, ERR_CONFLICT, 0, "%s",
		      vm->phase == VM_BOOTING	 ? "the sandbox is still starting"
		      : vm->phase >= VM_STOPPING ? "the sandbox is being stopped"
						 : "another operation is under way");
	answer(arg, &e);
	return false;
}

/* --- hooks --- */
/* What only the host can give: entropy, because a restored guest has none of its own, and the time.
 */
static cJSON *payload(const struct vm *vm, bool run)
{
	cJSON *j = cJSON_CreateObject(), *env = NULL;
	unsigned char raw[64];
	char entropy[B64_LEN(sizeof(raw)) + 1], now[40], hostname[64];
	struct timespec t;
	bool ok;

	(void)clock_gettime(CLOCK_REALTIME, &t);
	(void)snprintf(now, sizeof(now), "%lld.%09ld", (long long)t.tv_sec, t.tv_nsec);
	qemu_hostname(vm->config.name, hostname);
	ok = j && getrandom(raw, sizeof(raw), 0) == (ssize_t)sizeof(raw);
	if (ok) {
		b64_encode(raw, sizeof(raw), entropy);
		ok = jsn_add_str(j, "entropy", entropy) && jsn_add_str(j, "time", now);
	}
	if (ok && (run || vm->origin == VM_RESTORED)) /* a branch is another sandbox than it was */
		ok = jsn_add_str(j, "hostname", hostname);
	if (ok && run && vm->config.env) {
		env = cJSON_Duplicate(vm->config.env, true);
		ok = env && cJSON_AddItemToObject(j, "env", env);
	}
	if (ok)
		return j;
	cJSON_Delete(j);
	return NULL;
}

/* The platform's envelope: {"microvmId":…,"runHookPayload":"<JSON text>"} */
static char *body(const struct vm *vm, const char *hook)
{
	AUTO_JSN *j = cJSON_CreateObject();
	bool run = !strcmp(hook, "run"), ok = j && jsn_add_str(j, "microvmId", vm->config.id);

	if (ok && (run || !strcmp(hook, "resume"))) {
		AUTO_JSN *p = payload(vm, run);
		char *text = p ? cJSON_PrintUnformatted(p) : NULL;

		ok = text && jsn_add_str(j, "runHookPayload", text);
		free(text);
	}
	return ok ? cJSON_PrintUnformatted(j) : NULL;
}

void life_post(struct vm *vm, const char *hook, int64_t limit_ns, hook_done_fn *fn)
{
	char path[128];
	char *text = body(vm, hook);
	int r = text ? str_format(path, sizeof(path), "%s%s", PROTO_HOOK_PREFIX, hook) : -ENOMEM;

	if (r == 0)
		r = hook_post(vm, path, text, limit_ns, fn);
	free(text);
	if (r < 0)
		fn(vm, r, strerror(-r));
}

/* --- suspend and resume --- */
static void on_stopped(void *arg, const cJSON *ret, const char *why)
{
	struct vm *vm = arg;
	char text[200];

	if (vm->phase != VM_SUSPENDING)
		return;
	loop_disarm(&vm->timer);
	if (ret) {
		vm->phase = VM_SUSPENDED;
		vm_set_status(vm, SANDBOX_SUSPENDED, "");
		answer_ok(vm);
		return;
	}
	vm->phase = VM_RUNNING;
	vm_set_status(vm, SANDBOX_RUNNING, "");
	(void)snprintf(text, sizeof(text), "QEMU cannot stop the guest: %.150s", why);
	answer_fail(vm, ERR_INTERNAL, text);
}

static void on_suspend_hook(struct vm *vm, int status, const char *text)
{
	if (vm->phase != VM_SUSPENDING)
		return;
	if (status < 200 || status > 299) /* a guest cannot refuse to be suspended */
		log_warn("suspend hook: %d %s", status, text);
	if (vm->kept) {
		suspend_to_disk(vm);
		return;
	}
	life_arm(vm, QMP_NS); /* one that ends with its owner only stands still */
	if (qmp_send(&vm->qmp, "stop", on_stopped, vm) < 0)
		on_stopped(vm, NULL, "its monitor is closed");
}

void life_suspend(struct vm *vm, vm_answer_fn *answer, void *arg)
{
	if (idle_hand_over(vm)) {
		vm->op_answer = answer;
		vm->op_arg = arg;
		return;
	}
	if (!life_begin(vm, answer, arg))
		return;
	if (vm->phase == VM_SUSPENDED) {
		answer_ok(vm);
		return;
	}
	vm->phase = VM_SUSPENDING;
	vm_set_status(vm, SANDBOX_SUSPENDING, "");
	life_arm(vm, SUSPEND_NS + QMP_NS);
	life_post(vm, "suspend", SUSPEND_NS, on_suspend_hook);
}

static void on_resume_hook(struct vm *vm, int status, const char *text)
{
	if (vm->phase != VM_RESUMING)
		return;
	loop_disarm(&vm->timer);
	vm->phase = VM_RUNNING;
	vm_set_status(vm, SANDBOX_RUNNING, "");
	link_channel_up(vm);
	if (status < 200 || status > 299) /* it runs: that its identity was not renewed is worth a
					     line, not its life */
		log_warn("resume hook: %d %s", status, text);
	answer_ok(vm);
}

static void on_continued(void *arg, const cJSON *ret, const char *why)
{
	struct vm *vm = arg;
	char text[200];

	if (vm->phase != VM_RESUMING)
		return;
	if (ret) {
		life_arm(vm, RESUME_NS + QMP_NS);
		life_post(vm, "resume", RESUME_NS, on_resume_hook);
		return;
	}
	vm->phase = VM_SUSPENDED;
	(void)snprintf(text, sizeof(text), "QEMU cannot continue the guest: %.150s", why);
	answer_fail(vm, ERR_INTERNAL, text);
}

void life_resume(struct vm *vm, vm_answer_fn *answer, void *arg)
{
	if (!life_begin(vm, answer, arg))
		return;
	if (vm->phase == VM_RUNNING) {
		answer_ok(vm);
		return;
	}
	vm->phase = VM_RESUMING;
	life_arm(vm, QMP_NS);
	if (qmp_send(&vm->qmp, "cont", on_continued, vm) < 0)
		on_continued(vm, NULL, "its monitor is closed");
}

/* --- the end --- */
static void quit_qemu(struct vm *vm)
{
	vm->quit_sent = true;
	life_arm(vm, QUIT_NS);
	if (qmp_send(&vm->qmp, "quit", NULL, NULL) < 0)
		life_finish(vm, vm->destroy, "");
}

static void on_off_taken(struct vm *vm, int status, const char *text)
{
	if (vm->phase != VM_STOPPING)
		return;
	if (status >= 200 && status < 300) {
		life_arm(vm, vm->grace_ns + OFF_EXTRA_NS);
		return;
	}
	log_warn("the guest does not power off (%d %s)", status, text);
	quit_qemu(vm);
}

static void on_terminate_hook(struct vm *vm, int status, const char *text)
{
	char path[64];
	int r;

	if (vm->phase != VM_STOPPING)
		return;
	if (status < 200 || status > 299)
		log_warn("terminate hook: %d %s", status, text);
	if (vm->destroy) {
		life_finish(vm, true, "");
		return;
	}
	r = str_format(path, sizeof(path), "/asb/v1/power-off?grace_ms=%lld",
		       (long long)(vm->grace_ns / 1000000));
	if (r == 0)
		r = hook_post(vm, path, "", ASK_OFF_NS, on_off_taken);
	if (r < 0)
		on_off_taken(vm, r, strerror(-r));
}

static void stop(struct vm *vm)
{
	bool suspended = vm->phase == VM_SUSPENDED;

	vm->phase = VM_STOPPING;
	vm_set_status(vm, SANDBOX_TERMINATING, vm->end_reason);
	life_arm(vm, TERMINATE_NS + ASK_OFF_NS + QMP_NS);
	if (suspended && qmp_send(&vm->qmp, "cont", NULL, NULL) < 0)
		quit_qemu(vm);
	else
		life_post(vm, "terminate", TERMINATE_NS, on_terminate_hook);
}

void life_power_off(struct vm *vm, int64_t grace_ns, vm_answer_fn *answer, void *arg)
{
	if (!life_begin(vm, answer, arg))
		return;
	vm->grace_ns = grace_ns;
	stop(vm);
}

void life_remove(struct vm *vm, vm_answer_fn *answer, void *arg)
{
	if (vm->op_answer) /* whoever waits for something smaller is told that it does not come */
		answer_fail(vm, ERR_CONFLICT, "the sandbox is being removed");
	vm->op_answer = answer;
	vm->op_arg = arg;
	if (vm->phase == VM_RUNNING) {
		vm->destroy = true;
		stop(vm);
	} else {
		life_finish(vm, true, "");
	}
}

static void on_timer(struct loop_timer *t)
{
	struct vm *vm = t->arg;

	switch (vm->phase) {
	case VM_BOOTING:
		begin_late(vm);
		break;
	case VM_SUSPENDING:
		if (vm->kept) {
			suspend_late(vm);
			break;
		}
		vm->phase = VM_RUNNING;
		vm_set_status(vm, SANDBOX_RUNNING, "");
		answer_fail(vm, ERR_TIMEOUT, "the sandbox could not be suspended in time");
		break;
	case VM_RESUMING:
		vm->phase = VM_SUSPENDED;
		answer_fail(vm, ERR_TIMEOUT, "the sandbox could not be resumed in time");
		break;
	case VM_STOPPING:
		if (vm->quit_sent)
			life_finish(vm, vm->destroy, "it did not power off and was killed");
		else
			quit_qemu(vm);
		break;
	case VM_ENDING: /* killed and waited for, or never there */
		vm->phase = VM_ENDED;
		vm_end(vm);
		answer_ok(vm);
		break;
	case VM_RUNNING:
		branch_late(vm);
		break;
	case VM_SUSPENDED:
	case VM_ENDED:
		break;
	}
}

void life_finish(struct vm *vm, bool destroy, const char *reason)
{
	vm->destroy = vm->destroy || destroy;
	if (vm->phase >= VM_ENDING)
		return;
	vm_set_status(vm, saved_is_there(vm->dirfd) ? SANDBOX_SUSPENDED : SANDBOX_TERMINATED,
		      reason[0] ? reason : vm->end_reason);
	life_leave(vm);
}

void life_leave(struct vm *vm)
{
	vm->phase = VM_ENDING;
	loop_disarm(&vm->probe);
	loop_disarm(&vm->quiet);
	make_stop(vm);
	save_stop(vm);
	restore_stop(vm);
	machine_kill(vm);
	life_arm(vm, vm->qemu_runs ? KILL_NS : 0);
}

void life_qemu_exited(struct vm *vm)
{
	char how[320];

	machine_how_ended(vm, how, sizeof(how));
	switch (vm->phase) {
	case VM_BOOTING:
		begin_exited(vm, how);
		break;
	case VM_ENDING:
		life_arm(vm, 0);
		break;
	case VM_STOPPING:
		life_finish(vm, vm->destroy, "");
		break;
	case VM_RUNNING:
	case VM_SUSPENDING:
	case VM_SUSPENDED:
	case VM_RESUMING:
		if (vm->boot.panic[0])
			(void)snprintf(how, sizeof(how), "the guest kernel panicked: %s",
				       vm->boot.panic);
		log_warn("%s", how);
		if (vm->op_answer)
			answer_fail(vm, ERR_UNAVAILABLE, how);
		life_finish(vm, false, how);
		break;
	case VM_ENDED:
		break;
	}
}
