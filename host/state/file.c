/* SPDX-License-Identifier: Apache-2.0 */
#include "host/state/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "lib/buf.h"
#include "lib/fd.h"
#include "lib/loop.h"
#include "lib/pretty.h"
#include "lib/str.h"

/*
 * Readers take no lock: the rename is atomic. Writers hold flock(2) on a file beside it, not on the file itself, because the rename
 * would leave the next writer with a lock on a file that is no longer there. The lock dies with its process. A writer that cannot
 * have it within LOCK_WAIT_NS says so rather than wait for ever.
 */

#define STATE_FILE_MAX (16U << 20)
#define LOCK_WAIT_NS   (10LL * 1000000000)
#define LOCK_STEP_NS   (10L * 1000000)

int state_file_path(const struct state_file *f, char ret[static PATH_MAX], struct err *e)
{
	const char *file = getenv(f->variable), *home;
	int r;

	if (file && *file) {
		r = str_format(ret, PATH_MAX, "%s", file);
	} else {
		home = getenv("HOME");
		if (!home || home[0] != '/')
			return err_set(e, ERR_INVALID, EINVAL,
				       "cannot tell where the state is kept: HOME is %s",
				       home ? "not an absolute path" : "not set");
		r = str_format(ret, PATH_MAX, "%s/.agent_sandbox/%s", home, f->name);
	}
	return r < 0 ? err_set(e, ERR_INVALID, ENAMETOOLONG, "the path of the %s", f->what) : 0;
}

int state_file_dir(const struct state_file *f, char ret[static PATH_MAX], struct err *e)
{
	char *slash;
	int r = state_file_path(f, ret, e);

	if (r < 0)
		return r;
	slash = strrchr(ret, '/');
	if (!slash)
		(void)snprintf(ret, PATH_MAX, ".");
	else
		slash[slash == ret ? 1 : 0] = '\0';
	r = fd_mkdirs(ret, 0700);
	return r < 0 ? err_set(e, ERR_IO, -r, "cannot make the folder %s", ret) : 0;
}

int state_file_bad(const struct state_file *f, const char *path, const char *why, struct err *e)
{
	return err_set(e, ERR_INVALID, 0, "the %s %s is damaged: %s", f->what, path, why);
}

int state_file_load(const struct state_file *f, cJSON **ret, struct err *e)
{
	char path[PATH_MAX];
	AUTO_BUF b;
	AUTO_JSN *tree = NULL;
	struct err why = ERR_INIT;
	int r;

	buf_init(&b, STATE_FILE_MAX);
	r = state_file_path(f, path, e);
	if (r < 0)
		return r;
	r = fd_read_file(AT_FDCWD, path, &b);
	if (r == -ENOENT || r == -ENOTDIR) {
		*ret = cJSON_CreateObject();
		return *ret ? 0 : err_set(e, ERR_INTERNAL, ENOMEM, "reading %s", path);
	}
	if (r < 0)
		return err_set(e, ERR_IO, -r, "cannot read the %s %s", f->what, path);
	tree = jsn_parse(b.p ? b.p : "", b.len, &why);
	if (!tree)
		return state_file_bad(f, path, why.msg, e);
	r = f->check(tree, path, e);
	if (r < 0)
		return r;
	*ret = tree;
	tree = NULL;
	return 0;
}

static int take_lock(const struct state_file *f, int *ret_fd, struct err *e)
{
	char path[PATH_MAX];
	AUTO_FD fd = -1;
	int64_t until = loop_now() + LOCK_WAIT_NS;
	size_t n;
	int r = state_file_dir(f, path, e);

	if (r < 0)
		return r;
	n = strlen(path);
	if (str_format(path + n, sizeof(path) - n, "/%s", f->lock) < 0)
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

int state_file_edit(const struct state_file *f, int *ret_fd, cJSON **ret, struct err *e)
{
	AUTO_FD fd = -1;
	int r = take_lock(f, &fd, e);

	if (r == 0)
		r = state_file_load(f, ret, e);
	if (r == 0)
		*ret_fd = fd_take(&fd);
	return r;
}

bool state_file_put(cJSON *o, const char *name, cJSON *v)
{
	bool there = jsn_get(o, name);

	if (v && (there ? cJSON_ReplaceItemInObjectCaseSensitive(o, name, v)
			: cJSON_AddItemToObject(o, name, v)))
		return true;
	cJSON_Delete(v);
	return false;
}

int state_file_save(const struct state_file *f, const cJSON *tree, struct err *e)
{
	char path[PATH_MAX];
	AUTO_BUF b;
	int r;

	buf_init(&b, STATE_FILE_MAX);
	r = state_file_path(f, path, e);
	if (r < 0)
		return r;
	r = pretty_json(tree, &b);
	if (r == 0) {
		fd_replace_collect(path); /* the caller has the lock */
		r = fd_replace_file(path, b.p, b.len, 0600);
	}
	return r < 0 ? err_set(e, ERR_IO, -r, "cannot write the %s %s", f->what, path) : 0;
}
