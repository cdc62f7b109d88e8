/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host/local/local.h"
#include "host/local/qemubin.h"
#include "host/local/spawn.h"
#include "host/local/life_int.h"
#include "host/local/template.h"
#include "host/state/state.h"
#include "lib/fd.h"
#include "lib/log.h"
#include "lib/str.h"

/*
 * The supervisor of one VM: set-up, the owner, signals, and the end.
 *
 * Its working directory is the VM's folder, so that the sockets have short names however long the
 * path is. Whoever started it owns the VM until it says `keep`; if the owner's socket closes
 * before, all of the VM goes, also the name. When the supervisor itself is killed, QEMU dies with
 * it (PR_SET_PDEATHSIG), the lock opens, and what is left of a VM that nobody kept is removed by
 * its owner, or by the next `collect`.
 */

#define OWNER_LINE_MAX	256
#define CONSOLE_CAP	(1 << 20)
#define STATUS_AGAIN_NS 1000000000LL
#define GRACE_NS	10000000000LL /* of the guest, when we are asked to go */

static void tell(struct vm *vm, cJSON *j)
{
	char *text = j ? cJSON_PrintUnformatted(j) : NULL;

	if (text && vm->owner.fd >= 0)
		ignore_result(line_send(&vm->owner,
					text)); /* an owner that has gone is told by closed() */
	free(text);
}

static int64_t elapsed_ms(const struct vm *vm)
{
	return (loop_now() - vm->started) / 1000000;
}

void vm_stage(struct vm *vm, const char *stage)
{
	AUTO_JSN *j = cJSON_CreateObject();

	log_info("%s after %lld ms", stage, (long long)elapsed_ms(vm));
	if (j && jsn_add_str(j, "stage", stage) && jsn_add_i64(j, "ms", elapsed_ms(vm)))
		tell(vm, j);
}

static void on_status_again(struct loop_timer *t);

/* On a full disk the last state would stay PENDING, and whoever wants the sandbox would wait for it: it is written as soon as it can be. */
static void write_status(struct vm *vm)
{
	const bool again = vm->status_again.fn != NULL;
	int r = vmdir_write_status(vm->dirfd, &vm->status);

	loop_disarm(&vm->status_again);
	vm->status_again.fn = NULL;
	if (r == 0)
		return;
	if (!again)
		log_warn("status.json: %s", strerror(-r));
	vm->status_again.fn = on_status_again;
	vm->status_again.arg = vm;
	loop_arm(&vm->loop, &vm->status_again, STATUS_AGAIN_NS);
}

static void on_status_again(struct loop_timer *t)
{
	write_status(t->arg);
}

void vm_set_status(struct vm *vm, enum sandbox_state state, const char *reason)
{
	vm->status.state = state;
	memset(vm->status.accel, 0, sizeof(vm->status.accel));
	memcpy(vm->status.accel, vm->accel == ACCEL_TCG ? "tcg" : "kvm", 3);
	if (str_format(vm->status.reason, sizeof(vm->status.reason), "%.250s", reason) < 0)
		vm->status.reason[0] = '\0';
	write_status(vm);
	if (state == SANDBOX_RUNNING)
		idle_runs(vm);
}

void vm_ready(struct vm *vm)
{
	AUTO_JSN *j = cJSON_CreateObject();

	log_info("ready after %lld ms", (long long)elapsed_ms(vm));
	if (j && jsn_add_bool(j, "ready", true) && jsn_add_i64(j, "ms", elapsed_ms(vm)))
		tell(vm, j);
}

void vm_failed(struct vm *vm, const struct err *e)
{
	AUTO_JSN *j = cJSON_CreateObject();

	log_error("%s", e->msg);
	if (j && jsn_add_text(j, "failed", e->msg, strlen(e->msg)) &&
	    jsn_add_str(j, "code", err_code_name(e->code)))
		tell(vm, j);
}

void vm_end(struct vm *vm)
{
	struct err e = ERR_INIT;
	bool lost = vm->mode == VM_CREATE && !vm->kept;

	make_stop(vm);
	save_stop(vm);
	restore_stop(vm);
	machine_close(vm);
	link_stop(vm);
	if (vm->destroy || vm->config.ephemeral || lost) {
		if (vmdir_remove(vm->config.id, &e) < 0)
			log_error("%s", e.msg);
		if ((lost || vm->config.ephemeral) &&
		    state_remove(vm->config.name, vm->config.id, &e) < 0)
			log_error("%s", e.msg);
	}
	loop_stop(&vm->loop);
}

/* --- the owner --- */
static void on_owner_line(struct line_peer *p, char *s, size_t n)
{
	struct vm *vm = p->arg;
	int r;

	if (n != 4 || memcmp(s, "keep", 4) != 0 || vm->phase != VM_RUNNING || vm->config.ephemeral)
		return;
	r = vmdir_keep(vm->dirfd);
	if (r < 0) { /* without the mark the next collect would remove it */
		log_error("cannot keep the sandbox: %s", strerror(-r));
		ignore_result(line_send(p, "{\"kept\":false}"));
		return;
	}
	vm->kept = true;
	ignore_result(line_send(p, "{\"kept\":true}"));
}

