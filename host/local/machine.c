/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "host/local/qemu.h"
#include "host/local/saved.h"
#include "host/local/template.h"
#include "host/local/tsc.h"
#include "host/local/vm.h"
#include "lib/fd.h"
#include "lib/log.h"
#include "lib/str.h"

/*
 * QEMU as a child: dies with us, without capabilities or new privileges, in the VM's folder, with
 * one inherited socket for each of QMP, console, channel and boot port. What comes out of any of
 * them is the guest's word at best.
 *
 * When it exits, its last words may still be in the sockets; the loop gets a moment to read them
 * before life.c is told.
 */

#define BOOT_LINE_MAX 4096
#define LAST_WORDS_NS 20000000LL
#define LOG_LINES_MAX 500 /* of QEMU's stderr in one life */

/* In the child, before exec. As root the files of root can be read without any capability. */
static int confine(void *arg, enum proc_step *step)
{
	const struct rlimit none = { 0, 0 };
	struct __user_cap_header_struct h = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct d[2] = { { 0, 0, 0 }, { 0, 0, 0 } };

	(void)arg;
	(void)step;
	for (int cap = 0; cap < 64; cap++)
		if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0)
			break; /* EPERM: we have none; EINVAL: that was the last */
	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0 && errno != EINVAL)
		return -errno;
	if (syscall(SYS_capset, &h, d) < 0)
		return -errno;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -errno;
	return setrlimit(RLIMIT_CORE, &none) < 0 ? -errno : 0;
}

/* --- what comes out of it --- */
static void seen(struct vm *vm)
{
	if (vm->guest_seen)
		return;
	vm->guest_seen = true;
	life_guest_seen(vm);
}

static void on_console(struct loop_watch *w, uint32_t events)
{
	struct vm *vm = w->arg;
	char p[4096];
	ssize_t n = read(w->fd, p, sizeof(p));

	(void)events;
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		loop_del(w);
		return;
	}
	caplog_lines(&vm->console, p, (size_t)n);
	boot_console(&vm->boot, p, (size_t)n);
	seen(vm);
}

static void stderr_text(struct vm *vm, char *p)
{
	char *rest = p, *line;

	while ((line = strsep(&rest, "\n"))) {
		if (!*line)
			continue;
		if (str_format(vm->stderr_line, sizeof(vm->stderr_line), "%.250s", line) < 0)
			vm->stderr_line[0] = '\0';
		if (vm->stderr_lines++ < LOG_LINES_MAX)
			log_warn("%s", line);
	}
}

static void on_stderr(struct loop_watch *w, uint32_t events)
{
	struct vm *vm = w->arg;
	char p[1025];
	ssize_t n = read(w->fd, p, sizeof(p) - 1);

	(void)events;
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		loop_del(w);
		return;
	}
	p[n] = '\0';
	stderr_text(vm, p);
}

static void on_boot_line(struct line_peer *p, char *s, size_t n)
{
	struct vm *vm = p->arg;
	char before[sizeof(vm->boot.stage)];

	memcpy(before, vm->boot.stage, sizeof(before));
	if (boot_line(&vm->boot, s, n) < 0)
		return;
	seen(vm);
	life_boot_changed(vm, strcmp(before, vm->boot.stage) != 0 ? vm->boot.stage : "");
}

static void on_boot_closed(struct line_peer *p, int error)
{
	(void)p;
	if (error == -EMSGSIZE)
		log_warn("the guest's boot port sent a line of more than %d bytes", BOOT_LINE_MAX);
}

static const struct line_ops boot_ops = { .line = on_boot_line, .closed = on_boot_closed };

static void on_up(void *arg)
{
	life_channel_up(arg);
}

static void on_down(void *arg, const char *why)
{
	struct vm *vm = arg;

	if (vm->phase < VM_STOPPING)
		log_info("the channel is down: %s", why);
	life_channel_down(vm);
}

static const struct chan_ops chan_ops = { .up = on_up, .down = on_down };

static void on_qmp_ready(void *arg)
{
	life_qemu_ready(arg);
}

static void on_last_words(struct loop_timer *t)
{
	life_qemu_exited(t->arg);
}

