/* SPDX-License-Identifier: Apache-2.0 */
#include "tree.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "cgroup.h"
#include "lib/fd.h"
#include "lib/proc.h"

/*
 * With cgroup2 a tree is a group, and cgroup.kill is atomic.
 *
 * Without, the members must be found in /proc. A session is left by setsid(2), and a parent by
 * dying: an orphan's new parent is agentd, the subreaper, so nothing there tells whose child it
 * was. What every descendant does inherit, through fork(2) and execve(2), is the timer slack
 * (prctl(2), PR_SET_TIMERSLACK). Each exec gets its own, 50,001 ns and more where the default is
 * 50,000 ns: a difference that no program notices, and that /proc/PID/timerslack_ns shows. A
 * process that sets its own slack (few do) or runs under a real-time policy is still found by its
 * parent, and by its session as long as the leader's number is certain to be the leader's.
 *
 * Marks come round again after 65,000 execs, so members must also not be older than the exec.
 * Everything is sent to a pidfd whose process has been looked at once more, never to a bare number.
 *
 * An orphan is our child, and every other member has a parent that is one: so the mark is read for
 * our children only. Where numbers have wrapped round and a parent comes behind its child, the next
 * round finds the child, by then an orphan.
 *
 * A fork bomb can make children faster than one pass finds them. So when a first killing pass was
 * not enough, the next ones stop (SIGSTOP) what they find until two agree, and only then kill.
 */

#define SLACK_BASE  50000U
#define SLACK_RANGE 65000U
#define MEMBERS_MAX 8192
#define STOP_PASSES 8
#define ROUND_NS    (10 * 1000000LL)
#define ROUNDS_MAX  500

struct member {
	pid_t pid, ppid, sid;
	char state;
	uint64_t start;
};

static unsigned next_tag;

static uint64_t boot_ticks(void)
{
	struct timespec t;
	long hz = sysconf(_SC_CLK_TCK);

	if (clock_gettime(CLOCK_BOOTTIME, &t) < 0 || hz <= 0)
		return 0;
	return (uint64_t)t.tv_sec * (uint64_t)hz + (uint64_t)t.tv_nsec * (uint64_t)hz / 1000000000;
}

void tree_prepare(struct tree *t, struct loop *l)
{
	uint64_t now = boot_ticks();

	*t = (struct tree){ .loop = l, .cgroup_fd = -1, .born = now > 2 ? now - 2 : 0 };
	if (cgroup_new(&t->cgroup_fd) == 0)
		return;
	t->cgroup_fd = -1;
	t->tag = SLACK_BASE + 1 + next_tag++ % SLACK_RANGE;
}

int tree_child(const struct tree *t)
{
	if (t->tag)
		(void)prctl(PR_SET_TIMERSLACK, (unsigned long)t->tag, 0, 0, 0);
	return 0;
}

void tree_started(struct tree *t, pid_t leader)
{
	t->leader = leader;
}

