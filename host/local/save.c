/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "host/local/life_int.h"
#include "lib/fd.h"
#include "lib/str.h"

/*
 * A guest into files (docs/decisions/0006-snapshots.md): QMP `stop`; `xen-save-devices-state`, which every build of
 * QEMU has and which writes the devices without the memory; then the memory, by ram.c, in steps of the loop. The
 * devices come first: saving an interrupt controller under KVM writes to the guest's memory.
 *
 * `gpa2hva` tells where in QEMU the memory is. It is one block, also where the guest sees a hole below 4 GiB.
 */

#define RAM_AT 0 /* guest address of the first byte: x86's microvm */

struct save {
	struct vm *vm;
	save_done_fn *fn;
	struct loop_timer step;
	struct ram_job job;
	enum ram_kind kind;
	int fd;
	char dir[LOCAL_PATH_MAX];
};

void save_stop(struct vm *vm)
{
	struct save *s = vm->save;

	if (!s)
		return;
	vm->save = NULL;
	loop_disarm(&s->step);
	ram_done(&s->job);
	fd_close(&s->fd);
	free(s);
}

static void over(struct vm *vm, int result, const char *why)
{
	save_done_fn *fn = vm->save->fn;
	char text[200];

	if (str_format(text, sizeof(text), "%.190s", why) < 0)
		text[0] = '\0';
	save_stop(vm);
	fn(vm, result, text);
}

static void on_step(struct loop_timer *t)
{
	struct save *s = t->arg;
	int r = ram_save_step(&s->job);

	if (r > 0)
		loop_arm(&s->vm->loop, &s->step, 0);
	else
		over(s->vm, r, r < 0 ? strerror(-r) : "");
}

/* "Host virtual address for 0x0 (ram) is 0x7f…\r\n" */
int memory_address(const cJSON *ret, uint64_t *out)
{
	static const char mark[] = " is 0x";
	const char *text = cJSON_IsString(ret) ? ret->valuestring : "", *at = strstr(text, mark);
	char *end;

	if (!at || strlen(text) > 200)
		return -EPROTO;
	at += sizeof(mark) - 1;
	errno = 0;
	*out = strtoull(at, &end, 16);
	return errno || end == at || *out == 0 ? -EPROTO : 0;
}

int memory_ask(struct vm *vm, qmp_done_fn *fn)
{
	cJSON *args = cJSON_CreateObject();
	char line[40];

	ignore_result(str_format(line, sizeof(line), "gpa2hva %#x", RAM_AT)); /* fits */
	if (!args || !jsn_add_str(args, "command-line", line)) {
		cJSON_Delete(args);
		return -ENOMEM;
	}
	return qmp_ask(&vm->qmp, "human-monitor-command", args, fn, vm);
}

static void on_address(void *arg, const cJSON *ret, const char *why)
{
	struct vm *vm = arg;
	struct save *s = vm->save;
	char path[LOCAL_PATH_MAX];
	uint64_t base;
	int r = -EPROTO;

	if (!s)
		return;
	if (ret)
		r = memory_address(ret, &base);
	if (r == 0)
		r = str_format(path, sizeof(path), "%s/ram", s->dir);
	if (r == 0) {
		s->fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
		r = s->fd < 0 ? -errno : 0;
	}
	if (r == 0)
		r = ram_save(&s->job, s->kind, vm->qemu_child.pid, base,
			     vm->config.memory_mib << 20, s->fd);
	if (r < 0)
		over(vm, r, ret ? strerror(-r) : why);
	else
		loop_arm(&vm->loop, &s->step, 0);
}

/* Of a failed write QEMU says no more than that. */
static bool is_full(const char *dir)
{
	struct statvfs st;

	return statvfs(dir, &st) == 0 && (st.f_bavail == 0 || (st.f_files && st.f_favail == 0));
}

static void on_devices(void *arg, const cJSON *ret, const char *why)
{
	struct vm *vm = arg;
	int r;

	if (!vm->save)
		return;
	r = ret ? memory_ask(vm, on_address) : is_full(vm->save->dir) ? -ENOSPC : -EIO;
	if (r < 0)
		over(vm, r, ret || r == -ENOSPC ? strerror(-r) : why);
}

static void on_stopped(void *arg, const cJSON *ret, const char *why)
{
	struct vm *vm = arg;
	cJSON *args = cJSON_CreateObject();
	char path[LOCAL_PATH_MAX];
	int r = -ENOMEM;

	if (!vm->save) {
		cJSON_Delete(args);
		return;
	}
	if (str_format(path, sizeof(path), "%s/devices", vm->save->dir) == 0 && args &&
	    jsn_add_str(args, "filename", path) && jsn_add_bool(args, "live", false))
		r = 0;
	if (r < 0 || !ret)
		cJSON_Delete(args);
	else
		r = qmp_ask(&vm->qmp, "xen-save-devices-state", args, on_devices, vm);
	if (!ret)
		over(vm, -EIO, why);
	else if (r < 0)
		over(vm, r, strerror(-r));
}

int save_start(struct vm *vm, const char *dir, enum ram_kind kind, save_done_fn *fn)
{
	struct save *s;
	int r;

	if (vm->save)
		return -EBUSY;
	s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	s->vm = vm;
	s->fn = fn;
	s->kind = kind;
	s->fd = -1;
	s->job = (struct ram_job)RAM_JOB_INIT;
	s->step.fn = on_step;
	s->step.arg = s;
	vm->save = s;
	r = str_format(s->dir, sizeof(s->dir), "%s", dir);
	if (r == 0)
		r = qmp_send(&vm->qmp, "stop", on_stopped, vm);
	if (r < 0)
		save_stop(vm);
	return r;
}
