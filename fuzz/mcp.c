/* SPDX-License-Identifier: Apache-2.0 */
/* LINK: host/mcp/rpc.c */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz/fuzz.h"
#include "host/mcp/rpc.h"

/* The reader of JSON-RPC lines: the first byte says into which pieces the rest is cut. */

struct seen {
	unsigned lines;
	struct buf ids; /* of every message, to compare two ways of cutting */
};

static bool on_line(void *arg, char *p, size_t n)
{
	struct seen *s = arg;
	struct rpc_msg m;
	AUTO_BUF out;

	buf_init(&out, 64U << 10);
	s->lines++;
	if (!p)
		return true;
	rpc_read(p, n, &m);
	if (m.kind == RPC_REQUEST && (!m.method || !strcmp(m.id, "null")))
		abort();
	if (m.kind == RPC_NOTIFICATION && !m.method)
		abort();
	if (m.kind == RPC_BAD && (!m.why[0] || rpc_error(&out, m.id, m.code, m.why, NULL) < 0 ||
				  out.p[out.len - 1] != '\n' || memchr(out.p, '\n', out.len - 1)))
		abort();
	if (buf_addf(&s->ids, "%d %s\n", (int)m.kind, m.id) < 0)
		abort();
	rpc_done(&m);
	return true;
}

static void run(const uint8_t *p, size_t n, size_t piece, struct seen *s)
{
	struct rpc_lines l;

	*s = (struct seen){ .lines = 0 };
	buf_init(&s->ids, 64U << 20);
	rpc_lines_init(&l, on_line, s);
	for (size_t at = 0; at < n; at += piece)
		if (!rpc_feed(&l, (const char *)p + at, n - at < piece ? n - at : piece))
			abort();
	rpc_end(&l);
	rpc_lines_done(&l);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	struct seen a, b;

	if (n == 0)
		return 0;
	run(p + 1, n - 1, (size_t)p[0] + 1, &a);
	run(p + 1, n - 1, n, &b);
	if (a.lines != b.lines || a.ids.len != b.ids.len ||
	    (a.ids.len && memcmp(a.ids.p, b.ids.p, a.ids.len) != 0))
		abort();
	buf_done(&a.ids);
	buf_done(&b.ids);
	return 0;
}