static void on_owner_closed(struct line_peer *p, int error)
{
	struct vm *vm = p->arg;

	(void)error;
	if (!vm->kept)
		life_finish(vm, vm->mode == VM_CREATE, "its owner went away");
}

static const struct line_ops owner_ops = { .line = on_owner_line, .closed = on_owner_closed };

/* --- signals --- */
static void on_off(void *arg, const struct err *e)
{
	(void)arg;
	if (e->code != ERR_NONE)
		log_warn("%s", e->msg);
}

static void on_signal(void *arg, const void *info)
{
	const struct signalfd_siginfo *si = info;
	struct vm *vm = arg;

	if (si->ssi_signo != SIGTERM)
		return;
	if (vm->phase == VM_BOOTING)
		life_finish(vm, vm->mode == VM_CREATE, "its supervisor was told to end");
	else
		life_power_off(vm, GRACE_NS, on_off, vm);
}

static int catch_signals(struct vm *vm)
{
	sigset_t set;

	(void)signal(SIGINT, SIG_IGN);
	(void)signal(SIGHUP, SIG_IGN);
	(void)signal(SIGPIPE, SIG_IGN);
	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGTERM);
	return loop_signals(&vm->loop, &set, on_signal, vm);
}

/* --- set-up --- */
static void init(struct vm *vm, const struct spawn_args *a)
{
	vm->dirfd = vm->console_fd = vm->stderr_fd = vm->channel_fd = vm->qemu_child.pidfd = -1;
	vm->owner = vm->boot_port = (struct line_peer)LINE_PEER_INIT;
	vm->exit_watch = vm->console_watch = vm->stderr_watch = (struct loop_watch)LOOP_WATCH_INIT;
	vm->console = (struct caplog)CAPLOG_INIT;
	vm->lock = a->lock_fd;
	vm->mode = a->start ? VM_START : VM_CREATE;
	vm->started = loop_now();
	vm->deadline = vm->started + a->limit_ns;
}

static int set_up(struct vm *vm, const struct spawn_args *a, struct err *e)
{
	int r = fd_set_nonblock(a->owner_fd, true);

	if (r == 0)
		r = fd_set_cloexec(a->owner_fd, true);
	if (r == 0)
		r = fd_set_cloexec(a->lock_fd, true);
	if (r == 0)
		r = line_open(&vm->loop, &vm->owner, a->owner_fd, OWNER_LINE_MAX, &owner_ops, vm);
	if (r == 0)
		r = catch_signals(vm);
	if (r < 0)
		return err_set(e, ERR_INTERNAL, -r, "cannot start the supervisor");
	r = share_find(vm->config.image, &vm->share, e);
	if (r == 0)
		r = qemubin_find(vm->qemu, e);
	if (r == 0)
		r = link_start(vm, e);
	if (r == 0)
		r = ctl_start(vm, e);
	if (r < 0)
		return r;
	r = hook_start(vm);
	if (r == 0)
		r = idle_start(vm);
	if (r == 0)
		r = caplog_open(&vm->console, vm->dirfd, "console.log", CONSOLE_CAP);
	return r < 0 ? err_set(e, ERR_INTERNAL, -r, "cannot start the supervisor") : 0;
}

static void tear_down(struct vm *vm)
{
	make_stop(vm);
	save_stop(vm);
	restore_stop(vm);
	hook_stop(vm);
	link_stop(vm);
	machine_close(vm);
	ctl_stop(vm);
	idle_stop(vm);
	line_close(&vm->owner);
	caplog_close(&vm->console);
	vm_config_done(&vm->config);
	fd_close(&vm->dirfd);
	loop_done(&vm->loop);
}

static int supervise(const struct spawn_args *a)
{
	struct vm *vm = calloc(1, sizeof(*vm));
	struct err e = ERR_INIT;
	int r;

	if (!vm || loop_init(&vm->loop) < 0) {
		free(vm);
		return 1;
	}
	init(vm, a);
	vm->dirfd = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	r = vmdir_read_config(vm->dirfd, &vm->config, &e);
	if (r == 0)
		r = set_up(vm, a, &e);
	if (r == 0) {
		life_boot(vm);
	} else { /* told by the same way as any later failure */
		vm_failed(vm, &e);
		life_finish(vm, vm->mode == VM_CREATE, e.msg);
	}
	r = loop_run(&vm->loop);
	tear_down(vm);
	free(vm);
	return r < 0 ? 1 : 0;
}

int local_supervise_main(int argc, char **argv)
{
	struct spawn_args a;
	pid_t pid;

	if (argc > 1 && !strcmp(argv[1], "template"))
		return template_publish_main(argc, argv);
	if (spawn_parse(argc, argv, &a) < 0) {
		(void)fputs("asb: __supervise is started by asb itself\n", stderr);
		return 2;
	}
	pid = fork(); /* nobody's child: whoever started us need not wait for us */
	if (pid != 0)
		return pid < 0 ? 1 : 0;
	log_open("supervisor", STDERR_FILENO, LOG_LEVEL_INFO);
	(void)umask(077);
	if (chdir(a.folder) < 0) {
		log_error("%s: %s", a.folder, strerror(errno));
		return 1;
	}
	return supervise(&a);
}
