/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_CLI_PRINT_H
#define ASB_CLI_PRINT_H

#include "lib/buf.h"
#include "host/cli/spec.h"
#include "lib/compiler.h"

/* What is printed from the table. Each appends to OUT and returns 0, -ENOSPC or -ENOMEM. */

int help_usage(const struct command *c, struct buf *out)
	MUST_CHECK; /* "asb run [OPTIONS] …", no line feed */
int help_all(struct buf *out) MUST_CHECK;
int help_group(const char *group, struct buf *out) MUST_CHECK;
int help_command(const struct command *c, struct buf *out) MUST_CHECK;

int man_page(const struct command *c, struct buf *out)
	MUST_CHECK; /* mdoc(7); NULL = asb(1) itself */
int manifest_json(struct buf *out) MUST_CHECK;
int completion_script(const char *shell, struct buf *out)
	MUST_CHECK; /* also -EINVAL: no such shell */

/* The known command whose name is nearest to WORD; NULL when none is near. */
const char *help_nearest(const char *word);

#endif
