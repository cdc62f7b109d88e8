/* SPDX-License-Identifier: Apache-2.0 */
#include "host/infra/record.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "host/state/file.h"
#include "lib/fd.h"
#include "lib/str.h"

const struct infra_kind infra_kinds[RES_COUNT] = {
	[RES_ROLE] = { "role", "iam-role", "execution role" },
	[RES_BUILD_ROLE] = { "build_role", "iam-role", "build role" },
	[RES_BUCKET] = { "bucket", "s3-bucket", "bucket" },
	[RES_OBJECT] = { "guest_object", "s3-object", "guest folder" },
	[RES_IMAGE] = { "image", "microvm-image", "image" },
	[RES_GROUP] = { "security_group", "ec2-sg", "security group" },
	[RES_OPERATOR] = { "network_operator_role", "iam-role", "operator role" },
	[RES_CONNECTOR] = { "network_connector", "network-connector", "network connector" },
};

static int check_tree(const cJSON *tree, const char *path, struct err *e);

static const struct state_file file = { .variable = "AGENT_SANDBOX_INFRA_STATE",
					.name = "infra-state.json",
					.lock = ".infra-lock",
					.what = "infrastructure state file",
					.check = check_tree };

static bool is_object_or_nothing(const cJSON *o, const char *name)
{
	const cJSON *v = jsn_get(o, name);

	return !v || cJSON_IsObject(v);
}

static int check_stack(const cJSON *s, const char *path, struct err *e)
{
	const cJSON *r;

	if (!cJSON_IsObject(s) || !is_object_or_nothing(s, "resources") ||
	    !is_object_or_nothing(s, "outputs"))
		return state_file_bad(&file, path, "a stack is not as it should be", e);
	cJSON_ArrayForEach(r, jsn_get(s, "resources")) if (
		!cJSON_IsObject(r) || !cJSON_IsString(jsn_get(r, "id")) ||
		!cJSON_IsBool(jsn_get(r, "managed")) ||
		!is_object_or_nothing(
			r, "attrs")) return state_file_bad(&file, path,
							   "a resource is not as it should be", e);
	return 0;
}

static int check_tree(const cJSON *tree, const char *path, struct err *e)
{
	const cJSON *s;
	int r = 0;

	if (!cJSON_IsObject(tree) || !is_object_or_nothing(tree, "stacks"))
		return state_file_bad(&file, path, "it has no stacks", e);
	cJSON_ArrayForEach(s, jsn_get(tree, "stacks")) if (r == 0) r = check_stack(s, path, e);
	return r;
}

void infra_record_done(struct infra_record *r)
{
	free(r->id);
	cJSON_Delete(r->attrs);
	*r = (struct infra_record){ .id = NULL };
}

int infra_record_get(const char *key, enum infra_res res, struct infra_record *r, struct err *e)
{
	AUTO_JSN *tree = NULL;
	const cJSON *o, *attrs;
	int rc = state_file_load(&file, &tree, e);

	*r = (struct infra_record){ .id = NULL };
	if (rc < 0)
		return rc;
	o = jsn_get(jsn_get(jsn_get(jsn_get(tree, "stacks"), key), "resources"),
		    infra_kinds[res].logical);
	attrs = jsn_get(o, "attrs");
	r->attrs = attrs ? cJSON_Duplicate(attrs, true) : cJSON_CreateObject();
	r->managed = cJSON_IsTrue(jsn_get(o, "managed"));
	r->creating = cJSON_IsTrue(jsn_get(attrs, "creating"));
	if (o)
		r->id = strdup(jsn_get(o, "id")->valuestring);
	if (r->attrs && (!o || r->id))
		return 0;
	infra_record_done(r);
	return err_set(e, ERR_INTERNAL, ENOMEM, "reading what is recorded of %s", key);
}

/* --- changing --- */

/* The member NAME of O, made when it is missing; NULL when memory runs out. */
static cJSON *object_in(cJSON *o, const char *name)
{
	cJSON *v = o ? cJSON_GetObjectItemCaseSensitive(o, name) : NULL;

	return v || !o ? v : cJSON_AddObjectToObject(o, name);
}

/* The entry of KEY, or NULL when memory runs out. */
static cJSON *stack_of(cJSON *tree, const char *key)
{
	return object_in(object_in(tree, "stacks"), key);
}

static bool fill(cJSON *o, enum infra_res res, const struct infra_record *r)
{
	cJSON *attrs;
	const cJSON *a;

	if (!state_file_put(o, "kind", cJSON_CreateString(infra_kinds[res].kind)) ||
	    !state_file_put(o, "id", cJSON_CreateString(r->id)) ||
	    !state_file_put(o, "managed", cJSON_CreateBool(r->managed)))
		return false;
	attrs = object_in(o, "attrs");
	cJSON_ArrayForEach(a, r->attrs) if (!attrs ||
					    !state_file_put(attrs, a->string,
							    cJSON_Duplicate(a, true))) return false;
	cJSON_DeleteItemFromObjectCaseSensitive(attrs, "creating");
	return attrs && (!r->creating || jsn_add_bool(attrs, "creating", true));
}

