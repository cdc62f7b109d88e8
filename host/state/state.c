/* SPDX-License-Identifier: Apache-2.0 */
#include "host/state/state.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "lib/fd.h"
#include "lib/jsn.h"
#include "lib/loop.h"
#include "lib/pretty.h"
#include "lib/str.h"

/*
 * The file is small and shared with the Python project, so each change reads it whole, edits the
 * tree, and puts a new file in its place. What the tree holds beyond the five keys is carried along
 * untouched: other keys at the top, other keys of a record.
 *
 * Readers take no lock: the rename is atomic. Writers hold flock(2) on ".lock" beside the file, not
 * on the file itself, because the rename would leave the next writer with a lock on a file that is
 * no longer there. The lock dies with its process. A writer that cannot have it within LOCK_WAIT_NS
 * says so rather than wait for ever.
 */

#define STATE_FILE_MAX (16U << 20)
#define LOCK_WAIT_NS   (10LL * 1000000000)
#define LOCK_STEP_NS   (10L * 1000000)

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

/* The file's path into OUT. */
static int state_path(char out[static PATH_MAX], struct err *e)
{
	const char *file = getenv("AGENT_SANDBOX_STATE"), *home;
	int r;

	if (file && *file) {
		r = str_format(out, PATH_MAX, "%s", file);
	} else {
		home = getenv("HOME");
		if (!home || home[0] != '/')
			return err_set(e, ERR_INVALID, EINVAL,
				       "cannot tell where the state is kept: HOME is %s",
				       home ? "not an absolute path" : "not set");
		r = str_format(out, PATH_MAX, "%s/.agent_sandbox/state.json", home);
	}
	return r < 0 ? err_set(e, ERR_INVALID, ENAMETOOLONG, "the path of the state file") : 0;
}

int state_dir(const char **ret, struct err *e)
{
	static char dir[PATH_MAX];
	char *slash;
	int r = state_path(dir, e);

	if (r < 0)
		return r;
	slash = strrchr(dir, '/');
	if (!slash)
		(void)snprintf(dir, sizeof(dir), ".");
	else
		slash[slash == dir ? 1 : 0] = '\0';
	r = fd_mkdirs(dir, 0700);
	if (r < 0)
		return err_set(e, ERR_IO, -r, "cannot make the folder %s", dir);
	*ret = dir;
	return 0;
}

/* --- reading --- */

static int bad_file(struct err *e, const char *path, const char *what)
{
	return err_set(e, ERR_INVALID, 0, "the state file %s is damaged: %s", path, what);
}

static bool is_text_or_null(const cJSON *o, const char *key)
{
	const cJSON *v = cJSON_GetObjectItemCaseSensitive(o, key);

	return !v || cJSON_IsNull(v) || cJSON_IsString(v);
}

static int check_tree(const cJSON *tree, const char *path, struct err *e)
{
	const cJSON *all = cJSON_GetObjectItemCaseSensitive(tree, "sandboxes"), *r;

	if (!cJSON_IsObject(tree))
		return bad_file(e, path, "it is not a JSON object");
	if (all && !cJSON_IsObject(all))
		return bad_file(e, path, "\"sandboxes\" is not an object");
	cJSON_ArrayForEach(r, all)
	{
		const cJSON *id = cJSON_GetObjectItemCaseSensitive(r, "microvm_id");

		if (!cJSON_IsObject(r) || !cJSON_IsString(id))
			return bad_file(e, path, "a record has no \"microvm_id\"");
		for (size_t i = 0; i < ARRAY_LEN(record_keys); i++)
			if (!is_text_or_null(r, record_keys[i]))
				return bad_file(e, path, "a record's value is not a string");
	}
	return 0;
}

