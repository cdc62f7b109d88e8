/* SPDX-License-Identifier: Apache-2.0 */
#include <cJSON.h>
#include <errno.h>
#include <math.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "host/agent/ask.h"
#include "host/cli/grid.h"
#include "host/cli/out.h"
#include "host/cmd/cmd.h"
#include "host/cmd/common.h"
#include "lib/buf.h"
#include "lib/jsn.h"
#include "lib/loop.h"
#include "lib/str.h"

/*
 * What a sandbox uses, as its agent says (GET /v1/metrics): all of it comes from the guest, and what is missing or no number
 * is left out. The agent's percentages cover the time since the answer before; so a single look asks twice, WINDOW_NS
 * apart. With --watch on a terminal the table is drawn over the one before it, cut to the terminal's width and height,
 * because a line that wraps or scrolls would shift all others.
 */

#define WINDOW_NS      (500 * 1000000LL)
#define INTERVAL_NS    (100 * 1000000LL) /* shortest: the agent repeats its percentages within that */
#define SLICE_MS       200
#define ROWS_MAX       10
#define LINE_MAX_BYTES (1U << 20)

struct rows {
	char name[ROWS_MAX][12], value[ROWS_MAX][96];
	unsigned len;
};

/* The number GROUP.NAME of DOC, not negative; false when it is not there. */
static bool number(const cJSON *doc, const char *group, const char *name, double *ret)
{
	const cJSON *o = cJSON_IsObject(doc) ? jsn_get(doc, group) : NULL;
	const cJSON *v = cJSON_IsObject(o) ? jsn_get(o, name) : NULL;

	if (!v || !cJSON_IsNumber(v) || !isfinite(v->valuedouble) || v->valuedouble < 0)
		return false;
	*ret = v->valuedouble;
	return true;
}

static void row(struct rows *t, const char *name, const char *fmt, ...) PRINTF(3, 4);

static void row(struct rows *t, const char *name, const char *fmt, ...)
{
	va_list ap;

	if (t->len == ROWS_MAX)
		return;
	va_start(ap, fmt);
	(void)vsnprintf(t->value[t->len], sizeof(t->value[0]), fmt, ap); /* cut is fine */
	va_end(ap);
	(void)snprintf(t->name[t->len], sizeof(t->name[0]), "%s", name);
	t->len++;
}

/* "USED / TOTAL (PERCENT)" */
static void row_part(struct rows *t, const char *name, bool have, double used, double total)
{
	char a[24], b[24];

	if (!have || total <= 0)
		return;
	out_size(used, a);
	out_size(total, b);
	row(t, name, "%s / %s (%.1f %%)", a, b, used / total * 100);
}

static void row_network(struct rows *t, const cJSON *doc)
{
	const cJSON *list = cJSON_IsObject(doc) ? jsn_get(doc, "network") : NULL, *n;
	double rx = 0, tx = 0;
	char a[24], b[24];

	if (!list || !cJSON_IsArray(list) || !list->child)
		return;
	cJSON_ArrayForEach(n, list)
	{
		const cJSON *r = cJSON_IsObject(n) ? jsn_get(n, "rx_bytes") : NULL;
		const cJSON *s = cJSON_IsObject(n) ? jsn_get(n, "tx_bytes") : NULL;

		rx += r && cJSON_IsNumber(r) && r->valuedouble > 0 ? r->valuedouble : 0;
		tx += s && cJSON_IsNumber(s) && s->valuedouble > 0 ? s->valuedouble : 0;
	}
	out_size(rx, a);
	out_size(tx, b);
	row(t, "NETWORK", "%s in, %s out", a, b);
}

static void row_workload(struct rows *t, const cJSON *doc)
{
	double used, max, pids;
	char a[24], b[24] = "no limit";

	if (!number(doc, "workload", "memory", &used) || !number(doc, "workload", "pids", &pids))
		return;
	out_size(used, a);
	if (number(doc, "workload", "memory_max", &max))
		out_size(max, b);
	row(t, "COMMANDS", "%s / %s, %.0f processes", a, b, pids);
}

static void fill(struct rows *t, const cJSON *doc)
{
	double a = 0, b = 0, c = 0;
	bool have;

	t->len = 0;
	if (number(doc, "cpu", "percent", &a) && number(doc, "cpu", "count", &b))
		row(t, "CPU", b == 1 ? "%.1f %% of %.0f CPU" : "%.1f %% of %.0f CPUs", a, b);
	if (number(doc, "load", "1m", &a) && number(doc, "load", "5m", &b) &&
	    number(doc, "load", "15m", &c))
		row(t, "LOAD", "%.2f %.2f %.2f", a, b, c);
	have = number(doc, "memory", "used", &a) && number(doc, "memory", "total", &b);
	row_part(t, "MEMORY", have, a, b);
	have = number(doc, "memory", "swap_used", &a) && number(doc, "memory", "swap_total", &b);
	row_part(t, "SWAP", have, a, b);
	have = number(doc, "disk", "used", &a) && number(doc, "disk", "total", &b);
	row_part(t, "DISK", have, a, b);
	row_workload(t, doc);
	row_network(t, doc);
	if (number(doc, "execs", "running", &a) && number(doc, "execs", "started", &b))
		row(t, "EXECS", "%.0f running, %.0f started", a, b);
}

/* --- printing --- */
static int print_grid(const struct rows *t)
{
	static const char *const head[] = { "METRIC", "LATEST" };
	struct grid g = { .head = head, .columns = 2 };
	int r = 0;

	for (unsigned i = 0; i < t->len && r == 0; i++) {
		const char *cells[] = { t->name[i], t->value[i] };

		r = grid_add(&g, cells);
	}
	if (r == 0)
		r = grid_print(&g);
	grid_done(&g);
	return r;
}

