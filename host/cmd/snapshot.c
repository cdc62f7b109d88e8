/* SPDX-License-Identifier: Apache-2.0 */
#include <cJSON.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "host/cli/grid.h"
#include "host/cli/out.h"
#include "host/cmd/cmd.h"
#include "host/cmd/common.h"
#include "host/cmd/snapshot.h"
#include "lib/buf.h"
#include "lib/jsn.h"
#include "lib/loop.h"
#include "lib/str.h"

/* create, restore, ls, inspect and rm; save and load are in snapfile.c. */

#define CREATE_NS 900000000000LL /* a large memory on a slow disk */
#define COLUMNS	  8
#define NAMES_MAX (16U << 20)

const char *cmd_snapshot_hint(const struct err *e, const char *name)
{
	static char text[SANDBOX_NAME_MAX + 80];

	if (e->code == ERR_NOT_FOUND && e->errnum == ENOENT)
		return "asb snapshot ls lists the snapshots there are";
	if (e->code != ERR_EXISTS || !name)
		return NULL;
	ignore_result(str_format(text, sizeof(text), /* fits */
				 "choose another name, or remove it: asb snapshot rm %s", name));
	return text;
}

const char *cmd_snapshot_misfit(const struct cli *c, int r)
{
	return r == -ESTALE && !c->val[OPT_DISK_ONLY].set
		       ? "with --disk-only it boots from its disk, which fits everywhere"
		       : NULL;
}

unsigned cmd_snapshot_flags(const struct cli *c)
{
	return c->val[OPT_DISK_ONLY].set ? SNAPSHOT_DISK : 0;
}

static const char *when(int64_t s, char ret[32])
{
	time_t t = (time_t)s;
	struct tm tm;

	if (s <= 0 || !gmtime_r(&t, &tm) || !strftime(ret, 32, "%Y-%m-%dT%H:%M:%SZ", &tm))
		return NULL;
	return ret;
}

static cJSON *info_json(const struct snapshot_info *i)
{
	AUTO_JSN *j = cJSON_CreateObject();
	cJSON *ret = j;
	char time[32];

	if (!j || !jsn_add_str(j, "name", i->name) || !jsn_add_str(j, "sandbox", i->source) ||
	    !jsn_add_str(j, "image", i->image) || !jsn_add_bool(j, "memory", i->memory) ||
	    !jsn_add_u64(j, "cpus", i->cpus) || !jsn_add_u64(j, "memory_mib", i->memory_mib) ||
	    !jsn_add_u64(j, "bytes", i->bytes) || !jsn_add_u64(j, "disk_bytes", i->disk_bytes) ||
	    !jsn_add_str(j, "created_at", when(i->created_s, time)) ||
	    !jsn_add_text(j, "broken", i->broken, strlen(i->broken)))
		return NULL;
	j = NULL;
	return ret;
}

/* --- ls --- */
struct listing {
	struct grid grid;
	cJSON *list;	  /* with --json */
	const char *only; /* the one that is wanted; NULL = all */
	bool names_only;
	struct buf names;
};

static int add_row(struct listing *l, const struct snapshot_info *i)
{
	char memory[24], bytes[OUT_SIZE_LEN], disk[OUT_SIZE_LEN], time[32];

	out_size((double)i->bytes, bytes);
	out_size((double)i->disk_bytes, disk);
	ignore_result(str_format(memory, sizeof(memory), "%llu MiB", /* fits */
				 (unsigned long long)i->memory_mib));
	if (i->broken[0])
		out_warn("snapshot '%s' cannot be used: %s", i->name, i->broken);
	const char *text[COLUMNS] = { i->name,
				      i->source[0] ? i->source : "-",
				      i->broken[0] ? "broken"
				      : i->memory  ? "memory"
						   : "disk",
				      i->image[0] ? i->image : "-",
				      i->memory ? memory : "-",
				      bytes,
				      disk,
				      when(i->created_s, time) ? time : "-" };

	return grid_add(&l->grid, text);
}

static int on_snapshot(void *arg, const struct snapshot_info *i)
{
	struct listing *l = arg;
	cJSON *j;

	if (l->only && strcmp(l->only, i->name) != 0)
		return 0;
	if (!l->list)
		return l->names_only ? buf_addf(&l->names, "%s\n", i->name) : add_row(l, i);
	j = info_json(i);
	if (j && cJSON_AddItemToArray(l->list, j))
		return 0;
	cJSON_Delete(j);
	return -ENOMEM;
}

static int print(struct listing *l)
{
	if (l->names_only)
		return l->names.len ? out_bytes(l->names.p, l->names.len) : 0;
	if (l->grid.rows)
		return grid_print(&l->grid);
	out_note("no snapshots");
	return 0;
}

