/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_CMD_SNAPSHOT_H
#define ASB_CMD_SNAPSHOT_H

#include "host/backend.h"
#include "host/cli/opts.h"
#include "lib/compiler.h"
#include "lib/err.h"

/* Between snapshot.c and snapfile.c. */

/* What to type after E; NULL when nothing is known. Static storage. NAME: of a snapshot that cannot be made, or NULL. */
const char *cmd_snapshot_hint(const struct err *e, const char *name);
/* The same after R of restore and load, when memory is what does not fit. */
const char *cmd_snapshot_misfit(const struct cli *c, int r);
unsigned cmd_snapshot_flags(const struct cli *c);
/* "WORD NAME", or the document of the snapshot. The exit status. */
int cmd_snapshot_tell(const struct cli *c, const char *word, const char *name) MUST_CHECK;

#endif
