/* SPDX-License-Identifier: Apache-2.0 */
#ifndef AGENTD_FSOP_NEW_H
#define AGENTD_FSOP_NEW_H

#include <stdbool.h>

#include "lib/compiler.h"

/*
 * A file that is written before it appears. Until it is complete it has no name (O_TMPFILE), so that
 * nothing is left behind whatever happens, our own death included. A link cannot replace a file:
 * for that the new file gets a hidden name for the moment between linkat(2) and renameat(2). Where
 * the file system has no O_TMPFILE it has such a name from the start, and only our death leaves it.
 */
struct fsop_new {
	int dir;       /* borrowed, O_PATH will do; outlives this */
	int fd;	       /* owned; for writing, mode 0600 */
	char temp[32]; /* its name in DIR; "" while it has none */
};

/* Begins a file in DIR. 0 or a negative errno. In both cases fsop_new_done ends it. */
int fsop_new_open(struct fsop_new *n, int dir) MUST_CHECK;
/* Names it BASE; what has that name is replaced, or without REPLACE it is -EEXIST. */
int fsop_new_commit(struct fsop_new *n, const char *base, bool replace) MUST_CHECK;
/* Closes it, and forgets it when it was not committed. Fine when repeated. */
void fsop_new_done(struct fsop_new *n);

#endif
