/* SPDX-License-Identifier: Apache-2.0 */
#ifndef INIT_CGROUP_H
#define INIT_CGROUP_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/compiler.h"
#include "lib/err.h"

/*
 * The two groups of a VM, below /sys/fs/cgroup: asb/system for our own programs, whose memory is
 * protected, and asb/work, below which agentd gives every command a group. What the workload eats,
 * the agent does not lack.
 */
#define CGROUP_ROOT "/sys/fs/cgroup"

/* 0, or a negative errno with a message (no cgroup2 here: -ENODEV). Controllers that the kernel
 * lacks are passed over. */
int cgroup_setup(struct err *e) MUST_CHECK;

int cgroup_system_fd(void); /* directory of asb/system, borrowed; -1 without cgroups */

/* The limits of asb/work where MEM_FREE bytes are free: pure. */
struct cgroup_limits {
	uint64_t work_bytes, work_pids, system_low;
};
struct cgroup_limits cgroup_limits_for(uint64_t mem_free, uint64_t pid_max, uint64_t threads_max);

/* --- the end: every process of asb/work. Without cgroups, -ENODEV. */
bool cgroup_work_populated(void); /* false as well when that cannot be told */
int cgroup_work_signal(int sig)
	MUST_CHECK; /* SIGKILL is one atomic write; else one pass over the processes */

#endif
