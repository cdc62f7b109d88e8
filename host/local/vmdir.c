/* SPDX-License-Identifier: Apache-2.0 */
#include "host/local/vmdir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "host/local/expiry.h"
#include "host/local/saved.h"
#include "host/local/template.h"
#include "host/local/vmfile.h"
#include "host/state/state.h"
#include "lib/fd.h"
#include "lib/loop.h"
#include "lib/str.h"

/*
 * No race with a create under way: the folder is made as ".new-<id>", its lock is taken, and only
 * then is it filled and renamed. So a folder with its proper name that nobody holds belongs to no
 * living process. A hidden one may for an instant be there without its lock; collect.c tells what
 * spares it then.
 */

#define LOCK_STEP 5000000L /* ns */

int vmdir_base(char ret[LOCAL_PATH_MAX], struct err *e)
{
	static char base[LOCAL_PATH_MAX]; /* made once in a process: `asb ls` asks for each VM */
	const char *state;
	int r;

	if (!base[0]) {
		r = state_dir(&state, e);
		if (r < 0)
			return r;
		r = str_format(ret, LOCAL_PATH_MAX, "%s/local", state);
		if (r == 0 && mkdir(ret, 0700) < 0 && errno != EEXIST)
			r = -errno;
		if (r < 0)
			return err_set(e, ERR_IO, -r, "%s/local", state);
		memcpy(base, ret, sizeof(base));
	}
	memcpy(ret, base, sizeof(base));
	return 0;
}

int vmdir_part(const char *part, char ret[LOCAL_PATH_MAX], struct err *e)
{
	char base[LOCAL_PATH_MAX];
	int r = vmdir_base(base, e);

	if (r < 0)
		return r;
	r = str_format(ret, LOCAL_PATH_MAX, "%s/%s", base, part);
	if (r == 0 && mkdir(ret, 0700) < 0 && errno != EEXIST)
		r = -errno;
	return r < 0 ? err_set(e, ERR_IO, -r, "%s/%s", base, part) : 0;
}

int vmdir_below(const char *part, const char *prefix, const char *name, char ret[LOCAL_PATH_MAX],
		struct err *e)
{
	char root[LOCAL_PATH_MAX];
	int r = vmdir_part(part, root, e);

	if (r < 0)
		return r;
	r = str_format(ret, LOCAL_PATH_MAX, "%s/%s%s", root, prefix, name);
	return r < 0 ? err_set(e, ERR_INVALID, -r, "%s", root) : 0;
}

int vmdir_root(char ret[LOCAL_PATH_MAX], struct err *e)
{
	char base[LOCAL_PATH_MAX];
	int r = vmdir_base(base, e);

	if (r < 0)
		return r;
	r = str_format(ret, LOCAL_PATH_MAX, "%s/" VMDIR_ROOT, base);
	return r < 0 ? err_set(e, ERR_INVALID, -r, "%s", base) : 0;
}

int vmdir_present(struct err *e)
{
	char root[LOCAL_PATH_MAX];
	int r = vmdir_root(root, e);

	if (r < 0 || access(root, F_OK) == 0)
		return r;
	if (errno != ENOENT)
		return err_set(e, ERR_IO, errno, "%s", root);
	(void)err_set(e, ERR_NOT_FOUND, 0,
		      "%s is missing although sandboxes in it are recorded: is a disk not mounted? "
		      "(`asb rm NAME` forgets one, and without any it is made anew)",
		      root);
	return -ENOENT;
}

static int join(const char *prefix, const char *id, char ret[LOCAL_PATH_MAX], struct err *e)
{
	char root[LOCAL_PATH_MAX];
	int r;

	if (!vmdir_is_id(id)) {
		(void)err_set(e, ERR_INVALID, 0, "'%.80s' is not the id of a local sandbox", id);
		return -EINVAL;
	}
	r = vmdir_root(root, e);
	if (r < 0)
		return r;
	r = str_format(ret, LOCAL_PATH_MAX, "%s/%s%s", root, prefix, id);
	return r < 0 ? err_set(e, ERR_INVALID, -r, "%s", root) : 0;
}

int vmdir_path(const char *id, char ret[LOCAL_PATH_MAX], struct err *e)
{
	return join("", id, ret, e);
}

static int open_dir(const char *path, int *ret_fd)
{
	*ret_fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return *ret_fd < 0 ? -errno : 0;
}

