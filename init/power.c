/* SPDX-License-Identifier: Apache-2.0 */
#include "power.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/reboot.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bootlog.h"
#include "cgroup.h"
#include "lib/fd.h"
#include "lib/line.h"
#include "lib/log.h"
#include "lib/proto.h"
#include "root.h"
#include "lib/sock.h"
#include "lib/str.h"

/*
 * Three phases, each with an end of its own and a deadline: the workload (TERM, then KILL, until
 * asb/work is empty), the services (TERM; agentd uses the time to finish its streams), the rest
 * (KILL to all). Then nothing runs that could write, and the file systems can be made read-only.
 *
 * The end is a reset, not ACPI's power-off: QEMU runs with -no-reboot, so both end it, but the
 * first works on every machine type and architecture, where a kernel without a power-off driver
 * would halt for ever.
 */

#define TICK_NS	    (10 * 1000000LL)
#define SERVICES_NS (1000 * 1000000LL)
#define REST_MS	    1000
#define PEERS	    4
#define REQUEST_MAX 64

enum phase { PHASE_RUN, PHASE_WORK, PHASE_SERVICES };

static struct loop *loop;
static struct sup *sup;
static enum phase phase;
static int64_t phase_end_ns;
static struct loop_timer tick;

static struct loop_watch listener = LOOP_WATCH_INIT;
static struct line_peer peers[PEERS];

/* No process but this one may be left, else the file systems stay busy. Bounded: one that sleeps in
 * the kernel cannot be killed. */
static void kill_rest(void)
{
	(void)kill(-1, SIGKILL);
	for (int ms = 0; ms < REST_MS; ms++) {
		pid_t pid;

		do
			pid = waitpid(-1, NULL, WNOHANG);
		while (pid > 0 || (pid < 0 && errno == EINTR));
		if (pid < 0)
			return;
		(void)poll(NULL, 0, 1);
	}
}

void power_off_now(void)
{
	kill_rest();
	root_seal();
	bootlog_stage("power-off");
	bootlog_flush(200);
	(void)reboot(RB_AUTOBOOT);
	for (;;) /* not allowed to: nothing else is left to do, and PID 1 must not end */
		(void)pause();
}

static void begin_services(void)
{
	if (cgroup_work_populated())
		ignore_result(
			cgroup_work_signal(SIGKILL)); /* kill_rest comes after it in any case */
	phase = PHASE_SERVICES;
	phase_end_ns = loop_now() + SERVICES_NS;
	sup_stop(sup);
}

static void on_tick(struct loop_timer *t)
{
	bool over = loop_now() >= phase_end_ns;

	if (phase == PHASE_WORK && (over || !cgroup_work_populated()))
		begin_services();
	else if (phase == PHASE_SERVICES && (over || !sup_running(sup)))
		power_off_now();
	loop_arm(loop, t, TICK_NS);
}

void power_init(struct loop *l, struct sup *s)
{
	loop = l;
	sup = s;
	tick.fn = on_tick;
	for (int i = 0; i < PEERS; i++)
		peers[i] = (struct line_peer)LINE_PEER_INIT;
}

void power_off(int grace_ms)
{
	int64_t end = loop_now() + (int64_t)grace_ms * 1000000;

	if (phase == PHASE_WORK && end < phase_end_ns)
		phase_end_ns = end;
	if (phase != PHASE_RUN)
		return;
	bootlog_stage("stopping");
	phase = PHASE_WORK;
	phase_end_ns = end;
	if (cgroup_work_signal(SIGTERM) <
	    0) { /* no cgroups: everybody is told, and the grace is the services' */
		phase = PHASE_SERVICES;
		sup_stop(sup);
		(void)kill(-1, SIGTERM);
	}
	loop_arm(loop, &tick, 0);
}

void power_reaped(enum reap_result r)
{
	if (phase == PHASE_SERVICES && r == REAP_NONE)
		power_off_now();
}

int power_parse(const char *line, int *ret_grace_ms)
{
	static const char word[] = "power-off";
	uint64_t ms = POWER_GRACE_DEFAULT_MS;

	if (!str_starts(line, word))
		return -EINVAL;
	line += sizeof(word) - 1;
	if (*line && (*line != ' ' || str_to_u64(line + 1, 0, POWER_GRACE_MAX_MS, &ms) < 0))
		return -EINVAL;
	*ret_grace_ms = (int)ms;
	return 0;
}

static void on_line(struct line_peer *p, char *s, size_t len)
{
	int grace;
	bool ok = strlen(s) == len && power_parse(s, &grace) == 0;

	if (line_send(p, ok ? "ok" : "error: power-off [<ms>]") < 0)
		line_close(p);
	if (ok)
		power_off(grace);
}

static void on_closed(struct line_peer *p, int error)
{
	(void)p;
	(void)error;
}

static void on_connection(struct loop_watch *w, uint32_t events)
{
	static const struct line_ops ops = { on_line, on_closed };
	int fd;

	(void)events;
	if (sock_accept(w->fd, &fd) < 0)
		return;
	for (int i = 0; i < PEERS; i++) {
		if (peers[i].fd >= 0)
			continue;
		if (line_open(loop, &peers[i], fd, REQUEST_MAX, &ops, NULL) == 0)
			line_deadline(&peers[i], SERVICES_NS);
		return;
	}
	fd_close(&fd);
}

int power_listen(struct loop *l)
{
	AUTO_FD fd = -1;
	int r = sock_listen(PROTO_INIT_SOCKET, 0600, &fd);

	if (r < 0)
		return r;
	listener.fn = on_connection;
	r = loop_add(l, &listener, fd, EPOLLIN);
	if (r == 0)
		(void)fd_take(&fd);
	return r;
}
