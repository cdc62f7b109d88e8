/* SPDX-License-Identifier: Apache-2.0 */
#ifndef AGENTD_CONFINE_H
#define AGENTD_CONFINE_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/compiler.h"
#include "lib/err.h"
#include "lib/loop.h"

/*
 * What a command may ask the kernel for: seccomp profiles, and the capabilities of agentd's own processes. The rules stand in
 * agentd/seccomp/rules.h and, for people, in docs/security-model.md.
 */
enum confine_profile {
	CONFINE_NONE,
	CONFINE_DEFAULT, /* needs CAP_SYS_ADMIN, because it leaves no_new_privs alone, for sudo */
	CONFINE_RESTRICTED, /* with no_new_privs, and next to no capabilities */
};

/* How one command is confined. */
struct confine {
	enum confine_profile profile;
	bool counted; /* agentd answers its denials */
};

/* "default", "restricted", "none". 0 or -EINVAL. */
int confine_parse(const char *name, enum confine_profile *ret) MUST_CHECK;
const char *confine_name(enum confine_profile p);

/* Finds out what this kernel allows, with a child that tries it. L: where denials are answered. */
void confine_start(struct loop *l);
void confine_stop(void);
bool confine_can(enum confine_profile p);
bool confine_counts(void);

/*
 * Before a start, in agentd. ASKED counts when GIVEN; otherwise it is `default` where that is possible, else `none`. 0, or a
 * negative errno with a message for the client when what was asked for is impossible: never is a command run with less.
 */
int confine_prepare(struct confine *c, bool given, enum confine_profile asked, struct err *e)
	MUST_CHECK;

/*
 * In the child, whose memory may be agentd's: before its limits (a listener is a descriptor) and user are set, and last before
 * the program is executed. 0 or a negative errno: then the program must not run.
 */
int confine_child_first(const struct confine *c) MUST_CHECK;
int confine_child_last(const struct confine *c) MUST_CHECK;

/* In agentd, when proc_spawn has returned, whatever it returned: takes over the listener. */
void confine_started(const struct confine *c);

/* Every call that was denied at least once since the start of agentd. */
typedef void confine_denial_fn(void *arg, const char *profile, const char *call, uint64_t n);
void confine_each_denial(confine_denial_fn *fn, void *arg);

/* agentd's own process, once: what it never uses leaves its effective capabilities. Commands are given what they would have had. */
void confine_self(void);

/*
 * A worker process of agentd, once, before it reads anything that a stranger wrote: no_new_privs, the capabilities for files
 * only, and a filter that lets through what file work needs (no execve, socket, clone, ptrace); the rest is EPERM. 0 or a
 * negative errno: -ENOSYS or -EINVAL where the kernel has no filters (qemu-user).
 */
int confine_worker(void) MUST_CHECK;

#endif
