/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host/local/life_int.h"
#include "host/local/saved.h"
#include "lib/fd.h"
#include "lib/log.h"
#include "lib/str.h"

/*
 * A sandbox that was suspended to disk goes on: QEMU waits (-S -incoming defer); the pages of saved/ram are put into
 * its memory; it loads the devices, which may look at that memory; saved/ is forgotten; and only then does the guest
 * run. Until it is forgotten a failure leaves the sandbox suspended as it was.
 */

#define POLL_NS 1000000LL

struct restore {
	struct vm *vm;
	struct loop_timer step;
	struct ram_job job;
	int fd;
};

void restore_stop(struct vm *vm)
{
	struct restore *s = vm->restore;

	if (!s)
		return;
	vm->restore = NULL;
	loop_disarm(&s->step);
	ram_done(&s->job);
	fd_close(&s->fd);
	free(s);
}

static void failed(struct vm *vm, int r, const char *why)
{
	struct err e = ERR_INIT;

	(void)err_set(&e, ERR_UNAVAILABLE, 0,
		      "the memory of the suspended sandbox cannot be loaded: %s",
		      why ? why : strerror(-r));
	restore_stop(vm);
	begin_failed(vm, &e);
}

static void on_runs(void *arg, const cJSON *ret, const char *why)
{
	struct vm *vm = arg;

	if (!vm->restore)
		return;
	if (ret)
		restore_stop(vm); /* the rest comes when its channel is up */
	else
		failed(vm, -EIO, why);
}

/* All is in QEMU. */
static void let_run(struct vm *vm)
{
	struct err e = ERR_INIT;
	int r = saved_drop(vm->dirfd, &e);

	if (r < 0) {
		restore_stop(vm);
		begin_failed(vm, &e);
		return;
	}
	vm->kept = vm->let_go =
		true; /* its memory is nowhere else now: it does not end with who started it */
	vm_stage(vm, "memory");
	r = qmp_send(&vm->qmp, "cont", on_runs, vm);
	if (r < 0)
		failed(vm, r, NULL);
}

static void on_state(void *arg, const cJSON *ret, const char *why)
{
	struct vm *vm = arg;
	const char *status = "";

	if (!vm->restore)
		return;
	if (!ret || jsn_str(ret, "status", &status, NULL) < 0 || !strcmp(status, "failed"))
		failed(vm, -EIO, ret ? "QEMU refuses the device state" : why);
	else if (!strcmp(status, "completed"))
		let_run(vm);
	else
		loop_arm(&vm->loop, &vm->restore->step, POLL_NS);
}

static void on_poll(struct loop_timer *t)
{
	struct restore *s = t->arg;
	int r = qmp_send(&s->vm->qmp, "query-migrate", on_state, s->vm);

	if (r < 0)
		failed(s->vm, r, NULL);
}

static void on_incoming(void *arg, const cJSON *ret, const char *why)
{
	struct vm *vm = arg;

	if (!vm->restore)
		return;
	if (!ret) {
		failed(vm, -EIO, why);
		return;
	}
	vm->restore->step.fn = on_poll;
	loop_arm(&vm->loop, &vm->restore->step, 0);
}

static void load_devices(struct vm *vm)
{
	cJSON *args = cJSON_CreateObject();
	char uri[32];
	int r = -ENOMEM;

	ignore_result(str_format(uri, sizeof(uri), "fd:%d", vm->state_fd)); /* fits */
	if (args && jsn_add_str(args, "uri", uri))
		r = qmp_ask(&vm->qmp, "migrate-incoming", args, on_incoming, vm);
	else
		cJSON_Delete(args);
	if (r < 0)
		failed(vm, r, NULL);
}

static void on_step(struct loop_timer *t)
{
	struct restore *s = t->arg;
	int r = ram_load_step(&s->job);

	if (r > 0)
		loop_arm(&s->vm->loop, &s->step, 0);
	else if (r == 0)
		load_devices(s->vm);
	else
		failed(s->vm, r, NULL);
}

static void on_address(void *arg, const cJSON *ret, const char *why)
{
	struct vm *vm = arg;
	struct restore *s = vm->restore;
	uint64_t base = 0;
	int r = -EPROTO;

	if (!s)
		return;
	if (ret)
		r = memory_address(ret, &base);
	if (r == 0) {
		s->fd = openat(vm->dirfd, SAVED "/ram", O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
		r = s->fd < 0 ? -errno : 0;
	}
	if (r == 0)
		r = ram_load(&s->job, vm->qemu_child.pid, base, vm->config.memory_mib << 20, s->fd);
	if (r < 0)
		failed(vm, r, ret ? NULL : why);
	else
		loop_arm(&vm->loop, &s->step, 0);
}

void restore_start(struct vm *vm)
{
	struct restore *s = calloc(1, sizeof(*s));
	int r = -ENOMEM;

	if (s) {
		s->vm = vm;
		s->fd = -1;
		s->job = (struct ram_job)RAM_JOB_INIT;
		s->step.fn = on_step;
		s->step.arg = s;
		vm->restore = s;
		r = memory_ask(vm, on_address);
	}
	if (r < 0)
		failed(vm, r, NULL);
}
