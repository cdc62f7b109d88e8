/* SPDX-License-Identifier: Apache-2.0 */
#include <cJSON.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "host/cli/out.h"
#include "host/cmd/cmd.h"
#include "host/cmd/common.h"
#include "lib/fd.h"
#include "lib/jsn.h"
#include "lib/str.h"

/* asb image build and rm. They are the local backend's: it is the only one whose images asb makes. */

static const struct image_ops *ops(void)
{
	return backend_local.images;
}

static const char *build_hint(const struct err *e, const char *step)
{
	if (e->code == ERR_TIMEOUT && step && strcmp(step, "unpack") != 0)
		return "--start-timeout gives it more time";
	if (e->code == ERR_UNAVAILABLE && step && strcmp(step, "boot") == 0)
		return "asb doctor checks what this machine can do";
	return NULL;
}

/* What the step wrote last, as it is but for control characters. */
static void print_log(const char *log)
{
	char *text = strdup(log), *rest = text, *line;

	while (text && (line = strsep(&rest, "\n")))
		if (*line)
			out_log_line(line);
	free(text);
}

static int failed(const struct cli *c, const struct image_built *b, const struct err *e)
{
	struct err why = *e;
	const char *hint = build_hint(e, b->step);
	cJSON *j;

	if (b->log && e->code != ERR_USAGE)
		print_log(b->log);
	if (b->step && e->code != ERR_USAGE)
		(void)err_wrap(&why, "%s", b->step);
	out_error_line(&why, hint);
	if (out_json_wanted()) {
		j = cJSON_CreateObject();
		if (j &&
		    (!jsn_add_str(j, "step", b->step) ||
		     !jsn_add_text(j, "log", b->log ? b->log : "", b->log ? strlen(b->log) : 0) ||
		     !cJSON_AddItemToObject(j, "error", out_error_json(e, hint)))) {
			cJSON_Delete(j);
			j = NULL;
		}
		ignore_result(out_doc(j)); /* the exit status tells the failure in any case */
	}
	return e->code == ERR_USAGE ? EXIT_USAGE : c->cmd->failure;
}

static int told(const struct cli *c, const struct image_built *b)
{
	cJSON *j;

	for (unsigned i = 0; i < b->notes_len; i++)
		out_warn("%s", b->notes[i]);
	if (b->unchanged)
		out_note("%s has this content already", b->image);
	if (!out_json_wanted())
		return out_line("%s", b->image) < 0 ? c->cmd->failure : 0;
	j = cJSON_CreateObject();
	if (j &&
	    (!jsn_add_str(j, "image", b->image) || !jsn_add_bool(j, "unchanged", b->unchanged))) {
		cJSON_Delete(j);
		j = NULL;
	}
	return out_doc(j) < 0 ? c->cmd->failure : 0;
}

int cmd_image_build(const struct cli *c)
{
	const struct image_spec s = { .source = c->names[0],
				      .name = c->val[OPT_IMAGE_NAME].text,
				      .cpus = (uint32_t)c->val[OPT_CPUS].number,
				      .memory_mib = c->val[OPT_MEMORY].number,
				      .start_ns = c->val[OPT_START_TIMEOUT].ns,
				      .cold = c->val[OPT_NO_TEMPLATE].set };
	struct image_built b = { .step = NULL };
	struct progress p;
	struct err e = ERR_INIT;
	int r, status;

	if (!c->val[OPT_IMAGE_NAME].set) {
		(void)err_set(&e, ERR_USAGE, 0, "which name shall the image have? (--name NAME)");
		return cmd_fail(c, &e, NULL);
	}
	out_progress(&p, "building the image");
	core_cancel_begin(&p);
	r = ops()->build(&s, &p, &b, &e);
	core_cancel_end();
	out_progress_end();
	if (r < 0 && core_cancelled())
		core_die_of(core_cancelled());
	status = r < 0 ? failed(c, &b, &e) : told(c, &b);
	image_built_done(&b);
	return status;
}

/* --- rm --- */
static void on_removed(void *arg, const char *image)
{
	(void)arg;
	if (!out_json_wanted())
		ignore_result(out_line("removed %s", image)); /* told at the end, too */
}

static int rm_one(const struct cli *c, const char *name, const char **ret_word, struct err *e)
{
	int r = ops()->remove(name, c->val[OPT_FORCE_IMAGE].set, on_removed, NULL, e);

	if (r == 0 && out_json_wanted())
		*ret_word = "removed";
	return r;
}

static const char *rm_hint(const struct err *e, const char *name)
{
	(void)name;
	if (e->code == ERR_CONFLICT)
		return "asb rm removes the sandbox, asb snapshot rm the snapshot; or --force";
	return e->code == ERR_NOT_FOUND ? "asb image ls lists the images there are" : NULL;
}

int cmd_image_rm(const struct cli *c)
{
	return cmd_each_of(c, "images", rm_hint, rm_one);
}
