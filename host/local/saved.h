/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_LOCAL_SAVED_H
#define ASB_LOCAL_SAVED_H

#include <stdbool.h>

#include "lib/compiler.h"
#include "lib/err.h"

/*
 * saved/ in a sandbox's folder: a guest that was suspended to disk (`ram`, `devices`, `state.json`). Its being there
 * is what makes the sandbox SUSPENDED; it is removed before the guest runs again.
 */
#define SAVED	   "saved"
#define SAVED_NEW  "saved.new"	/* being made */
#define SAVED_GONE "saved.gone" /* being removed */

struct saved {
	const char *fit; /* what must be the same for the guest to go on; template_fit */
	bool balloon;	 /* the machine has one */
	bool based;	 /* `ram` holds changes against base.ram; else all of it */
};

#define BRANCH "branch" /* the same of a running one, and its disk; not durable */

/*
 * What saved_drop() could not remove, for who then gives it to fd_remove_children(); the sandbox may run meanwhile. A descriptor of
 * SAVED_GONE, or -1: there is none, or a saved_drop() is at it, which may still take it back.
 */
int saved_gone(int dirfd) MUST_CHECK;

/* Removes the copies below DIRFD, which processes that are dead have left. */
void saved_collect(int dirfd);

/* Writes state.json into DIRFD, beside `ram` and `devices`. */
int saved_describe(int dirfd, const struct saved *s) MUST_CHECK;

bool saved_is_there(int dirfd);

/* Brings NAME in DIRFD, a folder with these three files, to the disk. */
int saved_sync(int dirfd, const char *name) MUST_CHECK;

/* SAVED_NEW in DIRFD, with its files, becomes SAVED: durable, in one step. */
int saved_commit(int dirfd, const struct saved *s, struct err *e) MUST_CHECK;

/* RET->fit is not set: FIT is compared with what was noted. -ESTALE + ERR_CONFLICT when it is another. */
int saved_read(int dirfd, const char *fit, struct saved *ret, struct err *e) MUST_CHECK;

/* The same for the folder SAVED itself, and what is wrong said of its WHAT. */
int saved_read_in(int saveddir, const char *what, const char *fit, struct saved *ret, struct err *e)
	MUST_CHECK;

/* Forgets it, in one step: from here on the guest may run. Fine when there is none. Also removes what is half made. */
int saved_drop(int dirfd, struct err *e) MUST_CHECK;

#endif
