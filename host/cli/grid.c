/* SPDX-License-Identifier: Apache-2.0 */
#include "host/cli/grid.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "host/cli/out.h"
#include "lib/buf.h"
#include "lib/str.h"

#define GRID_TEXT_MAX (64U << 20)

/* Characters of UTF-8 text; wide ones count as one. */
static int width(const char *s)
{
	int n = 0;

	for (; *s; s++)
		n += ((unsigned char)*s & 0xc0) != 0x80;
	return n;
}

int grid_add(struct grid *g, const char *const *cells)
{
	char **all;

	if (g->rows >= GRID_ROWS_MAX)
		return -E2BIG;
	all = realloc(g->cells, (g->rows + 1) * g->columns * sizeof(*all));
	if (!all)
		return -ENOMEM;
	g->cells = all;
	all += g->rows * g->columns;
	memset(all, 0, g->columns * sizeof(*all));
	g->rows++;
	for (unsigned k = 0; k < g->columns; k++) {
		all[k] = strdup(cells[k]);
		if (!all[k])
			return -ENOMEM;
		str_clean(all[k]);
	}
	return 0;
}

static int add_cell(struct buf *b, const char *s, int w)
{
	int r = buf_adds(b, s);

	return r < 0 || w < 0 ? r : buf_addf(b, "%*s", w - width(s) + 2, "");
}

int grid_print(const struct grid *g)
{
	int *w = calloc(g->columns, sizeof(*w)), r = w ? 0 : -ENOMEM;
	AUTO_BUF b;

	buf_init(&b, GRID_TEXT_MAX);
	for (size_t row = 0; row <= g->rows && w; row++)
		for (unsigned k = 0; k < g->columns; k++) {
			int n = width(row ? g->cells[(row - 1) * g->columns + k] : g->head[k]);

			w[k] = n > w[k] ? n : w[k];
		}
	for (size_t row = 0; row <= g->rows && r == 0; row++) {
		for (unsigned k = 0; k < g->columns && r == 0; k++)
			r = add_cell(&b, row ? g->cells[(row - 1) * g->columns + k] : g->head[k],
				     k + 1 == g->columns ? -1 : w[k]);
		if (r == 0)
			r = buf_adds(&b, "\n");
	}
	free(w);
	return r < 0 ? r : out_bytes(b.p, b.len);
}

void grid_done(struct grid *g)
{
	for (size_t i = 0; i < g->rows * g->columns; i++)
		free(g->cells[i]);
	free(g->cells);
	g->cells = NULL;
	g->rows = 0;
}
