/* SPDX-License-Identifier: Apache-2.0 */
#include "host/local/children.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "host/local/client.h"
#include "host/local/saved.h"
#include "host/local/start.h"
#include "host/local/vmdir.h"
#include "lib/fd.h"
#include "lib/loop.h"
#include "lib/str.h"

/*
 * A branch: the source's supervisor writes a copy of it into its own folder (op "branch"); each child is made as a
 * suspended sandbox whose memory is a hard link to that copy, and started like one. A source that is suspended is
 * such a copy already; its lock keeps it so.
 */

#define LOCK_NS 5000000000LL

struct copy {
	struct vm_config config;
	char name[80];		   /* of the folder with memory and devices, below the source's */
	char disk[LOCAL_PATH_MAX]; /* path */
	int dirfd, lock;
};

static int take_running(struct copy *c, const char *mark, int64_t deadline_ns, struct err *e)
{
	char request[160];
	int r = str_format(c->name, sizeof(c->name), BRANCH "-%s", mark);

	if (r == 0)
		r = str_format(request, sizeof(request), "{\"op\":\"branch\",\"name\":\"%s\"}",
			       c->name);
	if (r < 0)
		return err_set(e, ERR_INTERNAL, -r, "the name of the copy");
	return client_ask(c->dirfd, request, deadline_ns, NULL, e);
}

static int take_suspended(struct copy *c, struct err *e)
{
	int r = vmdir_lock(c->dirfd, LOCK_NS, &c->lock);

	if (r < 0)
		return err_set(e, ERR_CONFLICT, -r, "another process has the sandbox");
	if (!saved_is_there(c->dirfd)) {
		(void)err_set(e, ERR_CONFLICT, 0,
			      "the sandbox has ended: there is nothing running to copy");
		return -ENOTCONN;
	}
	return str_format(c->name, sizeof(c->name), SAVED);
}

static int take(struct copy *c, const char *id, const char *mark, int64_t deadline_ns,
		struct err *e)
{
	char path[LOCAL_PATH_MAX];
	bool running;
	int r = vmdir_open(id, &c->dirfd, e);

	if (r == 0)
		r = vmdir_path(id, path, e);
	if (r == 0)
		r = vmdir_read_config(c->dirfd, &c->config, e);
	if (r < 0)
		return r;
	running = vmdir_is_locked(c->dirfd);
	r = running ? take_running(c, mark, deadline_ns, e) : take_suspended(c, e);
	if (r == 0)
		r = running ? str_format(c->disk, sizeof(c->disk), "%s/%s/disk.qcow2", path,
					 c->name)
			    : str_format(c->disk, sizeof(c->disk), "%s/disk.qcow2", path);
	return r;
}

static void drop(struct copy *c)
{
	if (str_starts(c->name, BRANCH "-"))
		ignore_result(fd_remove_tree_at(c->dirfd, c->name)); /* else its next start does */
	vm_config_done(&c->config);
	fd_close(&c->lock);
	fd_close(&c->dirfd);
}

/* The folder of one child: from here on a suspended sandbox. */
static int make(const struct copy *c, const struct sandbox_child *child, struct err *e)
{
	struct vm_config config = c->config; /* env is borrowed */
	const struct vm_source from = { .disk = c->disk, .saved = c->name, .dirfd = c->dirfd };
	AUTO_FD dirfd = -1;
	AUTO_FD lock = -1;
	int r = str_format(config.id, sizeof(config.id), "%s", child->id);

	if (r == 0)
		r = str_format(config.name, sizeof(config.name), "%s", child->name);
	if (r < 0)
		return err_set(e, ERR_INVALID, -r, "the name of the new sandbox");
	config.ephemeral = false;
	config.created_s = time(NULL);
	r = vmdir_create(&config, &from, &lock, e);
	if (r < 0)
		return r;
	r = vmdir_open(child->id, &dirfd, e);
	if (r == 0)
		r = vmdir_keep(dirfd);
	return r < 0 ? err_set(e, ERR_IO, -r, "the new sandbox") : 0;
}

int children_make(const char *id, struct sandbox_child *children, size_t n,
		  const struct progress *p, int64_t deadline_ns, struct err *e)
{
	struct copy *c = calloc(1, sizeof(*c));
	int r;

	if (!c || n == 0) {
		free(c);
		return err_set(e, ERR_INTERNAL, c ? EINVAL : ENOMEM, "the copies");
	}
	c->dirfd = c->lock = -1;
	r = take(c, id, children[0].id, deadline_ns, e);
	for (size_t i = 0; i < n && r == 0; i++)
		children[i].result = make(c, &children[i], &children[i].err);
	drop(c);
	free(c);
	for (size_t i = 0; i < n && r == 0; i++) {
		struct sandbox_child *child = &children[i];

		if (child->result == 0)
			child->result = start_again(child->id, p, deadline_ns, &child->err);
		if (child->result < 0)
			ignore_result(
				vmdir_remove(child->id, NULL)); /* the first failure is told */
	}
	return r;
}
