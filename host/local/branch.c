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
#include "host/local/vmfile.h"
#include "lib/fd.h"
#include "lib/log.h"
#include "lib/str.h"

/*
 * A copy of a running sandbox, for others to begin from: the channel is brought to silence, the guest is stopped,
 * and memory, devices and disk go into a folder, in the form of saved/. Then it runs on; it is told nothing, for
 * nothing of its own has changed. Connections to it are cut and taken up again by their clients; for a copy of the
 * disk alone they stay.
 *
 * It stays RUNNING for everybody meanwhile: who connects waits for the channel.
 */

#define QUIET_NS 3000000000LL /* a guest that does not end its channel by then is copied with it */
#define SAVE_NS	 300000000000LL
#define SYNC_NS	 10000000000LL

static void over(struct vm *vm, enum err_code code, const char *why)
{
	vm->branching = false;
	loop_disarm(&vm->timer);
	loop_disarm(&vm->quiet);
	if (code != ERR_NONE)
		ignore_result(fd_remove_tree(vm->branch));
	life_answer(vm, code, why);
}

static void on_continued(void *arg, const cJSON *ret, const char *why)
{
	struct vm *vm = arg;

	if (!vm->branching || vm->phase != VM_RUNNING)
		return;
	log_info("it stood still for %lld ms",
		 (long long)((loop_now() - vm->stopped_at) / 1000000));
	if (!ret) {
		over(vm, ERR_INTERNAL, why);
		life_finish(vm, false, "QEMU could not let it run on");
		return;
	}
	if (!(vm->branch_how & BRANCH_DISK))
		machine_new_channel(vm);
	over(vm, vm->why[0] ? ERR_IO : ERR_NONE, vm->why);
}

static int complete(struct vm *vm, struct err *e)
{
	char fit[TEMPLATE_KEY_LEN + 1];
	AUTO_FD dirfd = open(vm->branch, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int r = dirfd < 0 ? -errno : vmfile_copy("disk.qcow2", dirfd, "disk.qcow2");

	if (r < 0)
		return err_set(e, ERR_IO, -r, "its disk");
	if (vm->branch_how & BRANCH_DISK)
		return 0;
	r = template_fit(vm->qemu, &vm->share, &vm->config, vm->accel != ACCEL_TCG, fit, e);
	if (r < 0)
		return r;
	r = saved_describe(dirfd, &(struct saved){
					  .fit = fit, .balloon = vm->balloon, .based = vm->based });
	return r < 0 ? err_set(e, ERR_IO, -r, "its state") : 0;
}

static void run_on(struct vm *vm, const char *why)
{
	vm->why[0] = '\0';
	if (why)
		(void)snprintf(vm->why, sizeof(vm->why), "the sandbox cannot be copied: %.200s",
			       why);
	if (qmp_send(&vm->qmp, "cont", on_continued, vm) < 0)
		on_continued(vm, NULL, "its monitor is closed");
}

static void on_saved(struct vm *vm, int result, const char *why)
{
	struct err e = ERR_INIT;

	if (!vm->branching || vm->phase != VM_RUNNING)
		return;
	if (result < 0)
		run_on(vm, why);
	else
		run_on(vm, complete(vm, &e) < 0 ? e.msg : NULL);
}

static void on_quiet(struct loop_timer *t)
{
	struct vm *vm = t->arg;
	int r;

	vm->stopped_at = loop_now();
	r = save_start(vm, vm->branch, vm->based ? RAM_CHANGES : RAM_ALL, on_saved);
	if (r < 0)
		on_saved(vm, r, strerror(-r));
}

static void on_stopped(void *arg, const cJSON *ret, const char *why)
{
	on_saved(arg, ret ? 0 : -EIO, why);
}

static void begin(struct vm *vm)
{
	if (vm->branch_how & BRANCH_DISK) {
		vm->stopped_at = loop_now();
		if (qmp_send(&vm->qmp, "stop", on_stopped, vm) < 0)
			on_stopped(vm, NULL, "its monitor is closed");
		return;
	}
	vm->quiet.fn = on_quiet;
	vm->quiet.arg = vm;
	loop_arm(&vm->loop, &vm->quiet, !vm->chan || chan_quiesce(vm->chan) < 0 ? 0 : QUIET_NS);
}

/* Memory has what the disk lacks; a disk alone without it would not be what its owner sees. */
static void on_synced(struct vm *vm, int status, const char *text)
{
	char why[200];

	if (!vm->branching || vm->phase != VM_RUNNING)
		return;
	if (status < 200 || status > 299) {
		log_warn("sync hook: %d %s", status, text);
		if (vm->branch_how & BRANCH_DISK) {
			(void)snprintf(why, sizeof(why),
				       "the guest cannot write its files to its disk: %.120s",
				       text);
			over(vm, ERR_TIMEOUT, why);
			return;
		}
	}
	begin(vm);
}

void branch_channel_down(struct vm *vm)
{
	if (vm->branching && vm->quiet.loop)
		loop_arm(&vm->loop, &vm->quiet, 0);
}

void branch_late(struct vm *vm)
{
	if (!vm->branching)
		return;
	save_stop(vm);
	run_on(vm, "it took too long");
}

static bool is_name(const char *name)
{
	return str_starts(name, BRANCH "-") && vmdir_is_id(name + sizeof(BRANCH));
}

void life_branch(struct vm *vm, const char *name, unsigned how, vm_answer_fn *answer, void *arg)
{
	int r;

	if (!life_begin(vm, answer, arg))
		return;
	if (vm->phase != VM_RUNNING) {
		life_answer(vm, ERR_CONFLICT,
			    "the sandbox stands still: `asb start` lets it go on");
		return;
	}
	r = is_name(name) ? str_format(vm->branch, sizeof(vm->branch), "%s", name) : -EINVAL;
	if (r == 0)
		r = fd_remove_tree(vm->branch);
	if (r == 0 && mkdir(vm->branch, 0700) < 0)
		r = -errno;
	if (r < 0) {
		life_answer(vm, ERR_IO, strerror(-r));
		return;
	}
	vm->branching = true;
	vm->branch_how = how;
	life_arm(vm, SAVE_NS);
	if (how & BRANCH_SYNC)
		life_post(vm, "sync", SYNC_NS, on_synced);
	else
		begin(vm);
}
