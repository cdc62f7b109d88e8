/* SPDX-License-Identifier: Apache-2.0 */
#include "metrics.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "app.h"
#include "cgroup.h"
#include "exec.h"
#include "lib/buf.h"
#include "lib/fd.h"
#include "lib/str.h"

/*
 * CPU percent needs two looks. One sample is kept for all clients: an answer covers the time since the sample before
 * it, the first one the time since boot; one that comes sooner than LIMIT_SAMPLE_NS after another repeats its value,
 * because the kernel counts in ticks of 10 ms.
 */
static struct {
	int64_t at;
	uint64_t busy, work_busy;
	double percent, work_percent;
	uint64_t interval_ms;
} last;

#define TEXT 4096 /* the part of a file of /proc that is looked at; one page is one read */

/* At most TEXT - 1 bytes, in one read. False when there is nothing. */
static bool read_text(int dir, const char *path, char out[TEXT])
{
	AUTO_FD fd = openat(dir, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	ssize_t n = fd < 0 ? -1 : read(fd, out, TEXT - 1);

	out[n > 0 ? n : 0] = '\0';
	return n > 0;
}

/* The number behind NAME at the begin of a line of TEXT; NONE when there is no such line. */
static uint64_t field(const char *text, const char *name)
{
	size_t n = strlen(name);

	for (const char *s = text; s; s = strchr(s, '\n'), s += s != NULL)
		if (!strncmp(s, name, n))
			return strtoull(s + n, NULL, 10);
	return METRICS_NONE;
}

static uint64_t known(uint64_t v)
{
	return v == METRICS_NONE ? 0 : v;
}

static uint64_t less(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

/* --- CPU --- */
void metrics_read_cpu(struct metrics *m, const char *s, uint64_t hz)
{
	/* user nice system idle iowait irq softirq steal: proc(5) */
	uint64_t t[8] = { 0 };

	if (strncmp(s, "cpu ", 4) != 0 || hz == 0)
		return;
	s += 4;
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		char *end;

		t[i] = strtoull(s, &end, 10);
		t[i] = t[i] > UINT64_MAX / 1000000 ? 0 : t[i] * 1000000 / hz;
		s = end;
	}
	m->user = t[0] + t[1];
	m->system = t[2] + t[5] + t[6];
	m->iowait = t[4];
	m->steal = t[7];
	m->busy = m->user + m->system;
}

static double percent(uint64_t us, int64_t ns, uint64_t cpus)
{
	double p = ns > 0 ? (double)us * 1e5 / ((double)ns * (double)(cpus ? cpus : 1)) : 0;

	return p > 100 ? 100 : p;
}

static void sample(struct metrics *m)
{
	int64_t now = loop_now(), ns = now - last.at;

	if (ns >= LIMIT_SAMPLE_NS) {
		uint64_t work = m->have_work ? known(m->work_busy) : 0;

		last.percent = percent(less(m->busy, last.busy), ns, m->cpus);
		last.work_percent = percent(less(work, last.work_busy), ns, m->cpus);
		last.interval_ms = (uint64_t)ns / 1000000;
		last.at = now;
		last.busy = m->busy;
		last.work_busy = work;
	}
	m->cpu_percent = last.percent;
	m->work_percent = last.work_percent;
	m->interval_ms = last.interval_ms;
}

/* --- memory, disk, network --- */
void metrics_read_memory(struct metrics *m, const char *s)
{
	static const char names[][14] = { "MemTotal:", "MemAvailable:", "MemFree:",
					  "Cached:",   "SwapTotal:",	"SwapFree:" };
	uint64_t v[ARRAY_LEN(names)];

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		uint64_t kb = known(field(s, names[i]));

		v[i] = kb > UINT64_MAX / 1024 ? 0 : kb * 1024;
	}
	m->mem_total = v[0];
	m->mem_available = v[1];
	m->mem_used = less(v[0], v[1]);
	m->mem_free = v[2];
	m->mem_cached = v[3];
	m->swap_total = v[4];
	m->swap_used = less(v[4], v[5]);
}

static uint64_t product(uint64_t blocks, uint64_t size)
{
	return size && blocks > (UINT64_MAX - 1) / size ? UINT64_MAX - 1 : blocks * size;
}

void metrics_disk(struct metrics *m, const struct statfs *s)
{
	/* statfs(2): what is free for root beside what is available to others may look negative */
	uint64_t size = (uint64_t)(s->f_frsize ? s->f_frsize : s->f_bsize);
	uint64_t blocks = s->f_blocks, avail = s->f_bavail > s->f_blocks ? 0 : s->f_bavail;

	m->disk_total = product(blocks, size);
	m->disk_used = product(less(blocks, s->f_bfree), size);
	m->disk_available = product(avail, size);
}

