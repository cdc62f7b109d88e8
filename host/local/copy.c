/* SPDX-License-Identifier: Apache-2.0 */
#include "host/local/copy.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "host/local/client.h"
#include "host/local/expiry.h"
#include "host/local/saved.h"
#include "host/local/template.h"
#include "lib/fd.h"
#include "lib/str.h"

#define LOCK_NS 5000000000LL

static int take_running(struct copy *c, const char *mark, unsigned flags, int64_t deadline_ns,
			struct err *e)
{
	char request[200];
	int r = str_format(c->name, sizeof(c->name), BRANCH "-%s", mark);

	if (r == 0)
		r = str_format(request, sizeof(request),
			       "{\"op\":\"branch\",\"name\":\"%s\",\"sync\":%s,\"disk_only\":%s}",
			       c->name, flags & COPY_SYNC ? "true" : "false",
			       flags & COPY_DISK ? "true" : "false");
	if (r < 0)
		return err_set(e, ERR_INTERNAL, -r, "the name of the copy");
	c->own_disk = true;
	return client_ask(c->dirfd, request, deadline_ns, NULL, e);
}

static int take_still(struct copy *c, unsigned flags, struct err *e)
{
	int r = vmdir_lock(c->dirfd, LOCK_NS, &c->lock);

	if (r < 0)
		return err_set(e, ERR_CONFLICT, -r, "another process has the sandbox");
	if (!saved_is_there(c->dirfd) && !(flags & COPY_DISK)) {
		(void)err_set(e, ERR_CONFLICT, 0,
			      "the sandbox has ended: there is nothing running to copy");
		return -ENOTCONN;
	}
	return str_format(c->name, sizeof(c->name), SAVED);
}

int copy_take(struct copy *c, const char *id, const char *mark, unsigned flags, int64_t deadline_ns,
	      struct err *e)
{
	char path[LOCAL_PATH_MAX];
	struct vm_status status;
	bool running;
	int r;

	*c = (struct copy){ .dirfd = -1, .lock = -1 };
	vmdir_making(); /* nobody collects the copy meanwhile */
	r = vmdir_open(id, &c->dirfd, e);
	if (r == 0)
		r = vmdir_path(id, path, e);
	if (r == 0)
		r = vmdir_read_config(c->dirfd, &c->config, e);
	if (r < 0)
		return r;
	expiry_enforce(c->dirfd);
	running = vmdir_is_locked(c->dirfd);
	r = running ? take_running(c, mark, flags, deadline_ns, e) : take_still(c, flags, e);
	if (r < 0)
		return r;
	r = running ? str_format(c->disk, sizeof(c->disk), "%s/%s/disk.qcow2", path, c->name)
		    : str_format(c->disk, sizeof(c->disk), "%s/disk.qcow2", path);
	if (r < 0)
		return err_set(e, ERR_INVALID, -r, "%s", path);
	vmdir_read_status(c->dirfd, &status);
	memcpy(c->accel, status.accel, sizeof(c->accel));
	c->based = faccessat(c->dirfd, TEMPLATE_RAM, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
	c->from = (struct vm_source){ .disk = c->disk,
				      .saved = flags & COPY_DISK ? NULL : c->name,
				      .dirfd = c->dirfd };
	return 0;
}

void copy_drop(struct copy *c)
{
	if (str_starts(c->name, BRANCH "-"))
		ignore_result(fd_remove_tree_at(c->dirfd, c->name)); /* else its next start does */
	vmdir_made();
	vm_config_done(&c->config);
	fd_close(&c->lock);
	fd_close(&c->dirfd);
}