static struct winsize window(void)
{
	struct winsize w = { 0 };

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) < 0)
		w = (struct winsize){ 0 };
	w.ws_col = w.ws_col ? w.ws_col : 80;
	w.ws_row = w.ws_row ? w.ws_row : 24;
	return w;
}

/* Draws T over the BEFORE lines above, and drops from it what the window has no lines for. The values are ASCII of our own
 * making. */
static int draw(struct rows *t, unsigned before)
{
	struct winsize w = window();
	size_t width = w.ws_col;
	unsigned room = w.ws_row > 1 ? w.ws_row - 1U : 1; /* the cursor needs the last one */
	AUTO_BUF b = { .cap = 8192 };
	int r;

	if (t->len > room)
		t->len = room;
	if (before > room)
		before = room;
	r = before ? buf_addf(&b, "\033[%uA", before) : 0;
	for (unsigned i = 0; i < t->len && r == 0; i++) {
		char line[128];
		int n = snprintf(line, sizeof(line), "%-9s %s", t->name[i], t->value[i]);

		if (n > 0 && (size_t)n >= width)
			line[width - 1] = '\0';
		r = buf_addf(&b, "\r%s\033[K\n", line);
	}
	if (r == 0 && before > t->len)
		r = buf_adds(&b, "\033[J");
	return r < 0 ? r : out_bytes(b.p, b.len);
}

static cJSON *document(const struct core_named *n, cJSON *metrics)
{
	cJSON *j = cJSON_CreateObject();

	if (j && jsn_add_str(j, "name", n->record.name) &&
	    jsn_add_str(j, "id", n->record.microvm_id) &&
	    cJSON_AddItemToObject(j, "metrics", metrics))
		return j;
	cJSON_Delete(j);
	cJSON_Delete(metrics);
	return NULL;
}

static int print_line(cJSON *j)
{
	char *s = j ? cJSON_PrintUnformatted(j) : NULL;
	AUTO_BUF b = { .cap = LINE_MAX_BYTES };
	int r = s ? buf_addf(&b, "%s\n", s) : -ENOMEM;

	cJSON_Delete(j);
	free(s);
	return r < 0 ? r : out_bytes(b.p, b.len);
}

/* --- asking --- */
static int ask(const struct core_named *n, cJSON **ret, struct err *e)
{
	struct ask a = { .backend = n->backend,
			 .id = n->record.microvm_id,
			 .method = "GET",
			 .path = "/v1/metrics?format=json" };

	if (!n->backend->connect && !n->backend->route)
		return cmd_unsupported(n->backend, "ask the agent", e);
	return agent_ask(&a, ret, e);
}

/* True when the time is over, false when a signal came. */
static bool rest(int64_t ns)
{
	int64_t end = loop_now() + ns, left;

	while (!core_cancelled() && (left = end - loop_now()) > 0)
		(void)poll(NULL, 0,
			   left > SLICE_MS * 1000000LL ? SLICE_MS : (int)(left / 1000000) + 1);
	return !core_cancelled();
}

static int once(const struct core_named *n, struct err *e)
{
	struct rows t;
	AUTO_JSN *doc = NULL;
	int r = ask(n, NULL, e);

	if (r < 0)
		return r;
	if (!rest(WINDOW_NS))
		return 0;
	r = ask(n, &doc, e);
	if (r < 0)
		return r;
	if (out_json_wanted()) {
		cJSON *give = document(n, doc);

		doc = NULL;
		return out_doc(give);
	}
	fill(&t, doc);
	return print_grid(&t);
}

static int watch(const struct core_named *n, int64_t interval, struct err *e)
{
	bool screen = isatty(STDOUT_FILENO) && !out_json_wanted();
	unsigned before = 0;
	int r = ask(n, NULL, e);

	while (r == 0 && rest(interval)) {
		struct rows t;
		AUTO_JSN *doc = NULL;

		r = ask(n, &doc, e);
		if (r < 0 || core_cancelled())
			break;
		if (out_json_wanted()) {
			cJSON *give = document(n, doc);

			doc = NULL;
			r = print_line(give);
			continue;
		}
		fill(&t, doc);
		r = screen ? draw(&t, before) : print_grid(&t);
		before = t.len;
	}
	if (!core_cancelled())
		return r;
	return before && screen ? out_bytes("\n", 1) : 0; /* behind the "^C" */
}

int cmd_metrics(const struct cli *c)
{
	struct progress p = { 0 };
	struct core_named n;
	struct err e = ERR_INIT;
	int64_t interval = c->val[OPT_INTERVAL].ns;
	int r = core_reach(c->names[0], &n, &e);

	if (r < 0)
		return cmd_fail(c, &e, cmd_hint(&e, NULL));
	core_cancel_begin(&p);
	if (c->val[OPT_WATCH].set)
		r = watch(&n, interval < INTERVAL_NS ? INTERVAL_NS : interval, &e);
	else
		r = once(&n, &e);
	core_cancel_end();
	core_named_done(&n);
	if (r == 0 && core_cancelled() && !c->val[OPT_WATCH].set)
		core_die_of(core_cancelled());
	if (r < 0 && !e.code)
		return c->cmd->failure; /* told already: standard output */
	return r < 0 ? cmd_fail(c, &e, cmd_hint(&e, c->names[0])) : 0;
}