/* --- /proc --- */
static int read_small(int proc, pid_t pid, const char *name, char *out, size_t size)
{
	char path[64];
	AUTO_FD fd = -1;
	ssize_t n;

	(void)snprintf(path, sizeof(path), "%ld/%s", (long)pid, name);
	fd = openat(proc, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	n = read(fd, out, size - 1);
	if (n < 0)
		return -errno;
	out[n] = '\0';
	return 0;
}

/* proc(5), /proc/pid/stat: field N, 3 (the state) or a later one, of those that follow the name. NULL
 * when there are fewer. AFTER_NAME begins with the space before field 3. */
static const char *stat_field(const char *after_name, int n)
{
	const char *p = strchr(after_name, ' ');

	while (p && n-- > 3)
		p = strchr(p + 1, ' ');
	return p ? p + 1 : NULL;
}

/* 0 or -EPROTO. -1 is a number here: a process that is going has that for its session. */
static int stat_number(const char *after_name, int n, long long max, long long *ret)
{
	const char *p = stat_field(after_name, n);
	char *end;

	if (!p)
		return -EPROTO;
	*ret = strtoll(p, &end, 10); /* out of range: LLONG_MAX */
	return end == p || *end != ' ' || *ret < -1 || *ret > max ? -EPROTO : 0;
}

/* The name, in parentheses, may hold anything: count from the last one. */
static int read_stat(int proc, pid_t pid, struct member *m)
{
	char s[1024];
	const char *p, *state;
	long long ppid, sid, start;

	if (read_small(proc, pid, "stat", s, sizeof(s)) < 0)
		return -ESRCH;
	p = strrchr(s, ')');
	state = p ? stat_field(p + 1, 3) : NULL;
	if (!state || stat_number(p + 1, 4, INT_MAX, &ppid) < 0 ||
	    stat_number(p + 1, 6, INT_MAX, &sid) < 0 ||
	    stat_number(p + 1, 22, LLONG_MAX - 1, &start) < 0)
		return -EPROTO;
	m->state = *state;
	m->pid = pid;
	m->ppid = (pid_t)ppid;
	m->sid = (pid_t)sid;
	m->start = (uint64_t)start;
	return 0;
}

static bool has_tag(int proc, pid_t pid, uint32_t tag)
{
	char s[32];

	return tag && read_small(proc, pid, "timerslack_ns", s, sizeof(s)) == 0 &&
	       strtoul(s, NULL, 10) == tag;
}

static bool known(const struct member *m, size_t n, pid_t pid)
{
	for (size_t i = 0; i < n; i++)
		if (m[i].pid == pid)
			return true;
	return false;
}

/* T NULL: every descendant of ours. M[0, N) are the members found so far. */
static bool is_member(const struct tree *t, int proc, const struct member *c,
		      const struct member *m, size_t n)
{
	if (known(m, n, c->ppid))
		return true;
	if (!t)
		return c->ppid == getpid();
	if (c->start < t->born)
		return false;
	return (!t->leader_gone && c->sid == t->leader) ||
	       (c->ppid == getpid() && has_tag(proc, c->pid, t->tag));
}

/* Fills M with the members that are alive; returns their number. */
static size_t scan(const struct tree *t, struct member *m)
{
	DIR *d = opendir("/proc");
	struct dirent *ent;
	size_t n = 0;

	if (!d)
		return 0;
	while (n < MEMBERS_MAX && (ent = readdir(d))) {
		struct member *c = &m[n];
		long pid =
			isdigit((unsigned char)ent->d_name[0]) ? strtol(ent->d_name, NULL, 10) : 0;

		if (pid <= 1 || pid == getpid() || read_stat(dirfd(d), (pid_t)pid, c) < 0)
			continue;
		if (c->state != 'Z' && c->state != 'X' && is_member(t, dirfd(d), c, m, n))
			n++;
	}
	(void)closedir(d);
	return n;
}

/* Where the kernel has no pidfds, the number must do. */
static void send_to(const struct member *m, int sig)
{
	struct proc_child c = { m->pid, (int)syscall(SYS_pidfd_open, m->pid, 0) };
	AUTO_FD pidfd = c.pidfd;
	AUTO_FD proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct member now;

	if (proc >= 0 && read_stat(proc, m->pid, &now) == 0 && now.start == m->start)
		ignore_result(proc_signal(&c, sig)); /* gone meanwhile is as good */
}

static size_t send_all(const struct tree *t, struct member *m, int sig)
{
	size_t n = scan(t, m);

	for (size_t i = 0; i < n; i++)
		send_to(&m[i], sig);
	return n;
}

/* How many were found. HARD: stop them all first. */
static size_t walk_signal(const struct tree *t, int sig, bool hard)
{
	struct member *m = malloc(MEMBERS_MAX * sizeof(*m));
	size_t n, before = 0;

	if (!m)
		return 1; /* as if something were left: a killer comes back */
	for (int i = 0; hard && i < STOP_PASSES; i++) {
		n = send_all(t, m, SIGSTOP);
		if (n == before)
			break;
		before = n;
	}
	n = send_all(t, m, sig);
	free(m);
	return n;
}

/* --- both --- */
void tree_hangup(const struct tree *t)
{
	DIR *d = opendir("/proc");
	struct dirent *ent;
	struct member m;

	if (!d)
		return;
	while ((ent = readdir(d))) {
		long pid =
			isdigit((unsigned char)ent->d_name[0]) ? strtol(ent->d_name, NULL, 10) : 0;

		if (pid <= 1 || pid == t->leader || read_stat(dirfd(d), (pid_t)pid, &m) < 0 ||
		    m.sid != t->leader)
			continue;
		send_to(&m, SIGHUP);
		send_to(&m, SIGCONT);
	}
	(void)closedir(d);
}

int tree_signal(struct tree *t, int sig)
{
	if (t->leader == 0)
		return -ESRCH;
	if (t->cgroup_fd >= 0) {
		if (cgroup_empty(t->cgroup_fd))
			return -ESRCH;
		return cgroup_signal(t->cgroup_fd, sig);
	}
	return walk_signal(t, sig, sig == SIGKILL && t->rounds > 0) ? 0 : -ESRCH;
}

void tree_signal_all(int sig)
{
	(void)walk_signal(NULL, sig, sig == SIGKILL);
}

static void kill_round(struct loop_timer *timer)
{
	struct tree *t = timer->arg;

	t->rounds++;
	if (tree_signal(t, SIGKILL) == 0 && t->rounds < ROUNDS_MAX) {
		loop_arm(t->loop, &t->again, ROUND_NS);
		return;
	}
	if (t->gone)
		t->gone(t->arg);
}

void tree_kill(struct tree *t, void (*gone)(void *arg), void *arg)
{
	t->gone = gone;
	t->arg = arg;
	t->rounds = 0;
	t->again.fn = kill_round;
	t->again.arg = t;
	ignore_result(tree_signal(t, SIGKILL));
	loop_arm(t->loop, &t->again, ROUND_NS);
}

bool tree_oom(const struct tree *t)
{
	return t->cgroup_fd >= 0 && cgroup_oom_kills(t->cgroup_fd) > 0;
}

void tree_done(struct tree *t)
{
	loop_disarm(&t->again);
	cgroup_release(&t->cgroup_fd);
}
