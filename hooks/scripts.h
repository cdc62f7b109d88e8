/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HOOKS_SCRIPTS_H
#define HOOKS_SCRIPTS_H

#include <stdbool.h>
#include <stdint.h>

#include "child.h"
#include "lib/compiler.h"
#include "lib/loop.h"

/*
 * The image's own scripts of a hook: the executable files of one folder, in the order of their
 * names, one after another. Each has a deadline, and all have one; a failure is logged and the next
 * is run.
 */
#define SCRIPTS_MAX	 32
#define SCRIPTS_NAME_MAX 64
#define SCRIPTS_EACH_NS	 (3000 * 1000000LL)

struct scripts {
	struct loop *loop;
	struct child child;
	char dir[256];
	char name[SCRIPTS_MAX][SCRIPTS_NAME_MAX]; /* sorted */
	int count, at;
	int64_t end_ns;
	char *const *env; /* borrowed */
	void (*done)(void *arg);
	void *arg;
};

/* True: they run, and DONE is called once, from the loop. False: there is nothing to run. ENV must
 * stay until then. */
bool scripts_run(struct scripts *s, struct loop *l, const char *dir, char *const *env,
		 int64_t limit_ns, void (*done)(void *arg), void *arg) MUST_CHECK;

/* Letters, digits, '-', '_' and '.', and neither hidden nor an editor's copy: as run-parts(8) sees
 * it. Pure. */
bool scripts_name_ok(const char *name);

#endif
