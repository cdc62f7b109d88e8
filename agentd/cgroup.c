/* SPDX-License-Identifier: Apache-2.0 */
#include "cgroup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "lib/buf.h"
#include "lib/fd.h"
#include "lib/log.h"
#include "lib/str.h"

/*
 * Groups are named x<pid of agentd>-<counter>. One that still holds processes when its exec is
 * forgotten (a background server) cannot be removed; nobody keeps a list of those: a sweep tries
 * rmdir(2) on every group, which fails for those in use, and comes back as long as more are there
 * than execs hold. The workload may have made groups of its own below: without a process in any of them all go.
 */

#define CGROUP2_MAGIC 0x63677270 /* linux/magic.h; a tmpfs at the usual place means version 1 */
#define SWEEP_NS      (1000 * 1000000LL)
#define SWEEP_MAX     4096 /* groups of the workload's that one sweep removes */
#define SWEEP_DEPTH   32
#define PROCS_MAX     (1UL << 20)

static int work = -1;
static bool limited;
static unsigned controllers; /* CGROUP_*, of the groups below */
static uint64_t pids_each;   /* 0: no limit */
static unsigned counter, in_use;
static struct loop *loop;
static struct loop_timer sweep_timer;

static void sweep(struct loop_timer *t);

/* --- set-up --- */
static int enter(int parent, const char *name)
{
	if (mkdirat(parent, name, 0755) < 0 && errno != EEXIST)
		return -errno;
	return openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* One by one, so that a missing controller does not take the others along. */
static void enable_controllers(int dir)
{
	static const char *const want[] = { "+cpu", "+memory", "+pids" };

	for (size_t i = 0; i < ARRAY_LEN(want); i++)
		ignore_result(fd_write_str(dir, "cgroup.subtree_control", want[i]));
}

static bool reads(int dir, const char *file, const char *text)
{
	AUTO_BUF b = { .cap = 4096 };

	return fd_read_file(dir, file, &b) == 0 && b.p && !strcmp(b.p, text);
}

static uint64_t read_number(int dir, const char *path, uint64_t fallback)
{
	AUTO_BUF b = { .cap = 64 };
	uint64_t v;

	if (fd_read_file(dir, path, &b) < 0 || !b.p)
		return fallback;
	b.p[strcspn(b.p, "\n")] = '\0';
	return str_to_u64(b.p, 1, UINT64_MAX, &v) < 0 ? fallback : v;
}

/* Only where nobody has set one. The shares are asb-init's. */
static void set_limit(const char *file, uint64_t v)
{
	char s[24];

	if (!reads(work, file, "max\n"))
		return;
	(void)snprintf(s, sizeof(s), "%llu", (unsigned long long)v);
	ignore_result(
		fd_write_str(work, file,
			     s)); /* agentd runs without limits as well; cgroup_limited tells */
}

static void set_limits(void)
{
	uint64_t pids = read_number(AT_FDCWD, "/proc/sys/kernel/pid_max", 32768);
	uint64_t threads = read_number(AT_FDCWD, "/proc/sys/kernel/threads-max", 32768);
	uint64_t mem = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
	uint64_t reserve = mem / 16;

	if (threads < pids)
		pids = threads;
	if (reserve < (24UL << 20))
		reserve = 24UL << 20;
	if (reserve > (256UL << 20))
		reserve = 256UL << 20;
	set_limit("pids.max", pids / 10 * 9 + 1);
	pids_each = read_number(work, "pids.max", 0) / 2;
	set_limit("memory.max", mem > 2 * reserve ? mem - reserve : mem / 2);
	limited = faccessat(work, "pids.max", F_OK, 0) == 0 && !reads(work, "pids.max", "max\n") &&
		  faccessat(work, "memory.max", F_OK, 0) == 0 &&
		  !reads(work, "memory.max", "max\n");
}

static void find_controllers(void)
{
	AUTO_BUF b = { .cap = 4096 };

	static const char *const names[] = { "memory", "cpu",
					     "pids" }; /* as enum cgroup_controller */

	controllers = 0;
	if (fd_read_file(work, "cgroup.subtree_control", &b) < 0)
		return;
	for (char *w = b.p; w && *w; w += strspn(w, " \n")) {
		size_t n = strcspn(w, " \n");

		for (unsigned i = 0; i < ARRAY_LEN(names); i++)
			if (strlen(names[i]) == n && !memcmp(names[i], w, n))
				controllers |= 1U << i;
		w += n;
	}
}

void cgroup_start(struct loop *l, const char *root)
{
	AUTO_FD top = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	AUTO_FD asb = -1;
	struct statfs fs;

	loop = l;
	sweep_timer.fn = sweep;
	if (top < 0 || fstatfs(top, &fs) < 0 || fs.f_type != CGROUP2_MAGIC)
		return;
	enable_controllers(top);
	asb = enter(top, "asb");
	if (asb < 0)
		return;
	enable_controllers(asb);
	work = enter(asb, "work");
	if (work < 0) {
		work = -1;
		return;
	}
	enable_controllers(work);
	find_controllers();
	set_limits();
	loop_arm(loop, &sweep_timer, SWEEP_NS); /* what an agentd before this one left */
}

void cgroup_stop(void)
{
	loop_disarm(&sweep_timer);
	fd_close(&work);
}

bool cgroup_have(void)
{
	return work >= 0;
}

int cgroup_work(void)
{
	return work;
}

bool cgroup_limited(void)
{
	return work >= 0 && limited;
}

bool cgroup_can(enum cgroup_controller c)
{
	return work >= 0 && (controllers & c) != 0;
}

bool cgroup_frozen(void)
{
	return work >= 0 && reads(work, "cgroup.freeze", "1\n");
}

/* --- groups --- */
int cgroup_new(int *ret_fd)
{
	char name[48];

	if (work < 0)
		return -ENODEV;
	do
		(void)snprintf(name, sizeof(name), "x%ld-%u", (long)getpid(), ++counter);
	while (mkdirat(work, name, 0755) < 0 && errno == EEXIST);
	*ret_fd = openat(work, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (*ret_fd < 0)
		return -errno;
	in_use++;
	if (pids_each && cgroup_can(CGROUP_PIDS))
		ignore_result(cgroup_set(*ret_fd, "pids.max", pids_each)); /* that of all holds */
	return 0;
}

int cgroup_set(int fd, const char *file, uint64_t v)
{
	char s[24];

	(void)snprintf(s, sizeof(s), "%llu", (unsigned long long)v);
	return fd_write_str(fd, file, s);
}

void cgroup_release(int *fd)
{
	if (*fd < 0)
		return;
	fd_close(fd);
	in_use--;
	if (!sweep_timer.loop)
		loop_arm(loop, &sweep_timer, 0);
}

/* A directory has a link for each one in it. */
static bool has_groups(int parent, const char *name)
{
	struct stat st;

	return fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_nlink > 2;
}

/*
 * A group in which nobody is left, and first those that the workload has made in it (a nested container engine), of which rmdir(2)
 * says EBUSY too. BUDGET bounds how many are looked at. False: it is still there.
 */
static bool remove_group(int parent, const char *name, int depth, unsigned *budget)
{
	struct dirent *ent;
	int fd;
	DIR *d;

	if (unlinkat(parent, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
		return true;
	if (errno != EBUSY || depth == 0 || *budget == 0 || !has_groups(parent, name))
		return false;
	fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	d = fd < 0 || !cgroup_empty(fd) ? NULL : fdopendir(fd);
	if (!d) {
		fd_close(&fd);
		return false;
	}
	while (*budget && (ent = readdir(d)))
		if (ent->d_type == DT_DIR && strcmp(ent->d_name, ".") != 0 &&
		    strcmp(ent->d_name, "..") != 0) {
			(*budget)--;
			(void)remove_group(dirfd(d), ent->d_name, depth - 1, budget);
		}
	(void)closedir(d);
	return unlinkat(parent, name, AT_REMOVEDIR) == 0;
}

static void sweep(struct loop_timer *t)
{
	int fd = openat(work, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *ent;
	unsigned left = 0, budget = SWEEP_MAX;

	if (!d) {
		fd_close(&fd);
		return;
	}
	while ((ent = readdir(d)))
		if (ent->d_name[0] == 'x' && !remove_group(work, ent->d_name, SWEEP_DEPTH, &budget))
			left++;
	(void)closedir(d);
	if (left > in_use)
		loop_arm(loop, t, SWEEP_NS);
}

static void signal_listed(int dir, int sig)
{
	AUTO_BUF b = { .cap = PROCS_MAX };
	char *s, *end;

	if (fd_read_file(dir, "cgroup.procs", &b) < 0)
		return;
	for (s = b.p; s && *s; s = end + (*end == '\n')) {
		long pid = strtol(s, &end, 10);

		if (end == s)
			return;
		if (pid > 1 && pid != getpid())
			(void)kill((pid_t)pid, sig); /* listed a moment ago in a group that only its
							members leave */
	}
}

/* The workload may have made groups of its own in it (a nested container engine). */
static int signal_below(int dir, int sig, int depth)
{
	int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *ent;

	if (!d) {
		int r = -errno;

		fd_close(&fd);
		return r;
	}
	signal_listed(fd, sig);
	while (depth < 8 && (ent = readdir(d))) {
		AUTO_FD sub = -1;

		if (ent->d_type != DT_DIR || ent->d_name[0] == '.')
			continue;
		sub = openat(fd, ent->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (sub >= 0)
			ignore_result(signal_below(sub, sig, depth + 1));
	}
	(void)closedir(d);
	return 0;
}

int cgroup_signal(int fd, int sig)
{
	if (sig == SIGKILL && fd_write_str(fd, "cgroup.kill", "1") == 0) /* Linux 5.14 */
		return 0;
	return signal_below(fd, sig, 0);
}

bool cgroup_empty(int fd)
{
	AUTO_BUF b = { .cap = 4096 };

	return fd_read_file(fd, "cgroup.events", &b) < 0 || !b.p || !strstr(b.p, "populated 1");
}

uint64_t cgroup_oom_kills(int fd)
{
	AUTO_BUF b = { .cap = 4096 };
	const char *s;

	if (fd_read_file(fd, "memory.events", &b) < 0 || !b.p)
		return 0;
	s = strstr(b.p, "oom_kill ");
	return s ? strtoull(s + 9, NULL, 10) : 0;
}