/* Reads under the lock, lets FN change the stack's entry, and writes. */
static int change(const char *key, bool (*fn)(cJSON *tree, const char *key, const void *arg),
		  const void *arg, struct err *e)
{
	AUTO_FD lock = -1;
	AUTO_JSN *tree = NULL;
	int r = state_file_edit(&file, &lock, &tree, e);

	if (r < 0)
		return r;
	if (!fn(tree, key, arg))
		return err_set(e, ERR_INTERNAL, ENOMEM, "recording %s", key);
	return state_file_save(&file, tree, e);
}

struct put {
	enum infra_res res;
	const struct infra_record *r;
};

static bool do_put(cJSON *tree, const char *key, const void *arg)
{
	const struct put *p = arg;
	cJSON *s = stack_of(tree, key), *all = object_in(s, "resources");
	cJSON *o = object_in(all, infra_kinds[p->res].logical);

	return o && object_in(s, "outputs") && fill(o, p->res, p->r);
}

int infra_record_put(const char *key, enum infra_res res, const struct infra_record *r,
		     struct err *e)
{
	const struct put p = { res, r };

	return change(key, do_put, &p, e);
}

static bool do_drop(cJSON *tree, const char *key, const void *arg)
{
	cJSON *s = cJSON_GetObjectItemCaseSensitive(tree, "stacks");

	s = cJSON_GetObjectItemCaseSensitive(cJSON_GetObjectItemCaseSensitive(s, key), "resources");
	cJSON_DeleteItemFromObjectCaseSensitive(s,
						infra_kinds[*(const enum infra_res *)arg].logical);
	return true;
}

int infra_record_drop(const char *key, enum infra_res res, struct err *e)
{
	return change(key, do_drop, &res, e);
}

static bool do_clear(cJSON *tree, const char *key, const void *arg)
{
	cJSON *all = cJSON_GetObjectItemCaseSensitive(tree, "stacks");
	const cJSON *left = jsn_get(jsn_get(all, key), "resources");

	(void)arg;
	if (!left || !left->child)
		cJSON_DeleteItemFromObjectCaseSensitive(all, key);
	return true;
}

int infra_record_clear(const char *key, struct err *e)
{
	return change(key, do_clear, NULL, e);
}

/* --- outputs --- */

int infra_outputs_get(const char *key, cJSON **ret, struct err *e)
{
	AUTO_JSN *tree = NULL;
	const cJSON *o;
	int r = state_file_load(&file, &tree, e);

	if (r < 0)
		return r;
	o = jsn_get(jsn_get(jsn_get(tree, "stacks"), key), "outputs");
	*ret = o ? cJSON_Duplicate(o, true) : cJSON_CreateObject();
	return *ret ? 0 : err_set(e, ERR_INTERNAL, ENOMEM, "reading the outputs of %s", key);
}

static bool do_outputs(cJSON *tree, const char *key, const void *arg)
{
	cJSON *s = stack_of(tree, key);

	return s && object_in(s, "resources") &&
	       state_file_put(s, "outputs", cJSON_Duplicate(arg, true));
}

int infra_outputs_put(const char *key, const cJSON *outputs, struct err *e)
{
	return change(key, do_outputs, outputs, e);
}

int infra_outputs_each(int (*fn)(void *arg, const char *key, const cJSON *outputs), void *arg,
		       struct err *e)
{
	AUTO_JSN *tree = NULL, *none = cJSON_CreateObject();
	const cJSON *s;
	int r = state_file_load(&file, &tree, e);

	cJSON_ArrayForEach(s, jsn_get(tree, "stacks"))
	{
		const cJSON *o = jsn_get(s, "outputs");

		if (r == 0)
			r = fn(arg, s->string, o ? o : none);
	}
	return r;
}

int infra_stack_lock(const char *key, int *ret_fd, struct err *e)
{
	char path[PATH_MAX], name[INFRA_KEY_MAX + 1];
	AUTO_FD fd = -1;
	size_t n;
	int r = state_file_dir(&file, path, e);

	if (r < 0)
		return r;
	n = strlen(path);
	if (str_format(name, sizeof(name), "%s", key) < 0)
		return err_set(e, ERR_INVALID, ENAMETOOLONG, "%s", key);
	for (char *c = strchr(name, '/'); c; c = strchr(c, '/'))
		*c = '+'; /* in no name of a stack */
	if (str_format(path + n, sizeof(path) - n, "/.infra-%s.lock", name) < 0)
		return err_set(e, ERR_INVALID, ENAMETOOLONG, "%s", path);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return err_set(e, ERR_IO, errno, "cannot open %s", path);
	if (flock(fd, LOCK_EX | LOCK_NB) < 0)
		return err_set(e, ERR_CONFLICT, 0, "another asb infra is at work on %s", key);
	*ret_fd = fd_take(&fd);
	return 0;
}
