/* SPDX-License-Identifier: Apache-2.0 */
#include <cJSON.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host/cli/out.h"
#include "host/cmd/cmd.h"
#include "host/cmd/common.h"
#include "host/infra/config.h"
#include "host/infra/record.h"
#include "lib/fd.h"
#include "lib/jsn.h"
#include "lib/str.h"

/* A file that is there already is never touched, not even by two of us at once. */
static int write_new(const char *path, struct err *e)
{
	AUTO_FD fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	int r;

	if (fd < 0 && errno == EEXIST)
		return err_set(e, ERR_EXISTS, 0, "%s is there already", path);
	if (fd < 0)
		return err_set(e, ERR_IO, errno, "cannot write %s", path);
	r = fd_write_all(fd, infra_template, strlen(infra_template));
	if (r < 0)
		(void)unlink(path);
	return r < 0 ? err_set(e, ERR_IO, -r, "cannot write %s", path) : 0;
}

int cmd_infra_init(const struct cli *c)
{
	const char *path = c->val[OPT_NEW_FILE].text;
	struct err e = ERR_INIT;
	cJSON *j;
	int r;

	if (c->val[OPT_OVERWRITE].set) {
		r = fd_replace_file(path, infra_template, strlen(infra_template), 0644);
		if (r < 0)
			r = err_set(&e, ERR_IO, -r, "cannot write %s", path);
	} else {
		r = write_new(path, &e);
	}
	if (r < 0)
		return cmd_fail(c, &e, e.code == ERR_EXISTS ? "--force replaces it" : NULL);
	if (!out_json_wanted())
		return out_line("wrote %s", path) < 0;
	j = cJSON_CreateObject();
	if (j && !jsn_add_str(j, "file", path)) {
		cJSON_Delete(j);
		j = NULL;
	}
	return out_doc(j) < 0;
}

/* --- output --- */

static cJSON *labelled(const char *project, size_t n, const char *stack, const cJSON *outputs)
{
	cJSON *j = cJSON_CreateObject();
	const cJSON *o;
	char name[INFRA_KEY_MAX + 1];
	bool good = j && str_format(name, sizeof(name), "%.*s", (int)n, project) == 0 &&
		    jsn_add_str(j, "project", name) && jsn_add_str(j, "stack", stack);

	cJSON_ArrayForEach(o, outputs) good =
		good && cJSON_AddItemToObject(j, o->string, cJSON_Duplicate(o, true));
	if (good)
		return j;
	cJSON_Delete(j);
	return NULL;
}

static int on_stack(void *arg, const char *key, const cJSON *outputs)
{
	const size_t n = strcspn(key, "/");
	cJSON *j = labelled(key, n, key[n] ? key + n + 1 : "", outputs);

	return j && cJSON_AddItemToArray(arg, j) ? 0 : -ENOMEM;
}

static int output_all(const struct cli *c)
{
	struct err e = ERR_INIT;
	cJSON *doc = cJSON_CreateObject(),
	      *all = doc ? cJSON_AddArrayToObject(doc, "stacks") : NULL;
	int r = all ? infra_outputs_each(on_stack, all, &e) : -ENOMEM;

	if (r == 0 && !jsn_add_u64(doc, "count", (uint64_t)cJSON_GetArraySize(all)))
		r = -ENOMEM;
	if (r < 0) {
		cJSON_Delete(doc);
		if (e.code == ERR_NONE)
			(void)err_set(&e, ERR_INTERNAL, ENOMEM, "listing the stacks");
		return cmd_fail(c, &e, NULL);
	}
	return out_doc(doc) < 0;
}

/* A text as it is, on one line; anything else as JSON, on one line. */
static int print_one(const struct cli *c, const cJSON *all, const char *name)
{
	const cJSON *v = jsn_get(all, name);
	struct err e = ERR_INIT;
	char *text;
	int r;

	if (!v) {
		(void)err_set(&e, ERR_NOT_FOUND, 0, "there is no output '%s'", name);
		return cmd_fail(c, &e, "asb infra output lists them; asb infra up makes them");
	}
	if (out_json_wanted())
		return out_doc(cJSON_Duplicate(v, true)) < 0;
	if (cJSON_IsString(v))
		return out_line("%s", v->valuestring) < 0;
	text = cJSON_PrintUnformatted(v);
	r = text ? out_line("%s", text) : -ENOMEM;
	free(text);
	return r < 0;
}

static int output_of(const struct cli *c, const struct infra_config *f, struct err *e)
{
	const char *project = f->text[INFRA_PROJECT], *stack = f->text[INFRA_STACK];
	char key[INFRA_KEY_MAX + 1];
	AUTO_JSN *outputs = NULL, *all = NULL;
	cJSON *give;
	int r = str_format(key, sizeof(key), "%s/%s", project, stack);

	if (r == 0)
		r = infra_outputs_get(key, &outputs, e);
	if (r < 0)
		return cmd_fail(c, e, NULL);
	all = outputs && outputs->child ? labelled(project, strlen(project), stack, outputs)
					: cJSON_CreateObject();
	if (all && c->names_len)
		return print_one(c, all, c->names[0]);
	give = all;
	all = NULL;
	return out_doc(give) < 0;
}

int cmd_infra_output(const struct cli *c)
{
	const struct opt_value *files = &c->val[OPT_CONFIG];
	struct infra_configs f = { NULL, 0 };
	struct err e = ERR_INIT;
	int r;

	if (c->val[OPT_ALL_STACKS].set)
		return output_all(c);
	r = infra_config_load(files->all, files->all_len,
			      c->val[OPT_STACK].set ? c->val[OPT_STACK].text : NULL, &f, &e);
	if (r == 0 && f.len != 1)
		r = err_set(&e, ERR_USAGE, 0, "%zu stacks are described", f.len);
	if (r < 0)
		r = cmd_fail(c, &e,
			     e.code == ERR_NOT_FOUND ? "asb infra init writes a sandbox.yaml"
			     : e.code == ERR_USAGE   ? "name one file with -f, or use --all"
						     : NULL);
	else
		r = output_of(c, &f.all[0], &e);
	infra_configs_done(&f);
	return r;
}
