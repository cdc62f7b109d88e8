/* SPDX-License-Identifier: Apache-2.0 */
#include <cJSON.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "host/cli/out.h"
#include "host/cmd/cmd.h"
#include "host/cmd/common.h"
#include "lib/jsn.h"
#include "lib/str.h"

/* asb prune (of this machine) and asb image prune: what can be removed without asking anybody's work. */

struct pruning {
	cJSON *list; /* with --json */
	const char *word;
	uint64_t count, images, bytes;
	bool quiet; /* only counted */
};

static void on_thing(void *arg, const char *kind, const char *name, uint64_t bytes)
{
	struct pruning *p = arg;
	const bool sized = bytes != PRUNE_NO_SIZE;
	char size[OUT_SIZE_LEN];
	cJSON *j;

	out_size((double)bytes, size);
	p->count++;
	p->images += strcmp(kind, "image") == 0;
	p->bytes += sized ? bytes : 0;
	if (p->quiet)
		return;
	if (!p->list && !sized) {
		ignore_result(out_line("%s %s %s", p->word, kind, name)); /* as below */
		return;
	}
	if (!p->list) {
		ignore_result(out_line("%s %s %s (%s)", p->word, kind, name,
				       size)); /* told at the end, too */
		return;
	}
	j = cJSON_CreateObject();
	if (j && cJSON_AddItemToArray(p->list, j))
		ignore_result(jsn_add_str(j, "kind", kind) && jsn_add_str(j, "name", name) &&
			      (!sized || jsn_add_u64(j, "bytes", bytes)));
}

static int prune(const struct cli *c, const struct backend *b, unsigned flags)
{
	const bool dry = flags & PRUNE_DRY;
	struct pruning p = { .word = dry ? "would remove" : "removed" };
	AUTO_JSN *doc = out_json_wanted() ? cJSON_CreateObject() : NULL;
	cJSON *give = doc;
	char size[OUT_SIZE_LEN];
	struct err e = ERR_INIT;
	int r;

	if (doc)
		p.list = cJSON_AddArrayToObject(doc, "removed");
	r = b->prune(flags, on_thing, &p, &e);
	if (r < 0)
		return cmd_fail(c, &e, NULL);
	out_size((double)p.bytes, size);
	if (!doc) {
		if (p.count && b == &backend_local)
			out_note("%s %s", dry ? "this would free" : "freed", size);
		else if (!p.count)
			out_note("there is nothing to remove");
		return 0;
	}
	/* a platform does not say how large its things are */
	if (!p.list || (b == &backend_local && !jsn_add_u64(doc, "bytes", p.bytes)) ||
	    !jsn_add_bool(doc, "dry_run", dry))
		give = NULL;
	else
		doc = NULL;
	return out_doc(give) < 0 ? c->cmd->failure : 0;
}

/* 1: yes; 0: no, or nothing to ask about; negative: nobody can be asked. */
static int ask(const struct backend *b, struct err *e)
{
	struct pruning p = { .quiet = true };
	char text[160];
	int r = b->prune(PRUNE_IMAGES | PRUNE_DRY, on_thing, &p, e);

	if (r < 0 || !p.count)
		return r < 0 ? r : 1; /* then it says that there is nothing */
	ignore_result(str_format(text, sizeof(text),
				 "Remove %llu old versions of images that nothing uses%s? [y/N] ",
				 (unsigned long long)p.images,
				 b == &backend_local ? "" : " from AWS")); /* it fits */
	return cmd_ask(text, "-f says so", e);
}

int cmd_image_prune(const struct cli *c)
{
	const bool dry = c->val[OPT_DRY_RUN].set;
	const struct backend *b;
	struct err e = ERR_INIT;
	int r = core_images(c, NULL, &b, &e);

	if (r == 0)
		r = dry || c->val[OPT_NOT_ASK].set ? 1 : ask(b, &e);
	if (r < 0)
		return cmd_fail(c, &e, NULL);
	return r == 0 ? 0 : prune(c, b, PRUNE_IMAGES | (dry ? PRUNE_DRY : 0));
}

int cmd_prune(const struct cli *c)
{
	/* crashes leave things on this machine, whatever the backend that is configured */
	return prune(c, &backend_local,
		     PRUNE_STALE | (c->val[OPT_ALL].set ? PRUNE_IMAGES | PRUNE_TEMPLATES : 0) |
			     (c->val[OPT_DRY_RUN].set ? PRUNE_DRY : 0));
}
