/* SPDX-License-Identifier: Apache-2.0 */
#include "vm.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/reboot.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "bootlog.h"
#include "lib/buf.h"
#include "cgroup.h"
#include "cmdline.h"
#include "lib/fd.h"
#include "lib/hostname.h"
#include "lib/log.h"
#include "modules.h"
#include "mounts.h"
#include "net.h"
#include "power.h"
#include "lib/proto.h"
#include "reap.h"
#include "root.h"
#include "lib/str.h"
#include "sup.h"

/*
 * The boot is the table `steps`, in order, synchronous: nothing else runs yet, and each wait in it
 * is bounded. Then the services are started, and from there on everything is an event of one loop.
 */

#define RAMFS_MAGIC 0x858458f6
#define TMPFS_MAGIC 0x01021994
#define CMDLINE_MAX 16384
#define CLOCK_OFF_S 1

static struct loop loop;
static struct sup sup;
static struct cmdline words;
static struct loop_timer reap_again = LOOP_TIMER_INIT;

static int read_cmdline(struct cmdline *ret, struct err *e)
{
	AUTO_BUF b;
	int r;

	buf_init(&b, CMDLINE_MAX);
	r = fd_read_file(AT_FDCWD, "/proc/cmdline", &b);
	if (r < 0)
		return err_set(e, ERR_IO, -r, "read /proc/cmdline");
	return cmdline_parse(b.p ? b.p : "", ret, e);
}

bool vm_detect(void)
{
	struct statfs fs;
	struct cmdline c = { 0 };
	struct err e = ERR_INIT;

	if (getpid() != 1)
		return false;
	if (access("/proc/self", F_OK) < 0)
		return true;
	if (statfs("/", &fs) < 0 || (fs.f_type != RAMFS_MAGIC && fs.f_type != TMPFS_MAGIC))
		return false;
	return read_cmdline(&c, &e) < 0 || c.ours; /* one that is wrong is one of ours */
}

/* --- steps --- */

static int step_mounts(struct err *e)
{
	int r = mounts_early(e);

	bootlog_console();
	bootlog_open_port();
	return r < 0 ? r : read_cmdline(&words, e);
}

static int step_modules(struct err *e)
{
	int r;

	if (access(MODULES_LIST, F_OK) < 0)
		return 0;
	r = modules_load(MODULES_LIST, e);
	bootlog_console(); /* a console or the port may have come with a module */
	bootlog_open_port();
	return r;
}

static int step_root(struct err *e)
{
	int r = root_mount(e);

	return r < 0 ? r : root_switch(e);
}

static int step_system(struct err *e)
{
	int r = mounts_late(e);

	/* an image of a single program has none, and names of hosts and servers go there */
	if (r == 0 && mkdir("/etc", 0755) < 0 && errno != EEXIST)
		r = err_set(e, ERR_IO, errno, "mkdir /etc");
	if (r == 0)
		r = root_show_programs(e);
	if (r == 0 && words.hostname[0]) {
		r = hostname_apply(words.hostname, false);
		if (r < 0)
			return err_set(e, ERR_IO, -r, "set the host name");
	}
	return r;
}

/* asb.time is when QEMU was started, so that plus our own time since then is now, less the first
 * milliseconds of QEMU. */
static int step_clock(struct err *e)
{
	struct timespec now, up, want = words.time;

	if (want.tv_sec == 0)
		return 0;
	(void)clock_gettime(CLOCK_BOOTTIME, &up);
	want.tv_sec += up.tv_sec;
	want.tv_nsec += up.tv_nsec;
	if (want.tv_nsec >= 1000000000) {
		want.tv_nsec -= 1000000000;
		want.tv_sec++;
	}
	(void)clock_gettime(CLOCK_REALTIME, &now);
	if (llabs((long long)now.tv_sec - (long long)want.tv_sec) <= CLOCK_OFF_S)
		return 0;
	return clock_settime(CLOCK_REALTIME, &want) < 0 ? err_set(e, ERR_IO, errno, "set the clock")
							: 0;
}

