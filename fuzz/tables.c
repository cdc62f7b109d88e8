/* SPDX-License-Identifier: Apache-2.0 */
/* LINK: host/cli/grid.c host/cli/out.c host/agent/?*.c host/net/?*.c host/backend.c */
/*
 * Documents of a hostile guest as `asb metrics` and `asb execs` show them. The first byte: which. Nothing that is printed may
 * control a terminal.
 */
#include <sys/mman.h>

#include "fuzz/fuzz.h"
#include "host/cmd/execs.c"
#include "host/cmd/metrics.c"
#include "lib/fd.h"

const struct backend backend_local = { .name = "local" };

/* --- what the commands need beside --- */

int core_reach(const char *name, struct core_named *ret, struct err *e)
{
	(void)name;
	(void)ret;
	(void)e;
	abort();
}

void core_named_done(struct core_named *n)
{
	(void)n;
}

void core_cancel_begin(struct progress *p)
{
	(void)p;
}

void core_cancel_end(void)
{
}

int core_cancelled(void)
{
	return 0;
}

void core_die_of(int sig)
{
	(void)sig;
	abort();
}

int cmd_fail(const struct cli *c, const struct err *e, const char *hint)
{
	(void)c;
	(void)e;
	(void)hint;
	abort();
}

const char *cmd_hint(const struct err *e, const char *name)
{
	(void)e;
	(void)name;
	return NULL;
}

const char *execid_of(const cJSON *x)
{
	const char *s = NULL;

	return jsn_str(x, "id", &s, NULL) == 1 && strspn(s, "0123456789abcdef") == strlen(s) ? s
											     : NULL;
}

int execid_list(const struct core_named *n, cJSON **ret_doc, struct err *e)
{
	(void)n;
	(void)ret_doc;
	(void)e;
	abort();
}

/* --- */

static int out;

static bool start(void)
{
	static struct cli c;

	out = memfd_create("stdout", MFD_CLOEXEC);
	if (out < 0 || dup2(out, STDOUT_FILENO) < 0)
		abort();
	out_init(&c);
	return true;
}

/* What was printed is lines of text. */
static void check(void)
{
	AUTO_BUF b;

	buf_init(&b, 64U << 20);
	if (lseek(STDOUT_FILENO, 0, SEEK_SET) < 0 || fd_read_all(STDOUT_FILENO, &b) < 0)
		abort();
	for (size_t i = 0; i < b.len; i++)
		if (((unsigned char)b.p[i] < ' ' && b.p[i] != '\n') || b.p[i] == 127)
			abort();
	if (b.len && (b.p[b.len - 1] != '\n' || !str_is_utf8(b.p, b.len)))
		abort();
	if (ftruncate(STDOUT_FILENO, 0) < 0 || lseek(STDOUT_FILENO, 0, SEEK_SET) < 0)
		abort();
}

static bool of_objects(const cJSON *list)
{
	const cJSON *x;

	cJSON_ArrayForEach(x, list)
	{
		if (!cJSON_IsObject(x))
			return false;
	}
	return cJSON_IsArray(list);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	static char name[] = "x";
	static char *names[] = { name };
	struct cli c = { .names = names };
	AUTO_JSN *doc = NULL;
	struct rows t;
	char *s;

	if (!fuzz_started(start) || n < 1 || n > 100000)
		return 0;
	s = fuzz_text(p + 1, n - 1);
	doc = jsn_parse(s, n - 1, NULL);
	free(s);
	if (!doc)
		return 0;
	c.val[OPT_NO_TRUNC].set = p[0] & 2;
	if (!(p[0] & 1)) {
		fill(&t, doc);
		if (print_grid(&t) < 0)
			abort();
	} else if (of_objects(doc)) {
		(void)print_table(&c, doc); /* one that is too long is refused */
		(void)print_ids(doc);
	}
	check();
	return 0;
}
