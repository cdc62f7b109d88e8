/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_CLI_GRID_H
#define ASB_CLI_GRID_H

#include <stddef.h>

#include "lib/compiler.h"

/* A table for people: columns as wide as their widest cell, nothing is cut. What comes from a guest
 * may be in a cell: control characters and bytes that are no UTF-8 become '?'. */
struct grid {
	const char *const *head; /* borrowed; COLUMNS words */
	unsigned columns;
	char **cells; /* owned: rows times columns */
	size_t rows;
};
#define GRID_ROWS_MAX 65536

/* Adds a row of copies. 0, -ENOMEM, -E2BIG. */
int grid_add(struct grid *g, const char *const *cells) MUST_CHECK;
/* To standard output (out_bytes). 0 or negative errno. */
int grid_print(const struct grid *g) MUST_CHECK;
void grid_done(struct grid *g);

#endif