static int step_network(struct err *e)
{
	return net_setup(words.net, e);
}

static const struct {
	const char *name;
	int (*fn)(struct err *e);
} steps[] = {
	{ "mounts", step_mounts },   { "modules", step_modules }, { "root", step_root },
	{ "system", step_system },   { "cgroups", cgroup_setup }, { "clock", step_clock },
	{ "network", step_network },
};

static NORETURN void fail(const struct err *e)
{
	bootlog_open_port();
	bootlog_error(e);
	bootlog_flush(500);
	power_off_now();
}

/* --- running --- */

static void on_ready(void *arg, const char *late)
{
	struct err e = ERR_INIT;

	(void)arg;
	if (!late) {
		bootlog_stage("ready");
		return;
	}
	ignore_result(err_set(&e, ERR_TIMEOUT, ETIMEDOUT, "start %s", late));
	bootlog_error(&e);
}

static void on_ended(void *arg, pid_t pid, int status)
{
	(void)arg;
	(void)sup_exited(&sup, pid, status);
}

static void reap(struct loop_timer *t)
{
	enum reap_result r = reap_children(on_ended, NULL);

	if (r == REAP_MORE)
		loop_arm(&loop, t, 0);
	power_reaped(r);
}

static void on_signal(void *arg, const void *siginfo)
{
	const struct signalfd_siginfo *si = siginfo;

	(void)arg;
	if (si->ssi_signo == SIGCHLD)
		reap(&reap_again);
	else
		power_off(POWER_GRACE_DEFAULT_MS);
}

/* SIGINT is ctrl-alt-del, SIGPWR the machine's; SIGUSR1, SIGUSR2 and SIGTERM are halt, poweroff and
 * reboot of busybox. */
static int take_signals(void)
{
	static const int taken[] = { SIGCHLD, SIGTERM, SIGINT, SIGPWR, SIGUSR1, SIGUSR2 };
	sigset_t set;

	(void)sigemptyset(&set);
	for (size_t i = 0; i < ARRAY_LEN(taken); i++)
		(void)sigaddset(&set, taken[i]);
	(void)signal(SIGPIPE, SIG_IGN);
	(void)reboot(RB_DISABLE_CAD);
	reap_again.fn = reap;
	return loop_signals(&loop, &set, on_signal, NULL);
}

static int start(struct err *e)
{
	static const char *const names[] = { "agentd", "asb-hooks", "asb-portd" };
	static char path_word[] =
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
	static char home_word[] = "HOME=/root", lang_word[] = "LANG=C.UTF-8";
	static char *const env[] = { path_word, home_word, lang_word, NULL };
	int r = loop_init(&loop);

	if (r == 0)
		r = take_signals();
	if (r < 0)
		return err_set(e, ERR_IO, -r, "make the event loop");
	sup = (struct sup){ .env = env, .cgroup_fd = cgroup_system_fd(), .ready = on_ready };
	sup_init(&sup, &loop);
	power_init(&loop, &sup);
	bootlog_attach(&loop);
	r = power_listen(&loop);
	if (r < 0)
		return err_set(e, ERR_IO, -r, "listen at " PROTO_INIT_SOCKET);
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		char path[64];

		ignore_result(str_format(path, sizeof(path), PROTO_BIN_DIR "/%s", names[i]));
		ignore_result(sup_add(&sup, names[i], path)); /* constant names: they fit */
	}
	sup_start(&sup);
	return 0;
}

void vm_main(void)
{
	struct err e = ERR_INIT;

	(void)umask(022);
	log_open("asb-init", STDERR_FILENO, LOG_LEVEL_INFO);
	for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
		if (steps[i].fn(&e) < 0)
			fail(&e);
		bootlog_stage(steps[i].name);
	}
	if (start(&e) < 0)
		fail(&e);
	bootlog_stage("services");
	for (;;) {
		int r = loop_run(&loop);

		if (r < 0) /* cannot happen with a valid epoll descriptor; never end, never spin */
			sleep(1);
	}
}
