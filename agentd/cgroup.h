/* SPDX-License-Identifier: Apache-2.0 */
#ifndef AGENTD_CGROUP_H
#define AGENTD_CGROUP_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/compiler.h"
#include "lib/loop.h"

/*
 * A cgroup2 group for each exec, below asb/work of the hierarchy at ROOT (/sys/fs/cgroup). asb-init
 * has made asb/work and its limits; where it has not, this makes what it may and leaves limits that
 * somebody set alone. Without cgroup2 (another file system at ROOT, read-only, no permission) every
 * call is harmless and cgroup_have is false.
 */
void cgroup_start(struct loop *l, const char *root);
void cgroup_stop(void);
bool cgroup_have(void);
int cgroup_work(void);	   /* directory of the group of all work, borrowed; -1 without cgroups */
bool cgroup_limited(void); /* memory and pids of the workload have a limit */

/* True while somebody has frozen the workload: what is started now would not run, and its starter
 * would wait. */
bool cgroup_frozen(void);

/* What can be limited for a single command. */
enum cgroup_controller { CGROUP_MEMORY = 1, CGROUP_CPU = 2, CGROUP_PIDS = 4 };
bool cgroup_can(enum cgroup_controller c);

/* Writes V to a limit of the group FD, "memory.max" and the like. 0 or negative errno. */
int cgroup_set(int fd, const char *file, uint64_t v) MUST_CHECK;

/* Makes a group, which may hold half of the processes of the workload; the caller closes *RET_FD. 0 or negative errno (-ENODEV without cgroups). */
int cgroup_new(int *ret_fd) MUST_CHECK;

/* The caller is done with a group. It is removed now or, while something still runs in it, later.
 */
void cgroup_release(int *fd);

/* Sends SIG to every process of the group FD and below. Returns 0, or a negative errno. */
int cgroup_signal(int fd, int sig) MUST_CHECK;

bool cgroup_empty(int fd);
/* How often the OOM killer has struck in it. */
uint64_t cgroup_oom_kills(int fd);

#endif
