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
#include <sys/sysinfo.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "lib/buf.h"
#include "lib/fd.h"
#include "lib/log.h"
#include "lib/str.h"

#define CGROUP2_MAGIC 0x63677270 /* linux/magic.h; a tmpfs here means cgroup v1 */
#define DEPTH_MAX     8
#define MIB	      (1ULL << 20)

static int top = -1, sys_dir = -1, work_dir = -1;

/*
 * What the kernel took at boot is gone before anybody is charged, so the workload's share is of
 * what is free now; were it more, a fork bomb would run into the end of the machine's memory, where
 * the kernel kills one process at a time, and not into the group's, where it can kill a whole
 * command. A process costs up to 200 KiB: four thousand for each GiB are room enough.
 */
struct cgroup_limits cgroup_limits_for(uint64_t mem_free, uint64_t pid_max, uint64_t threads_max)
{
	uint64_t pids = pid_max < threads_max ? pid_max : threads_max,
		 by_memory = mem_free / (256 << 10);
	uint64_t reserve =
		mem_free / 16; /* for the agent, and for kernel memory that nobody is charged for */

	if (by_memory < 512)
		by_memory = 512;
	if (reserve < 24 * MIB)
		reserve = 24 * MIB;
	if (reserve > 256 * MIB)
		reserve = 256 * MIB;
	pids = pids / 10 * 9 + pids % 10;
	return (struct cgroup_limits){
		.work_bytes = mem_free > 2 * reserve ? mem_free - reserve : mem_free / 2,
		.work_pids = pids < by_memory ? pids : by_memory,
		.system_low = reserve,
	};
}

static uint64_t read_number(const char *path, uint64_t fallback)
{
	AUTO_BUF b;
	uint64_t v;

	buf_init(&b, 64);
	if (fd_read_file(AT_FDCWD, path, &b) < 0 || !b.p)
		return fallback;
	b.p[strcspn(b.p, "\n")] = '\0';
	return str_to_u64(b.p, 1, UINT64_MAX, &v) < 0 ? fallback : v;
}

static uint64_t mem_free(void)
{
	struct sysinfo i;

	return sysinfo(&i) < 0 ? 0 : ((uint64_t)i.freeram + i.bufferram) * i.mem_unit;
}

static void enable_controllers(int dir)
{
	static const char *const want[] = { "+cpu", "+memory", "+pids", "+io", "+cpuset" };

	for (size_t i = 0; i < ARRAY_LEN(want);
	     i++) /* one by one: a missing one must not take the others along */
		ignore_result(fd_write_str(dir, "cgroup.subtree_control", want[i]));
}

static void set_number(int dir, const char *file, uint64_t v)
{
	char s[32];
	int r;

	(void)snprintf(s, sizeof(s), "%llu", (unsigned long long)v);
	r = fd_write_str(dir, file, s);
	if (r < 0 && r != -ENOENT)
		log_warn("%s: %s", file, strerror(-r));
}

static int make(int parent, const char *name, int *ret, struct err *e)
{
	if (mkdirat(parent, name, 0755) < 0 && errno != EEXIST)
		return err_set(e, ERR_IO, errno, "make cgroup %s", name);
	*ret = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return *ret < 0 ? err_set(e, ERR_IO, errno, "open cgroup %s", name) : 0;
}

int cgroup_setup(struct err *e)
{
	AUTO_FD root = open(CGROUP_ROOT, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct cgroup_limits lim;
	struct statfs fs;
	int r;

	if (root < 0 || fstatfs(root, &fs) < 0 || fs.f_type != CGROUP2_MAGIC)
		return err_set(e, ERR_UNSUPPORTED, ENODEV, "no cgroup2 at " CGROUP_ROOT);
	enable_controllers(root);
	r = make(root, "asb", &top, e);
	if (r < 0)
		return r;
	enable_controllers(top);
	r = make(top, "system", &sys_dir, e);
	if (r == 0)
		r = make(top, "work", &work_dir, e);
	if (r < 0)
		return r;
	enable_controllers(work_dir);
	lim = cgroup_limits_for(mem_free(), read_number("/proc/sys/kernel/pid_max", 32768),
				read_number("/proc/sys/kernel/threads-max", 32768));
	set_number(top, "memory.low", lim.system_low);
	set_number(sys_dir, "memory.low", lim.system_low);
	set_number(sys_dir, "cpu.weight", 1000);
	set_number(work_dir, "memory.max", lim.work_bytes);
	set_number(work_dir, "pids.max", lim.work_pids);
	return 0;
}

int cgroup_system_fd(void)
{
	return sys_dir;
}

bool cgroup_work_populated(void)
{
	AUTO_BUF b;

	buf_init(&b, 1024);
	return work_dir >= 0 && fd_read_file(work_dir, "cgroup.events", &b) == 0 && b.p &&
	       strstr(b.p, "populated 1");
}

static void signal_procs(int dir, int sig)
{
	AUTO_BUF b;
	char *s, *end;

	buf_init(&b, 1UL << 20);
	if (fd_read_file(dir, "cgroup.procs", &b) < 0)
		return;
	for (s = b.p; s && *s; s = end + (*end == '\n')) {
		long pid = strtol(s, &end, 10);

		if (end == s)
			return;
		if (pid > 1)
			(void)kill((pid_t)pid, sig);
	}
}

/* DIR is consumed. */
static void signal_below(int dir, int sig, int depth)
{
	DIR *d = fdopendir(dir);
	struct dirent *ent;

	if (!d) {
		fd_close(&dir);
		return;
	}
	signal_procs(dirfd(d), sig);
	while (depth < DEPTH_MAX && (ent = readdir(d))) {
		int sub;

		if (ent->d_type != DT_DIR || ent->d_name[0] == '.')
			continue;
		sub = openat(dirfd(d), ent->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (sub >= 0)
			signal_below(sub, sig, depth + 1);
	}
	(void)closedir(d);
}

int cgroup_work_signal(int sig)
{
	int dir;

	if (work_dir < 0)
		return -ENODEV;
	if (sig == SIGKILL && fd_write_str(work_dir, "cgroup.kill", "1") == 0)
		return 0;
	dir = openat(work_dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return -errno;
	signal_below(dir, sig, 0);
	return 0;
}
