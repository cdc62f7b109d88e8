/* SPDX-License-Identifier: Apache-2.0 */
#ifndef AGENTD_METRICS_H
#define AGENTD_METRICS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/vfs.h>

#include "lib/compiler.h"
#include "limits.h"

struct app;

#define METRICS_NONE UINT64_MAX /* not known here, or no limit */

struct metrics_net {
	char name[20];
	uint64_t rx_bytes, rx_packets, rx_errors, tx_bytes, tx_packets, tx_errors;
};

/* What this guest uses. Every member has 8 bytes, for the table in routes_metrics.c. Times are in us where the name
 * says nothing else, sizes in bytes; CPU percent are of all CPUs together over interval_ms. */
struct metrics {
	uint64_t time_ms, uptime_ms;
	uint64_t cpus, busy, user, system, iowait, steal, interval_ms;
	double cpu_percent, load[3];
	uint64_t mem_total, mem_used, mem_available, mem_free, mem_cached, swap_total, swap_used;
	bool have_work; /* the workload has a cgroup */
	uint64_t work_mem, work_peak, work_max, work_busy, work_pids, work_pids_max, work_kills;
	double work_percent;
	uint64_t disk_total, disk_used, disk_available;
	uint64_t tasks, tasks_running;
	uint64_t ex_running, ex_slots, ex_started, ex_failed, ex_ended, ex_timed_out, ex_oom;
	uint64_t rss, agent_busy, fds, connections, requests;
	struct metrics_net net[LIMIT_INTERFACES];
	unsigned nets;
};

/* Reads a bounded part of /proc and of the workload's cgroup: about 20 system calls, nothing that waits for a disk. */
void metrics_collect(struct app *a, struct metrics *m);

/* Pure. Sizes of S in bytes; products that do not fit 64 bits become UINT64_MAX - 1. */
void metrics_disk(struct metrics *m, const struct statfs *s);
void metrics_read_cpu(struct metrics *m, const char *s,
		      uint64_t hz);			    /* S: /proc/stat; ticks a second */
void metrics_read_memory(struct metrics *m, const char *s); /* S: /proc/meminfo */
void metrics_read_net(struct metrics *m, const char *s);    /* S: /proc/net/dev; all but lo */

#endif