int vmdir_open(const char *id, int *ret_fd, struct err *e)
{
	char path[LOCAL_PATH_MAX];
	int r = vmdir_path(id, path, e);

	if (r < 0)
		return r;
	r = open_dir(path, ret_fd);
	if (r == -ENOENT)
		return err_set(e, ERR_NOT_FOUND, ENOENT, "there is no machine %s any more", id);
	return r < 0 ? err_set(e, ERR_IO, -r, "%s", path) : 0;
}

int vmdir_lock(int dirfd, int64_t wait_ns, int *ret_lock)
{
	const struct timespec step = { .tv_nsec = LOCK_STEP };
	int64_t end = loop_now() + wait_ns;
	AUTO_FD fd = openat(dirfd, "lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	struct stat st;

	if (fd < 0)
		return -errno;
	while (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		if (errno != EINTR && (errno != EWOULDBLOCK || loop_now() >= end))
			return -errno;
		(void)nanosleep(&step, NULL);
	}
	if (fstat(fd, &st) < 0 || st.st_nlink == 0) /* who had it has removed the sandbox */
		return -ENOENT;
	*ret_lock = fd_take(&fd);
	return 0;
}

/* A shared lock, so that two that only look do not see each other; whoever really takes it tries
 * for a while. */
bool vmdir_is_locked(int dirfd)
{
	AUTO_FD fd = openat(dirfd, "lock", O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

	return fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) < 0 && errno == EWOULDBLOCK;
}

bool vmdir_is_kept(int dirfd)
{
	return faccessat(dirfd, "kept", F_OK, 0) == 0;
}

/* The mark comes last: what is kept is whole, and has its name. */
int vmdir_keep(int dirfd)
{
	AUTO_FD fd = -1;
	int r;

	if (vmdir_is_kept(dirfd))
		return 0;
	r = fd_sync_at(dirfd, "disk.qcow2");

	if (r == 0)
		r = fsync(dirfd) < 0 ? -errno : fd_sync_at(dirfd, "..");
	if (r < 0)
		return r;
	fd = openat(dirfd, "kept", O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	return fsync(fd) < 0 || fsync(dirfd) < 0 ? -errno : 0;
}

static int link_saved(int dirfd, const struct vm_source *from)
{
	static const char *const names[] = { "ram", "devices", "state.json" };
	const size_t count = ARRAY_LEN(names) - (from->state ? 1 : 0);
	char old[128], new[64];
	AUTO_FD saved = -1;

	if (linkat(from->dirfd, TEMPLATE_RAM, dirfd, TEMPLATE_RAM, 0) < 0 && errno != ENOENT)
		return -errno; /* none: the memory has no template below it */
	if (mkdirat(dirfd, SAVED, 0700) < 0)
		return -errno;
	for (size_t i = 0; i < count; i++) {
		int r = str_format(old, sizeof(old), "%s/%s", from->saved, names[i]);

		if (r == 0)
			r = str_format(new, sizeof(new), SAVED "/%s", names[i]);
		if (r < 0 || linkat(from->dirfd, old, dirfd, new, 0) < 0)
			return r < 0 ? r : -errno;
	}
	if (!from->state)
		return 0;
	saved = openat(dirfd, SAVED, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return saved < 0 ? -errno : saved_describe(saved, from->state);
}

static int fill(int dirfd, const struct vm_config *c, const struct vm_source *from, struct err *e)
{
	int r = vmfile_write_config(dirfd, c);

	if (r < 0)
		return err_set(e, ERR_IO, -r, "vm.json of the new sandbox");
	r = from->key ? template_use(from->key, dirfd, e) : -ENOENT;
	if (r != -ENOENT)
		return r;
	r = from->saved ? link_saved(dirfd, from) : 0;
	if (r < 0)
		return err_set(e, ERR_IO, -r, "the memory of the new sandbox");
	r = vmfile_copy(from->disk, dirfd, "disk.qcow2");
	return r < 0 ? err_set(e, ERR_IO, -r, "cannot make the sandbox's disk (a copy of %s)",
			       from->disk)
		     : 0;
}

int vmdir_create(const struct vm_config *c, const struct vm_source *from, int *ret_lock,
		 struct err *e)
{
	char hidden[LOCAL_PATH_MAX], path[LOCAL_PATH_MAX];
	AUTO_FD dirfd = -1;
	AUTO_FD lock = -1;
	int r = join(VMDIR_HIDDEN, c->id, hidden, e);

	if (r == 0)
		r = join("", c->id, path, e);
	if (r < 0)
		return r;
	r = vmdir_present(e);
	if (r < 0)
		return r;
	if (mkdir(hidden, 0700) < 0)
		return err_set(e, ERR_IO, errno, "%s", hidden);
	r = open_dir(hidden, &dirfd);
	if (r == 0)
		r = vmdir_lock(dirfd, 0, &lock);
	if (r < 0)
		(void)err_set(e, ERR_IO, -r, "%s", hidden);
	if (r == 0)
		r = fill(dirfd, c, from, e);
	if (r == 0 && rename(hidden, path) < 0)
		r = err_set(e, ERR_IO, errno, "%s", path);
	if (r < 0)
		ignore_result(fd_remove_tree(hidden)); /* the first failure is told */
	else
		*ret_lock = fd_take(&lock);
	return r;
}

int vmdir_info(const char *id, struct sandbox_info *ret, struct err *e)
{
	struct sandbox_info i = { .state = SANDBOX_UNKNOWN };
	struct vm_config c = { .env = NULL };
	struct vm_status s;
	AUTO_FD dirfd = -1;
	bool alive;
	int r = vmdir_open(id, &dirfd, e);

	if (r == 0)
		r = vmdir_read_config(dirfd, &c, e);
	if (r < 0)
		return r;
	alive = vmdir_is_locked(dirfd);
	vmdir_read_status(dirfd, &s);
	r = str_format(i.name, sizeof(i.name), "%s", c.name);
	if (r == 0)
		r = str_format(i.id, sizeof(i.id), "%s", c.id);
	if (r == 0)
		r = str_format(i.image, sizeof(i.image), "%s", c.image);
	if (!alive && saved_is_there(dirfd)) {
		s.state = SANDBOX_SUSPENDED;
	} else if (!alive && s.state != SANDBOX_TERMINATED) {
		s.state = SANDBOX_TERMINATED;
		(void)snprintf(s.reason, sizeof(s.reason),
			       "its supervisor was killed, and it with it");
	}
	i.ends_ms = s.state == SANDBOX_TERMINATED ? 0 : expiry_of(&c, &s);
	if (s.state == SANDBOX_SUSPENDED && !alive && i.ends_ms && i.ends_ms <= expiry_now()) {
		s.state = SANDBOX_TERMINATED; /* whoever has to do with it next will make it so */
		(void)snprintf(s.reason, sizeof(s.reason), EXPIRY_REASON);
		i.ends_ms = 0;
	}
	i.state = s.state;
	i.cpus = c.cpus;
	i.memory_mib = c.memory_mib;
	i.net = c.net;
	i.ephemeral = c.ephemeral;
	i.idle_timeout_ms = (int64_t)c.idle_timeout_ms;
	i.max_duration_ms = (int64_t)c.max_duration_ms;
	i.created_s = c.created_s;
	memcpy(i.accel, s.accel, sizeof(i.accel));
	memcpy(i.reason, s.reason, sizeof(i.reason));
	vm_config_done(&c);
	if (r < 0)
		return err_set(e, ERR_INVALID, -r, "vm.json of %s", id);
	*ret = i;
	return 0;
}

int vmdir_remove(const char *id, struct err *e)
{
	char path[LOCAL_PATH_MAX], gone[LOCAL_PATH_MAX];
	int r = vmdir_path(id, path, e);

	if (r == 0)
		r = join(VMDIR_GONE, id, gone, e);
	if (r < 0)
		return r;
	if (rename(path, gone) < 0 && errno != ENOENT)
		r = -errno;
	if (r == 0)
		r = fd_remove_tree(gone);
	return r < 0 ? err_set(e, ERR_IO, -r, "cannot remove %s", path) : 0;
}

int vmdir_each(int (*fn)(void *arg, const char *id), void *arg, struct err *e)
{
	char root[LOCAL_PATH_MAX];
	struct dirent *d;
	DIR *dir;
	int r = vmdir_root(root, e);

	if (r < 0)
		return r;
	dir = opendir(root);
	if (!dir)
		return errno == ENOENT ? 0 : err_set(e, ERR_IO, errno, "%s", root);
	while (r == 0 && (d = readdir(dir)))
		if (vmdir_is_id(d->d_name))
			r = fn(arg, d->d_name);
	(void)closedir(dir);
	return r;
}
