/* SPDX-License-Identifier: Apache-2.0 */
#include "host/local/children.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "host/local/copy.h"
#include "host/local/saved.h"
#include "host/local/start.h"
#include "lib/fd.h"
#include "lib/str.h"

/*
 * A branch: each child is made as a suspended sandbox whose memory is a hard link to a copy of the source (copy.h), and
 * started like one.
 */

/* The folder of one child: from here on a sandbox that does not run, and on the disk. It is locked from its first moment
 * until its supervisor has it. */
static int make(const struct vm_config *c, const struct vm_source *from,
		struct sandbox_child *child, struct err *e)
{
	struct vm_config config = *c; /* env is borrowed */
	AUTO_FD dirfd = -1;
	AUTO_FD lock = -1;
	int r = str_format(config.id, sizeof(config.id), "%s", child->id);

	if (r == 0)
		r = str_format(config.name, sizeof(config.name), "%s", child->name);
	if (r < 0)
		return err_set(e, ERR_INVALID, -r, "the name of the new sandbox");
	config.ephemeral = false;
	config.created_s = time(NULL);
	r = vmdir_create(&config, from, &lock, e);
	if (r < 0)
		return r;
	r = vmdir_open(child->id, &dirfd, e);
	if (r == 0 && from->saved)
		r = saved_sync(dirfd, SAVED);
	if (r == 0)
		r = vmdir_keep(dirfd);
	if (r < 0)
		return err_set(e, ERR_IO, -r, "the new sandbox");
	child->lock = fd_take(&lock);
	return 0;
}

void children_fill(const struct vm_config *config, const struct vm_source *from,
		   struct sandbox_child *children, size_t n)
{
	for (size_t i = 0; i < n; i++)
		children[i].result = make(config, from, &children[i], &children[i].err);
	vmdir_made();
}

void children_start(struct sandbox_child *children, size_t n, const struct progress *p,
		    int64_t deadline_ns)
{
	for (size_t i = 0; i < n; i++) {
		struct sandbox_child *child = &children[i];

		if (child->result == 0)
			child->result =
				start_locked(child->id, child->lock, p, deadline_ns, &child->err);
		if (child->result < 0) /* it may run all the same; the first failure is told */
			ignore_result(backend_local.remove(child->id, NULL));
	}
}

int children_make(const char *id, struct sandbox_child *children, size_t n,
		  const struct progress *p, int64_t deadline_ns, struct err *e)
{
	struct copy *c = n ? calloc(1, sizeof(*c)) : NULL;
	int r;

	if (!c)
		return err_set(e, ERR_INTERNAL, n ? ENOMEM : EINVAL, "the copies");
	r = copy_take(c, id, children[0].id, 0, deadline_ns, e);
	if (r == 0)
		children_fill(&c->config, &c->from, children, n);
	copy_drop(c);
	free(c);
	if (r == 0)
		children_start(children, n, p, deadline_ns);
	return r;
}