static void on_exit(struct loop_watch *w, uint32_t events)
{
	struct vm *vm = w->arg;

	(void)events;
	loop_del(w);
	while (waitpid(vm->qemu_child.pid, &vm->qemu_status, 0) < 0 && errno == EINTR)
		;
	fd_close(&vm->qemu_child.pidfd);
	vm->qemu_runs = false;
	vm->last_words.fn = on_last_words;
	vm->last_words.arg = vm;
	loop_arm(&vm->loop, &vm->last_words, vm->phase == VM_ENDING ? 0 : LAST_WORDS_NS);
}

void machine_how_ended(const struct vm *vm, char *out, size_t size)
{
	int st = vm->qemu_status;
	const char *said = vm->stderr_line[0] ? ": " : "";

	if (WIFSIGNALED(st))
		(void)snprintf(out, size, "QEMU was killed by signal %d%s%s", WTERMSIG(st), said,
			       vm->stderr_line);
	else if (WEXITSTATUS(st) != 0)
		(void)snprintf(out, size, "QEMU exited with status %d%s%s", WEXITSTATUS(st), said,
			       vm->stderr_line);
	else
		(void)snprintf(out, size, "the machine powered off");
}

/* --- starting --- */
struct pairs {
	int ours[QEMU_PORT_COUNT], theirs[QEMU_PORT_COUNT];
	int err[2];
};

static void close_pairs(struct pairs *p)
{
	for (int i = 0; i < QEMU_PORT_COUNT; i++) {
		fd_close(&p->ours[i]);
		fd_close(&p->theirs[i]);
	}
	fd_close(&p->err[0]);
	fd_close(&p->err[1]);
}

static int make_pairs(struct pairs *p)
{
	int r = 0;

	for (int i = 0; i < QEMU_PORT_COUNT; i++)
		p->ours[i] = p->theirs[i] = -1;
	p->err[0] = p->err[1] = -1;
	for (int i = 0; i < QEMU_PORT_COUNT && r == 0; i++) {
		int sv[2];

		if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sv) < 0)
			return -errno;
		p->ours[i] = sv[0];
		p->theirs[i] = sv[1];
		r = fd_set_nonblock(sv[0], true);
	}
	if (r == 0 && pipe2(p->err, O_CLOEXEC) < 0)
		r = -errno;
	return r < 0 ? r : fd_set_nonblock(p->err[0], true);
}

static int spawn(struct vm *vm, const struct pairs *p, int state_fd, struct err *e)
{
	char hostname[64];
	struct timespec now;
	struct qemu_args args;
	struct proc_spec s = PROC_SPEC_INIT;
	struct qemu_config c = {
		.binary = vm->qemu,
		.kernel = vm->share.kernel,
		.initrd = vm->share.initrd,
		.rootfs = vm->share.rootfs,
		.disk = "disk.qcow2",
		.hostname = hostname,
		.memory_mib = vm->config.memory_mib,
		.cpus = vm->config.cpus,
		.kvm = vm->accel != ACCEL_TCG,
		.net_user = vm->config.net == NET_USER,
		.balloon = vm->balloon,
		.incoming = vm->origin != VM_BOOTED,
		.state_fd = vm->origin == VM_CLONED ? state_fd : -1,
		.ram = vm->based ? TEMPLATE_RAM : NULL,
	};
	int keep[QEMU_PORT_COUNT + 1];
	int r;

	qemu_hostname(vm->config.name, hostname);
	if (!vm->balloon)
		ignore_result(
			str_format(hostname, sizeof(hostname), QEMU_TEMPLATE_HOSTNAME)); /* fits */
	c.tsc_khz = c.kvm || c.incoming ? 0 : tsc_khz();
	(void)clock_gettime(CLOCK_REALTIME, &now);
	c.time_s = now.tv_sec;
	c.time_ns = now.tv_nsec;
	memcpy(c.fd, p->theirs, sizeof(c.fd));
	memcpy(keep, p->theirs, sizeof(c.fd));
	keep[QEMU_PORT_COUNT] = state_fd;
	r = qemu_args(&c, &args);
	if (r == 0) {
		s.argv = args.argv;
		s.fd[1] = s.fd[2] = p->err[1];
		s.keep = keep;
		s.keep_len = QEMU_PORT_COUNT + (state_fd >= 0);
		s.flags = PROC_DEATHSIG | PROC_NOPATH;
		s.child_fn = confine;
		r = proc_spawn(&s, &vm->qemu_child, NULL, e);
	} else {
		r = err_set(e, ERR_INTERNAL, -r, "QEMU's command line");
	}
	qemu_args_done(&args);
	if (r == 0 &&
	    vm->qemu_child.pidfd < 0) { /* Linux before 5.3: nothing would tell us of its end */
		(void)kill(vm->qemu_child.pid, SIGKILL);
		r = err_set(e, ERR_UNSUPPORTED, ENOSYS,
			    "local sandboxes need pidfd_open, which Linux has since 5.3");
	}
	return r;
}

