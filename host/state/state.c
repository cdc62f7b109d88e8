/* SPDX-License-Identifier: Apache-2.0 */
#include "host/state/state.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host/state/file.h"
#include "lib/fd.h"
#include "lib/jsn.h"
#include "lib/str.h"

/*
 * The file is small and shared with the Python project, so each change reads it whole, edits the
 * tree, and puts a new file in its place. What the tree holds beyond the five keys is carried along
 * untouched: other keys at the top, other keys of a record.
 */

static const char *const record_keys[] = { "name", "microvm_id", "endpoint", "image_arn",
					   "region" };

void state_record_done(struct state_record *r)
{
	free(r->name);
	free(r->microvm_id);
	free(r->endpoint);
	free(r->image_arn);
	free(r->region);
	*r = (struct state_record){ NULL, NULL, NULL, NULL, NULL };
}

static int check_tree(const cJSON *tree, const char *path, struct err *e);

static const struct state_file file = { .variable = "AGENT_SANDBOX_STATE",
					.name = "state.json",
					.lock = ".lock",
					.what = "state file",
					.check = check_tree };

int state_dir(const char **ret, struct err *e)
{
	static char dir[PATH_MAX];
	int r = state_file_dir(&file, dir, e);

	if (r == 0)
		*ret = dir;
	return r;
}

/* --- reading --- */

static bool is_text_or_null(const cJSON *o, const char *key)
{
	const cJSON *v = cJSON_GetObjectItemCaseSensitive(o, key);

	return !v || cJSON_IsNull(v) || cJSON_IsString(v);
}

static int check_tree(const cJSON *tree, const char *path, struct err *e)
{
	const cJSON *all = cJSON_GetObjectItemCaseSensitive(tree, "sandboxes"), *r;

	if (!cJSON_IsObject(tree))
		return state_file_bad(&file, path, "it is not a JSON object", e);
	if (all && !cJSON_IsObject(all))
		return state_file_bad(&file, path, "\"sandboxes\" is not an object", e);
	cJSON_ArrayForEach(r, all)
	{
		const cJSON *id = cJSON_GetObjectItemCaseSensitive(r, "microvm_id");

		if (!cJSON_IsObject(r) || !cJSON_IsString(id))
			return state_file_bad(&file, path, "a record has no \"microvm_id\"", e);
		for (size_t i = 0; i < ARRAY_LEN(record_keys); i++)
			if (!is_text_or_null(r, record_keys[i]))
				return state_file_bad(&file, path,
						      "a record's value is not a string", e);
	}
	return 0;
}

static int copy_text(const cJSON *o, const char *key, char **ret)
{
	const char *s = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(o, key));

	if (!s)
		return 0;
	*ret = strdup(s);
	return *ret ? 0 : -ENOMEM;
}

static int to_record(const cJSON *o, struct state_record *ret)
{
	struct state_record r = { NULL, NULL, NULL, NULL, NULL };

	r.name = strdup(o->string ? o->string : "");
	if (!r.name || copy_text(o, "microvm_id", &r.microvm_id) < 0 ||
	    copy_text(o, "endpoint", &r.endpoint) < 0 ||
	    copy_text(o, "image_arn", &r.image_arn) < 0 || copy_text(o, "region", &r.region) < 0) {
		state_record_done(&r);
		return -ENOMEM;
	}
	*ret = r;
	return 0;
}

int state_get(const char *name, struct state_record *ret, struct err *e)
{
	char path[PATH_MAX];
	AUTO_JSN *tree = NULL;
	const cJSON *o;
	int r = state_file_path(&file, path, e);

	if (r == 0)
		r = state_file_load(&file, &tree, e);
	if (r < 0)
		return r;
	o = cJSON_GetObjectItemCaseSensitive(tree, "sandboxes");
	o = cJSON_GetObjectItemCaseSensitive(o, name);
	if (!o) {
		(void)err_set(e, ERR_NOT_FOUND, 0, "there is no sandbox named '%s' in %s", name,
			      path);
		if (e)
			e->errnum = ENOENT; /* without its text, which would read as if the file
					       were missing */
		return -ENOENT;
	}
	r = to_record(o, ret);
	return r < 0 ? err_set(e, ERR_INTERNAL, -r, "reading %s", path) : 0;
}

int state_each(int (*fn)(void *arg, const struct state_record *r), void *arg, struct err *e)
{
	char path[PATH_MAX];
	AUTO_JSN *tree = NULL;
	const cJSON *o;
	int r = state_file_path(&file, path, e);

	if (r == 0)
		r = state_file_load(&file, &tree, e);
	if (r < 0)
		return r;
	cJSON_ArrayForEach(o, cJSON_GetObjectItemCaseSensitive(tree, "sandboxes"))
	{
		struct state_record rec;

		r = to_record(o, &rec);
		if (r < 0)
			return err_set(e, ERR_INTERNAL, -r, "reading %s", path);
		r = fn(arg, &rec);
		state_record_done(&rec);
		if (r)
			return r;
	}
	return 0;
}