int cmd_snapshot_ls(const struct cli *c)
{
	static const char *const head[COLUMNS] = { "NAME",   "SANDBOX", "KIND",	   "IMAGE",
						   "MEMORY", "SIZE",	"ON DISK", "CREATED" };
	struct listing l = { .names_only = c->val[OPT_NAMES].set,
			     .grid = { .head = head, .columns = COLUMNS } };
	cJSON *doc = out_json_wanted() ? cJSON_CreateObject() : NULL;
	struct err e = ERR_INIT;
	int r;

	buf_init(&l.names, NAMES_MAX);
	if (doc)
		l.list = cJSON_AddArrayToObject(doc, "snapshots");
	r = backend_local.snapshots->list(on_snapshot, &l, &e);
	if (r < 0 && !e.code)
		(void)err_set(&e, ERR_INTERNAL, -r, "listing the snapshots");
	if (r < 0)
		cJSON_Delete(doc);
	r = r < 0		? cmd_fail(c, &e, NULL)
	    : out_json_wanted() ? (out_doc(doc) < 0 ? c->cmd->failure : 0)
				: (print(&l) < 0 ? c->cmd->failure : 0);
	grid_done(&l.grid);
	buf_done(&l.names);
	return r;
}

int cmd_snapshot_tell(const struct cli *c, const char *word, const char *name)
{
	cJSON *list = cJSON_CreateArray(), *one;
	struct listing l = { .list = list, .only = name };
	int r;

	if (!out_json_wanted()) {
		cJSON_Delete(list);
		return out_line("%s %s", word, name) < 0 ? c->cmd->failure : 0;
	}
	r = list ? backend_local.snapshots->list(on_snapshot, &l, NULL) : -ENOMEM;
	one = r == 0 ? cJSON_DetachItemFromArray(list, 0) : NULL;
	cJSON_Delete(list);
	return out_doc(one) < 0 ? c->cmd->failure : 0;
}

/* --- create --- */
/* Without a name of its own: that of the sandbox, and the time. */
static int choose_name(const struct cli *c, char ret[SANDBOX_NAME_MAX + 1], struct err *e)
{
	char stamp[32];
	time_t now = time(NULL);
	struct tm tm;

	if (c->names_len > 1)
		return str_format(ret, SANDBOX_NAME_MAX + 1, "%s", c->names[1]);
	if (!gmtime_r(&now, &tm) || !strftime(stamp, sizeof(stamp), "%Y%m%d-%H%M%S", &tm) ||
	    str_format(ret, SANDBOX_NAME_MAX + 1, "%s-%s", c->names[0], stamp) < 0)
		return err_set(e, ERR_USAGE, EINVAL, "the snapshot needs a name");
	return 0;
}

int cmd_snapshot_create(const struct cli *c)
{
	char name[SANDBOX_NAME_MAX + 1];
	struct core_named n;
	struct progress p;
	struct err e = ERR_INIT;
	int r = choose_name(c, name, &e);

	if (r < 0)
		return cmd_fail(c, &e, NULL);
	r = core_find(c->names[0], &n, &e);
	if (r < 0)
		return cmd_fail(c, &e, cmd_hint(&e, c->names[0]));
	if (!n.backend->snapshots) {
		r = cmd_unsupported(n.backend, "make a snapshot", &e);
	} else {
		out_progress(&p, "making the snapshot");
		core_cancel_begin(&p);
		r = n.backend->snapshots->create(n.record.microvm_id, name, cmd_snapshot_flags(c),
						 &p, loop_now() + CREATE_NS, &e);
		core_cancel_end();
		out_progress_end();
	}
	core_named_done(&n);
	if (r < 0 && core_cancelled())
		core_die_of(core_cancelled());
	if (r == -ENOTCONN)
		return cmd_fail(c, &e, "its disk can be kept: --disk-only");
	return r < 0 ? cmd_fail(c, &e, cmd_snapshot_hint(&e, name))
		     : cmd_snapshot_tell(c, "created", name);
}

/* --- restore, inspect, rm --- */
int cmd_snapshot_restore(const struct cli *c)
{
	struct core_child child;
	struct progress p;
	struct err e = ERR_INIT;
	const char *hint;
	int r;

	out_progress(&p, "starting the sandbox");
	r = core_restore(&backend_local, c->names[0], c->names[1], cmd_snapshot_flags(c), &p,
			 c->val[OPT_START_TIMEOUT].ns, &child, &e);
	out_progress_end();
	if (r < 0 && core_cancelled())
		core_die_of(core_cancelled());
	if (r == 0)
		return cmd_tell_created(c, &backend_local, child.name, child.id);
	hint = cmd_snapshot_misfit(c, r);
	if (!hint)
		hint = e.code == ERR_EXISTS ? cmd_hint(&e, c->names[1])
					    : cmd_snapshot_hint(&e, NULL);
	return cmd_fail(c, &e, hint);
}

int cmd_snapshot_inspect(const struct cli *c)
{
	struct err e = ERR_INIT;
	char *text = NULL;
	cJSON *j = NULL;
	int r = backend_local.snapshots->inspect(c->names[0], &text, &e);

	if (r == 0)
		j = jsn_parse(text, strlen(text), &e);
	free(text);
	if (!j)
		return cmd_fail(c, &e, cmd_snapshot_hint(&e, NULL));
	return out_doc(j) < 0 ? c->cmd->failure : 0;
}

static int rm_one(const struct cli *c, const char *name, const char **ret_word, struct err *e)
{
	(void)c;
	*ret_word = "removed";
	return backend_local.snapshots->remove(name, e);
}

int cmd_snapshot_rm(const struct cli *c)
{
	return cmd_each_of(c, "snapshots", cmd_snapshot_hint, rm_one);
}