/* Takes our ends out of P. */
static int attach(struct vm *vm, struct pairs *p)
{
	int r;

	vm->console_fd = fd_take(&p->ours[QEMU_PORT_CONSOLE]);
	vm->channel_fd = fd_take(&p->ours[QEMU_PORT_CHANNEL]);
	vm->stderr_fd = fd_take(&p->err[0]);
	vm->console_watch.fn = on_console;
	vm->stderr_watch.fn = on_stderr;
	vm->exit_watch.fn = on_exit;
	vm->console_watch.arg = vm->stderr_watch.arg = vm->exit_watch.arg = vm;
	vm->qmp.arg = vm;
	vm->qmp.ready = on_qmp_ready;
	r = loop_add(&vm->loop, &vm->exit_watch, vm->qemu_child.pidfd, EPOLLIN);
	if (r == 0)
		r = loop_add(&vm->loop, &vm->console_watch, vm->console_fd, EPOLLIN);
	if (r == 0)
		r = loop_add(&vm->loop, &vm->stderr_watch, vm->stderr_fd, EPOLLIN);
	if (r == 0)
		r = qmp_open(&vm->qmp, &vm->loop, fd_take(&p->ours[QEMU_PORT_QMP]));
	if (r == 0)
		r = line_open(&vm->loop, &vm->boot_port, fd_take(&p->ours[QEMU_PORT_BOOT]),
			      BOOT_LINE_MAX, &boot_ops, vm);
	if (r == 0)
		r = chan_start(&vm->loop, CHAN_HOST, vm->channel_fd, &chan_ops, vm, &vm->chan);
	return r;
}

void machine_new_channel(struct vm *vm)
{
	int r;

	link_cut(vm);
	chan_free(vm->chan);
	r = chan_start(&vm->loop, CHAN_HOST, vm->channel_fd, &chan_ops, vm, &vm->chan);
	if (r < 0) {
		log_error("the channel: %s", strerror(-r));
		vm->chan = NULL;
	}
}

int machine_start(struct vm *vm, struct err *e)
{
	struct pairs p;
	AUTO_FD state_fd = -1;
	int r = make_pairs(&p);

	vm->boot = (struct boot){ .ready = false };
	vm->guest_seen = false;
	vm->stderr_line[0] = '\0';
	if (r == 0 && vm->origin != VM_BOOTED) {
		state_fd = vm->state_fd =
			openat(vm->dirfd,
			       vm->origin == VM_CLONED ? TEMPLATE_DEVICES : SAVED "/devices",
			       O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
		r = state_fd < 0 ? -errno : 0;
	}
	if (r < 0)
		(void)err_set(e, ERR_IO, -r, "cannot start QEMU");
	else
		r = spawn(vm, &p, state_fd, e);
	if (r == 0) {
		vm->qemu_runs = true;
		r = attach(vm, &p);
		if (r < 0)
			(void)err_set(e, ERR_IO, -r, "cannot watch QEMU");
	}
	close_pairs(&p);
	return r;
}

void machine_kill(struct vm *vm)
{
	if (vm->qemu_runs)
		ignore_result(
			proc_signal(&vm->qemu_child, SIGKILL)); /* -ESRCH: it is being reaped */
}

void machine_close(struct vm *vm)
{
	link_cut(vm);
	chan_free(vm->chan);
	vm->chan = NULL;
	qmp_close(&vm->qmp);
	line_close(&vm->boot_port);
	loop_del(&vm->console_watch);
	loop_del(&vm->stderr_watch);
	loop_del(&vm->exit_watch);
	loop_disarm(&vm->last_words);
	fd_close(&vm->console_fd);
	fd_close(&vm->stderr_fd);
	fd_close(&vm->channel_fd);
	fd_close(&vm->qemu_child.pidfd);
}
