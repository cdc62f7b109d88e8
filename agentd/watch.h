/* SPDX-License-Identifier: Apache-2.0 */
#ifndef AGENTD_WATCH_H
#define AGENTD_WATCH_H

#include <stdbool.h>

#include "lib/compiler.h"
#include "lib/loop.h"

/* Changes below a path, by inotify(7), recursively when wanted. */
struct watch;

enum watch_event {
	WATCH_READY,  /* from here on nothing is missed */
	WATCH_CREATE, /* may come twice for what appears while its directory is being added */
	WATCH_MODIFY, /* content */
	WATCH_DELETE,
	WATCH_RENAME,	/* PATH to TO */
	WATCH_ATTRIB,	/* mode, owner, times, links */
	WATCH_OVERFLOW, /* changes were missed; with a PATH: below that, from here on */
	WATCH_END,	/* the watched path itself is gone: nothing follows */
};

struct watch_ops {
	/* TYPE as fsop_type tells it. PATH, TO and TYPE are NULL where they have no meaning. It must not free the watch. */
	void (*event)(void *arg, enum watch_event ev, const char *path, const char *to,
		      const char *type);
	/* Before WATCH_READY: it cannot be watched, ERRNUM (positive) says why; -1: more than LIMIT_WATCH_DIRS. Nothing
	 * follows. */
	void (*failed)(void *arg, int errnum);
};

/*
 * Begins to watch PATH, a directory or another file; its own link is followed, links below are not. The directories below are added
 * bit by bit from the loop; then comes WATCH_READY. 0 or a negative errno.
 */
int watch_start(struct loop *l, const char *path, bool recursive, const struct watch_ops *ops,
		void *arg, struct watch **ret) MUST_CHECK;
/* While PAUSED nothing is told; what the kernel cannot keep meanwhile is an overflow. */
void watch_pause(struct watch *w, bool paused);
void watch_free(struct watch *w); /* not from a callback; fine with NULL */

#endif