static void read_interface(struct metrics *m, const char *name, size_t n, const char *s)
{
	struct metrics_net *i = &m->net[m->nets];
	uint64_t v[16];

	if (n == 0 || n >= sizeof(i->name) || (n == 2 && !memcmp(name, "lo", 2)))
		return;
	for (size_t k = 0; k < ARRAY_LEN(v); k++) {
		char *end;

		v[k] = strtoull(s, &end, 10);
		s = end;
	}
	*i = (struct metrics_net){ .rx_bytes = v[0],
				   .rx_packets = v[1],
				   .rx_errors = v[2],
				   .tx_bytes = v[8],
				   .tx_packets = v[9],
				   .tx_errors = v[10] };
	memcpy(i->name, name, n);
	m->nets++;
}

void metrics_read_net(struct metrics *m, const char *s)
{
	m->nets = 0;
	while (s && *s && m->nets < LIMIT_INTERFACES) {
		size_t n = strcspn(s, "\n"), skip = strspn(s, " ");
		const char *colon = memchr(s, ':', n);

		if (colon && (size_t)(colon - s) >= skip)
			read_interface(m, s + skip, (size_t)(colon - s) - skip, colon + 1);
		s += n + (s[n] == '\n');
	}
}

/* --- the guest --- */
/* "0.20 0.18 0.12 1/80 11206": load over 1, 5 and 15 minutes, runnable/all tasks, newest pid. */
static void read_load(struct metrics *m, char *s)
{
	for (size_t i = 0; i < ARRAY_LEN(m->load); i++)
		m->load[i] = strtod(s, &s);
	m->tasks_running = strtoull(s, &s, 10);
	m->tasks = *s == '/' ? strtoull(s + 1, NULL, 10) : 0;
}

static void read_guest(struct metrics *m)
{
	AUTO_BUF net = { .cap = 64U << 10 };
	struct timespec wall, boot;
	char text[TEXT];
	struct statfs fs;

	(void)clock_gettime(CLOCK_REALTIME, &wall);
	(void)clock_gettime(CLOCK_BOOTTIME, &boot);
	m->time_ms = (uint64_t)wall.tv_sec * 1000 + (uint64_t)wall.tv_nsec / 1000000;
	m->uptime_ms = (uint64_t)boot.tv_sec * 1000 + (uint64_t)boot.tv_nsec / 1000000;
	m->cpus = (uint64_t)sysconf(_SC_NPROCESSORS_ONLN);
	if (read_text(AT_FDCWD, "/proc/stat", text))
		metrics_read_cpu(m, text, (uint64_t)sysconf(_SC_CLK_TCK));
	if (read_text(AT_FDCWD, "/proc/meminfo", text))
		metrics_read_memory(m, text);
	if (read_text(AT_FDCWD, "/proc/loadavg", text))
		read_load(m, text);
	if (statfs("/", &fs) == 0)
		metrics_disk(m, &fs);
	ignore_result(fd_read_file(AT_FDCWD, "/proc/net/dev", &net)); /* what fits */
	metrics_read_net(m, net.p);
}

/* A file with one number, or "max". */
static uint64_t one_number(int dir, const char *file)
{
	char text[TEXT];

	return read_text(dir, file, text) && text[0] != 'm' ? field(text, "") : METRICS_NONE;
}

static void read_workload(struct metrics *m)
{
	int dir = cgroup_work();
	char text[TEXT];

	m->have_work = dir >= 0;
	if (dir < 0)
		return;
	m->work_mem = one_number(dir, "memory.current");
	m->work_peak = one_number(dir, "memory.peak"); /* Linux 5.19 */
	m->work_max = one_number(dir, "memory.max");
	m->work_pids = one_number(dir, "pids.current");
	m->work_pids_max = one_number(dir, "pids.max");
	m->work_busy = read_text(dir, "cpu.stat", text) ? field(text, "usage_usec ") : METRICS_NONE;
	m->work_kills =
		read_text(dir, "memory.events", text) ? field(text, "oom_kill ") : METRICS_NONE;
}

/* --- agentd itself --- */
static uint64_t count_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	uint64_t n = 0;

	if (!d)
		return METRICS_NONE;
	while (readdir(d))
		n++;
	(void)closedir(d);
	return less(n, 3); /* ".", "..", and the one of this directory */
}

static void read_agent(struct app *a, struct metrics *m)
{
	const struct exec_stats *s = exec_get_stats();
	struct rusage u;
	char text[TEXT], *rss;

	m->ex_running = exec_running();
	m->ex_slots = exec_busy();
	m->ex_started = s->started;
	m->ex_failed = s->failed;
	m->ex_ended = s->ended;
	m->ex_timed_out = s->timed_out;
	m->ex_oom = s->oom;
	m->rss = METRICS_NONE;
	if (read_text(AT_FDCWD, "/proc/self/statm", text) && (rss = strchr(text, ' ')))
		m->rss = strtoull(rss, NULL, 10) * (uint64_t)sysconf(_SC_PAGESIZE);
	if (getrusage(RUSAGE_SELF, &u) == 0)
		m->agent_busy = (uint64_t)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000000 +
				(uint64_t)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
	m->fds = count_fds();
	m->connections = httpd_connections(a->tcp);
	m->requests = a->requests;
}

void metrics_collect(struct app *a, struct metrics *m)
{
	memset(m, 0, sizeof(*m));
	read_guest(m);
	read_workload(m);
	read_agent(a, m);
	sample(m);
}