/* --- writing --- */

static bool set_text(cJSON *o, const char *key, const char *s)
{
	return state_file_put(o, key, s ? cJSON_CreateString(s) : cJSON_CreateNull());
}

/* Puts R into TREE; it has no record of that name. */
static int insert(cJSON *tree, const struct state_record *r)
{
	cJSON *all = cJSON_GetObjectItemCaseSensitive(tree, "sandboxes");
	cJSON *o;

	if (!all)
		all = cJSON_AddObjectToObject(tree, "sandboxes");
	o = all ? cJSON_AddObjectToObject(all, r->name) : NULL;
	return o && set_text(o, "name", r->name) && set_text(o, "microvm_id", r->microvm_id) &&
			       set_text(o, "endpoint", r->endpoint) &&
			       set_text(o, "image_arn", r->image_arn) &&
			       set_text(o, "region", r->region)
		       ? 0
		       : -ENOMEM;
}

int state_add(const struct state_record *r, struct err *e)
{
	AUTO_JSN *tree = NULL;
	AUTO_FD lock = -1;
	const cJSON *all;
	int rc = state_check_name(r->name, e);

	if (rc == 0)
		rc = state_file_edit(&file, &lock, &tree, e);
	if (rc < 0)
		return rc;
	all = cJSON_GetObjectItemCaseSensitive(tree, "sandboxes");
	if (cJSON_GetObjectItemCaseSensitive(all, r->name)) {
		(void)err_set(e, ERR_EXISTS, 0, "there is a sandbox named '%s' already", r->name);
		return -EEXIST;
	}
	rc = insert(tree, r);
	return rc < 0 ? err_set(e, ERR_INTERNAL, -rc, "adding '%s'", r->name)
		      : state_file_save(&file, tree, e);
}

int state_replace(const char *old_id, const struct state_record *r, struct err *e)
{
	char path[PATH_MAX];
	AUTO_JSN *tree = NULL;
	AUTO_FD lock = -1;
	const char *has;
	cJSON *o;
	int rc = state_file_path(&file, path, e);

	if (rc == 0)
		rc = state_file_edit(&file, &lock, &tree, e);
	if (rc < 0)
		return rc;
	o = cJSON_GetObjectItemCaseSensitive(tree, "sandboxes");
	o = cJSON_GetObjectItemCaseSensitive(o, r->name);
	has = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(o, "microvm_id"));
	if (!has || strcmp(has, old_id) != 0) {
		(void)err_set(e, ERR_NOT_FOUND, 0, "the record of '%s' has gone from %s", r->name,
			      path);
		return -ENOENT;
	}
	if (!set_text(o, "microvm_id", r->microvm_id) || !set_text(o, "endpoint", r->endpoint) ||
	    !set_text(o, "image_arn", r->image_arn) || !set_text(o, "region", r->region))
		return err_set(e, ERR_INTERNAL, ENOMEM, "changing '%s'", r->name);
	return state_file_save(&file, tree, e);
}

int state_remove(const char *name, const char *microvm_id, struct err *e)
{
	char path[PATH_MAX];
	AUTO_JSN *tree = NULL;
	AUTO_FD lock = -1;
	const char *has;
	cJSON *all, *o;
	int r = state_file_path(&file, path, e);

	if (r == 0 && access(path, F_OK) < 0 && errno == ENOENT)
		return 0;
	if (r == 0)
		r = state_file_edit(&file, &lock, &tree, e);
	if (r < 0)
		return r;
	all = cJSON_GetObjectItemCaseSensitive(tree, "sandboxes");
	o = cJSON_GetObjectItemCaseSensitive(all, name);
	has = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(o, "microvm_id"));
	if (!o || (microvm_id && (!has || strcmp(has, microvm_id) != 0)))
		return 0;
	cJSON_Delete(cJSON_DetachItemViaPointer(all, o));
	return state_file_save(&file, tree, e);
}

/* --- names --- */

static bool is_alnum(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

int state_check_name(const char *name, struct err *e)
{
	size_t n = strlen(name);
	bool ok = n > 0 && is_alnum(name[0]);

	if (n > 128) {
		(void)err_set(e, ERR_USAGE, 0, "the name has %zu bytes, at most 128 are allowed",
			      n);
		return -EINVAL;
	}
	for (size_t i = 0; ok && i < n; i++)
		ok = is_alnum(name[i]) || strchr("._-", name[i]);
	if (ok)
		return 0;
	(void)err_set(e, ERR_USAGE, 0,
		      "'%s' is not a name: letters, digits, '.', '_' and '-', beginning with a "
		      "letter or a digit",
		      name);
	return -EINVAL;
}