/* The tree of PATH, {} when there is no file. The caller frees *RET. */
static int load(const char *path, cJSON **ret, struct err *e)
{
	AUTO_BUF b;
	AUTO_JSN *tree = NULL;
	struct err why = ERR_INIT;
	int r;

	buf_init(&b, STATE_FILE_MAX);
	r = fd_read_file(AT_FDCWD, path, &b);
	if (r == -ENOENT || r == -ENOTDIR) {
		*ret = cJSON_CreateObject();
		return *ret ? 0 : err_set(e, ERR_INTERNAL, ENOMEM, "reading %s", path);
	}
	if (r < 0)
		return err_set(e, ERR_IO, -r, "cannot read the state file %s", path);
	tree = jsn_parse(b.p ? b.p : "", b.len, &why);
	if (!tree)
		return bad_file(e, path, why.msg);
	r = check_tree(tree, path, e);
	if (r < 0)
		return r;
	*ret = tree;
	tree = NULL;
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
	int r = state_path(path, e);

	if (r == 0)
		r = load(path, &tree, e);
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
	int r = state_path(path, e);

	if (r == 0)
		r = load(path, &tree, e);
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

static int take_lock(int *ret_fd, struct err *e)
{
	const char *dir;
	char path[PATH_MAX];
	AUTO_FD fd = -1;
	int64_t until = loop_now() + LOCK_WAIT_NS;
	int r = state_dir(&dir, e);

	if (r < 0)
		return r;
	if (str_format(path, sizeof(path), "%s/.lock", dir) < 0)
		return err_set(e, ERR_INVALID, ENAMETOOLONG, "the path of the state's lock");
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return err_set(e, ERR_IO, errno, "cannot open %s", path);
	while (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		const struct timespec step = { 0, LOCK_STEP_NS };

		if (errno != EWOULDBLOCK && errno != EINTR)
			return err_set(e, ERR_IO, errno, "cannot lock %s", path);
		if (loop_now() > until)
			return err_set(e, ERR_TIMEOUT, 0,
				       "another process has held the lock %s for 10 seconds", path);
		(void)nanosleep(&step, NULL);
	}
	*ret_fd = fd_take(&fd);
	return 0;
}

static int save(const char *path, const cJSON *tree, struct err *e)
{
	AUTO_BUF b;
	int r;

	buf_init(&b, STATE_FILE_MAX);
	r = pretty_json(tree, &b);
	if (r == 0)
		r = fd_replace_file(path, b.p, b.len, 0600);
	return r < 0 ? err_set(e, ERR_IO, -r, "cannot write the state file %s", path) : 0;
}

static bool add_text(cJSON *o, const char *key, const char *s)
{
	return s ? cJSON_AddStringToObject(o, key, s) : cJSON_AddNullToObject(o, key);
}

/* Puts R into TREE; it has no record of that name. */
static int insert(cJSON *tree, const struct state_record *r)
{
	cJSON *all = cJSON_GetObjectItemCaseSensitive(tree, "sandboxes");
	cJSON *o;

	if (!all)
		all = cJSON_AddObjectToObject(tree, "sandboxes");
	o = all ? cJSON_AddObjectToObject(all, r->name) : NULL;
	return o && add_text(o, "name", r->name) && add_text(o, "microvm_id", r->microvm_id) &&
			       add_text(o, "endpoint", r->endpoint) &&
			       add_text(o, "image_arn", r->image_arn) &&
			       add_text(o, "region", r->region)
		       ? 0
		       : -ENOMEM;
}

int state_add(const struct state_record *r, struct err *e)
{
	char path[PATH_MAX];
	AUTO_JSN *tree = NULL;
	AUTO_FD lock = -1;
	const cJSON *all;
	int rc = state_check_name(r->name, e);

	if (rc == 0)
		rc = state_path(path, e);
	if (rc == 0)
		rc = take_lock(&lock, e);
	if (rc == 0)
		rc = load(path, &tree, e);
	if (rc < 0)
		return rc;
	all = cJSON_GetObjectItemCaseSensitive(tree, "sandboxes");
	if (cJSON_GetObjectItemCaseSensitive(all, r->name)) {
		(void)err_set(e, ERR_EXISTS, 0, "there is a sandbox named '%s' already", r->name);
		return -EEXIST;
	}
	rc = insert(tree, r);
	return rc < 0 ? err_set(e, ERR_INTERNAL, -rc, "adding '%s'", r->name) : save(path, tree, e);
}

int state_remove(const char *name, const char *microvm_id, struct err *e)
{
	char path[PATH_MAX];
	AUTO_JSN *tree = NULL;
	AUTO_FD lock = -1;
	const char *has;
	cJSON *all, *o;
	int r = state_path(path, e);

	if (r == 0 && access(path, F_OK) < 0 && errno == ENOENT)
		return 0;
	if (r == 0)
		r = take_lock(&lock, e);
	if (r == 0)
		r = load(path, &tree, e);
	if (r < 0)
		return r;
	all = cJSON_GetObjectItemCaseSensitive(tree, "sandboxes");
	o = cJSON_GetObjectItemCaseSensitive(all, name);
	has = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(o, "microvm_id"));
	if (!o || (microvm_id && (!has || strcmp(has, microvm_id) != 0)))
		return 0;
	cJSON_Delete(cJSON_DetachItemViaPointer(all, o));
	return save(path, tree, e);
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
