/* SPDX-License-Identifier: Apache-2.0 */
#include <cJSON.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "host/cli/grid.h"
#include "host/cli/out.h"
#include "host/cmd/cmd.h"
#include "host/cmd/common.h"
#include "lib/buf.h"
#include "lib/jsn.h"
#include "lib/str.h"

/* asb image ls and inspect. */

#define COLUMNS	    8
#define AWS_COLUMNS 5
#define USED_MAX    4096

struct listing {
	struct grid grid;
	cJSON *list; /* with --json */
	bool names_only;
	struct buf names;
	char last[IMAGE_NAME_LEN + 1]; /* of the user's images */
	struct buf notes;	       /* lines */
};

/* --- ls --- */
static int add_row(struct listing *l, const struct image_info *i)
{
	char version[24], size[OUT_SIZE_LEN], unique[OUT_SIZE_LEN], templates[64],
		on_disk[OUT_SIZE_LEN], used[USED_MAX] = "-";
	struct buf b;
	int r = 0;

	buf_init(&b, USED_MAX - 1);
	for (const char *const *u = i->used_by; *u && r == 0; u++)
		r = buf_addf(&b, "%s%s", b.len ? "," : "", *u);
	if (b.len)
		memcpy(used, b.p, b.len + 1); /* of very many, as many as there is room for */
	buf_done(&b);
	(void)snprintf(version, sizeof(version), "%llu", (unsigned long long)i->version);
	out_size((double)i->bytes, size);
	out_size((double)i->unique_bytes, unique);
	out_size((double)i->template_bytes, on_disk);
	if (i->templates)
		(void)snprintf(templates, sizeof(templates), "%llu (%s)",
			       (unsigned long long)i->templates, on_disk);
	else
		memcpy(templates, "-", 2);
	const char *text[COLUMNS] = { i->name,
				      version,
				      i->broken[0] ? "damaged" : size,
				      i->installed ? "installed" : unique,
				      templates,
				      i->created[0] ? i->created : "-",
				      i->source[0] ? i->source : "-",
				      used };

	return grid_add(&l->grid, text);
}

static int add_aws_row(struct listing *l, const struct image_info *i)
{
	char version[24] = "-";

	if (i->version)
		(void)snprintf(version, sizeof(version), "%llu", (unsigned long long)i->version);
	const char *text[AWS_COLUMNS] = { i->name, version, i->state[0] ? i->state : "-",
					  i->created[0] ? i->created : "-", i->arn };

	return grid_add(&l->grid, text);
}

/* An installed image whose name the user has taken, and why one is damaged. */
static int add_notes(struct listing *l, const struct image_info *i)
{
	int r = 0;

	if (i->installed && !i->newest)
		r = buf_addf(&l->notes,
			     "%s means an image of yours; the installed one is %s:%llu\n", i->name,
			     i->name, (unsigned long long)i->version);
	if (r == 0 && i->broken[0])
		r = buf_addf(&l->notes, "%s:%llu cannot be used: %s\n", i->name,
			     (unsigned long long)i->version, i->broken);
	return r;
}

static int on_image(void *arg, const struct image_info *i)
{
	struct listing *l = arg;
	cJSON *j;

	if (l->list) {
		j = core_image_json(i);
		return j && cJSON_AddItemToArray(l->list, j) ? 0 : -ENOMEM;
	}
	if (l->names_only)
		return i->version ? buf_addf(&l->names, "%s:%llu\n", i->name,
					     (unsigned long long)i->version)
				  : buf_addf(&l->names, "%s\n", i->name);
	if (i->arn)
		return add_aws_row(l, i);
	ignore_result(add_notes(l, i)); /* as many as fit */
	return add_row(l, i);
}

static int print(struct listing *l, cJSON **doc)
{
	cJSON *give = *doc;
	char *rest = l->notes.p, *line;
	int r;

	if (l->list) {
		*doc = NULL;
		return out_doc(give);
	}
	if (l->names_only)
		return l->names.len ? out_bytes(l->names.p, l->names.len) : 0;
	if (!l->grid.rows) {
		out_note("no images");
		return 0;
	}
	r = grid_print(&l->grid);
	while (r == 0 && rest && (line = strsep(&rest, "\n")))
		if (*line)
			out_note("%s", line);
	return r;
}

static int list_of(const struct cli *c, struct listing *l, struct err *e)
{
	static const char *const aws_head[AWS_COLUMNS] = { "NAME", "VERSION", "STATE", "CREATED",
							   "ARN" };
	const struct backend *b;
	int r = core_images(c, NULL, &b, e);

	if (r < 0)
		return r;
	if (b->size_of_image) {
		l->grid.head = aws_head;
		l->grid.columns = AWS_COLUMNS;
	}
	return c->val[OPT_MANAGED].set ? b->images->list_managed(on_image, l, e)
				       : b->images->list(on_image, l, e);
}

int cmd_image_ls(const struct cli *c)
{
	static const char *const head[COLUMNS] = { "NAME",	"VERSION", "SIZE",   "UNIQUE",
						   "TEMPLATES", "CREATED", "SOURCE", "USED-BY" };
	struct listing l = { .names_only = c->val[OPT_NAMES].set,
			     .grid = { .head = head, .columns = COLUMNS } };
	AUTO_JSN *doc = out_json_wanted() ? cJSON_CreateObject() : NULL;
	struct err e = ERR_INIT;
	int r;

	buf_init(&l.names, 16U << 20);
	buf_init(&l.notes, 65536);
	if (doc)
		l.list = cJSON_AddArrayToObject(doc, "images");
	r = list_of(c, &l, &e);
	if (r < 0 && !e.code)
		(void)err_set(&e, ERR_INTERNAL, -r, "listing the images");
	r = r < 0 ? cmd_fail(c, &e, NULL) : print(&l, &doc) < 0 ? c->cmd->failure : 0;
	grid_done(&l.grid);
	buf_done(&l.names);
	buf_done(&l.notes);
	return r;
}

/* --- inspect --- */
int cmd_image_inspect(const struct cli *c)
{
	struct err e = ERR_INIT;
	const struct backend *b;
	cJSON *doc;
	int r = core_images(c, c->names[0], &b, &e);

	if (r == 0)
		r = core_image_find(b->images, c->names[0], &doc, &e);
	if (r == 0)
		return out_doc(doc) < 0 ? c->cmd->failure : 0;
	return cmd_fail(c, &e, r == -ENOENT ? "asb image ls lists the images there are" : NULL);
}
