/* SPDX-License-Identifier: Apache-2.0 */
#include <cJSON.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "host/aws/arn.h"
#include "host/cli/out.h"
#include "host/cmd/cmd.h"
#include "host/cmd/common.h"
#include "host/infra/record.h"
#include "lib/fd.h"
#include "lib/jsn.h"
#include "lib/str.h"

/* asb image build and rm. */

/* --- build --- */

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

/* What asb infra has set up for builds: of the one stack that there is. */
struct stacks {
	cJSON *outputs; /* owned; of the last */
	size_t len;
};

static int on_stack(void *arg, const char *key, const cJSON *outputs)
{
	struct stacks *s = arg;

	(void)key;
	if (!cJSON_IsString(jsn_get(outputs, "build_bucket")) ||
	    !cJSON_IsString(jsn_get(outputs, "build_role_arn")))
		return 0;
	cJSON_Delete(s->outputs);
	s->outputs = cJSON_Duplicate(outputs, true);
	s->len++;
	return s->outputs ? 0 : -ENOMEM;
}

/* S points into *RET_KEEP afterwards. */
static int from_infra(const struct cli *c, struct image_spec *s, cJSON **ret_keep, struct err *e)
{
	static char region[AWS_REGION_MAX + 1];
	struct stacks all = { NULL, 0 };
	struct image_arn arn;
	int r;

	if (s->bucket && s->role)
		return 0;
	r = infra_outputs_each(on_stack, &all, e);
	*ret_keep = all.outputs;
	if (r < 0)
		return e->code ? r : err_set(e, ERR_INTERNAL, -r, "the outputs of asb infra");
	if (all.len != 1)
		return err_set(
			e, ERR_USAGE, 0,
			"%s: --bucket and --role tell the build what to use (asb infra up makes both)",
			all.len ? "asb infra has set up several stacks"
				: "asb infra has set up nothing");
	if (!s->bucket)
		s->bucket = cJSON_GetStringValue(jsn_get(all.outputs, "build_bucket"));
	if (!s->role)
		s->role = cJSON_GetStringValue(jsn_get(all.outputs, "build_role_arn"));
	if (!c->val[OPT_REGION].set && cJSON_IsString(jsn_get(all.outputs, "image_arn")) &&
	    arn_image(cJSON_GetStringValue(jsn_get(all.outputs, "image_arn")), &arn, NULL) == 0) {
		memcpy(region, arn.region, sizeof(region)); /* where the bucket is */
		backend_aws.place(region,
				  c->val[OPT_PROFILE].set ? c->val[OPT_PROFILE].text : NULL);
	}
	return 0;
}

static int build_on(const struct cli *c, struct image_spec *s, struct progress *p,
		    struct image_built *ret, struct err *e)
{
	const struct backend *b;
	AUTO_JSN *keep = NULL;
	int r = core_images(c, NULL, &b, e);

	if (r == 0 && b->size_of_image) {
		if (!c->val[OPT_MEMORY].set)
			s->memory_mib = 0; /* its own default */
		if (!c->val[OPT_START_TIMEOUT].set)
			s->start_ns = 0;
		r = from_infra(c, s, &keep, e);
	}
	return r < 0 ? r : b->images->build(s, p, ret, e);
}

static void on_warning(const char *text)
{
	out_warn("%s", text);
}

int cmd_image_build(const struct cli *c)
{
	struct image_spec s = { .source = c->names[0],
				.name = c->val[OPT_IMAGE_NAME].text,
				.cpus = (uint32_t)c->val[OPT_CPUS].number,
				.memory_mib = c->val[OPT_MEMORY].number,
				.start_ns = c->val[OPT_START_TIMEOUT].ns,
				.cold = c->val[OPT_NO_TEMPLATE].set,
				.bucket = c->val[OPT_BUCKET].text,
				.role = c->val[OPT_BUILD_ROLE].text,
				.rebuild = c->val[OPT_REBUILD].set,
				.unchecked = c->val[OPT_NO_CHECK].set,
				.warn = on_warning };
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
	r = build_on(c, &s, &p, &b, &e);
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
	const struct backend *b;
	int r = core_images(c, name, &b, e);

	if (r == 0)
		r = b->images->remove(name, c->val[OPT_FORCE_IMAGE].set, on_removed, NULL, e);
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
