/* SPDX-License-Identifier: Apache-2.0 */
#include <cJSON.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host/agent/copy.h"
#include "host/cli/out.h"
#include "host/cmd/cmd.h"
#include "host/cmd/common.h"
#include "lib/buf.h"
#include "lib/jsn.h"
#include "lib/loop.h"

/*
 * asb cp. An argument with a ':' before any '/' is NAME:PATH, as in docker cp; a file whose name has one is written ./a:b. The PATH
 * of a sandbox is seen from its root.
 */

#define PROGRESS_NS (200LL * 1000000)

struct place {
	char name[SANDBOX_NAME_MAX + 1]; /* "" = here */
	const char *path;
};

struct cp {
	const struct cli *c;
	struct place from, to;
	struct progress progress;
	int64_t begun, shown; /* loop_now */
};

/* --- the command line --- */
static int read_place(const char *word, struct place *ret, struct err *e)
{
	size_t n = strcspn(word, ":/");

	*ret = (struct place){ .path = word };
	if (word[n] != ':' || word[0] == '.')
		return 0;
	if (n > SANDBOX_NAME_MAX)
		return err_set(e, ERR_USAGE, 0, "'%.100s' is not a sandbox's name", word);
	memcpy(ret->name, word, n);
	ret->path = word + n + 1;
	if (!*ret->path)
		return err_set(e, ERR_USAGE, 0, "the path is missing behind '%.140s'", word);
	return state_check_name(ret->name, e);
}

static int read_words(struct cp *p, struct err *e)
{
	int r = read_place(p->c->names[0], &p->from, e);
	bool to_stdout;

	if (r == 0)
		r = read_place(p->c->names[1], &p->to, e);
	if (r < 0)
		return r;
	to_stdout = *p->from.name && p->to.path && !strcmp(p->to.path, "-");
	if (!*p->from.name == !*p->to.name)
		return err_set(e, ERR_USAGE, 0,
			       *p->from.name ? "copying between sandboxes is not supported"
					     : "one of the two must be NAME:PATH of a sandbox");
	if (to_stdout && isatty(STDOUT_FILENO))
		return err_set(e, ERR_USAGE, 0,
			       "standard output is a terminal, and would get a tar");
	if (to_stdout && out_json_wanted())
		return err_set(e, ERR_USAGE, 0, "standard output gets a tar, not a document");
	return 0;
}

/* --- what is told --- */
static void on_progress(void *arg, uint64_t bytes)
{
	struct cp *p = arg;
	int64_t now = loop_now();
	char text[OUT_SIZE_LEN];

	if (now - p->shown < PROGRESS_NS || p->c->val[OPT_VERBOSE].set)
		return;
	p->shown = now;
	out_size((double)bytes, text);
	p->progress.fn(p->progress.arg, text, (now - p->begun) / 1000000);
}

static int told(const struct cp *p, const struct copy_count *n)
{
	cJSON *j;
	char text[OUT_SIZE_LEN];

	if (!out_json_wanted()) {
		out_size((double)n->bytes, text);
		if (strcmp(p->to.path, "-") != 0 || *p->to.name)
			out_note("copied %s in %llu %s to %s", text, (unsigned long long)n->members,
				 n->members == 1 ? "file" : "files and directories",
				 p->c->names[1]);
		return 0;
	}
	j = cJSON_CreateObject();
	if (j && (!jsn_add_text(j, "from", p->c->names[0], strlen(p->c->names[0])) ||
		  !jsn_add_text(j, "to", p->c->names[1], strlen(p->c->names[1])) ||
		  !jsn_add_u64(j, "members", n->members) || !jsn_add_u64(j, "bytes", n->bytes)))
		jsn_free(&j);
	return out_doc(j) < 0 ? p->c->cmd->failure : 0;
}

static int failed(const struct cp *p, const struct copy_count *n, const struct err *e)
{
	const char *name = *p->from.name ? p->from.name : p->to.name;
	int sig = core_cancelled();

	out_progress_end();
	if (n->members)
		out_note("%llu %s copied before", (unsigned long long)n->members,
			 n->members == 1 ? "file or directory was" : "files and directories were");
	if (sig && e->errnum == EINTR)
		core_die_of(sig);
	return cmd_fail(p->c, e,
			e->code == ERR_UNAVAILABLE || e->code == ERR_UNSUPPORTED ? cmd_hint(e, name)
										 : NULL);
}

/* --- the work --- */
/* The PATH of a sandbox, absolute. The caller frees it. */
static char *absolute(const char *path)
{
	AUTO_BUF b = { .cap = 64U << 10 };

	if (buf_addf(&b, "%s%s", path[0] == '/' ? "" : "/", path) < 0)
		return NULL;
	return buf_take(&b);
}

static int copy(struct cp *p, const struct core_named *n, struct copy_count *count, struct err *e)
{
	bool in = *p->to.name;
	char *guest = absolute(in ? p->to.path : p->from.path);
	struct copy_spec s = { .backend = n->backend,
			       .id = n->record.microvm_id,
			       .guest = guest,
			       .local = in ? p->from.path : p->to.path,
			       .progress = on_progress,
			       .arg = p,
			       .cancel = p->progress.cancel };
	int r;

	if (!guest)
		return err_set(e, ERR_INVALID, ENAMETOOLONG, "the path");
	if (p->c->val[OPT_ARCHIVE].set)
		s.flags |= COPY_OWNER;
	if (p->c->val[OPT_FOLLOW_LINK].set)
		s.flags |= COPY_FOLLOW;
	r = in ? copy_in(&s, count, e) : copy_out(&s, count, e);
	free(guest);
	return r;
}

int cmd_cp(const struct cli *c)
{
	struct cp p = { .c = c, .begun = loop_now() };
	struct copy_count count = { 0 };
	struct core_named n;
	struct err e = ERR_INIT;
	int r = read_words(&p, &e);

	if (r < 0)
		return cmd_fail(
			c, &e,
			*p.from.name && *p.to.name
				? "asb cp A:PATH - | asb cp - B:DIR; and a file here with a "
				  "colon in its name is ./NAME"
				: NULL);
	r = core_reach(*p.from.name ? p.from.name : p.to.name, &n, &e);
	if (r < 0)
		return cmd_fail(c, &e, cmd_hint(&e, NULL));
	out_progress(&p.progress, "copying");
	core_cancel_begin(&p.progress);
	r = copy(&p, &n, &count, &e);
	core_cancel_end();
	core_named_done(&n);
	if (r < 0)
		return failed(&p, &count, &e);
	out_progress_end();
	return told(&p, &count);
}
