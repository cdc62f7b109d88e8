/* SPDX-License-Identifier: Apache-2.0 */
#include "host/local/saved.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/fd.h"
#include "lib/jsn.h"
#include "lib/pretty.h"
#include "lib/str.h"

#define STATE_MAX 4096
#define FORMAT	  1

bool saved_is_there(int dirfd)
{
	return faccessat(dirfd, SAVED "/state.json", F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

int saved_describe(int dirfd, const struct saved *s)
{
	AUTO_JSN *j = cJSON_CreateObject();
	AUTO_FD fd = -1;
	AUTO_BUF b;
	int r;

	buf_init(&b, STATE_MAX);
	if (!j || !jsn_add_u64(j, "format", FORMAT) || !jsn_add_str(j, "fit", s->fit) ||
	    !jsn_add_bool(j, "balloon", s->balloon) || !jsn_add_bool(j, "based", s->based))
		return -ENOMEM;
	r = pretty_json(j, &b);
	if (r < 0)
		return r;
	fd = openat(dirfd, "state.json", O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
		    0600);
	r = fd < 0 ? -errno : fd_write_all(fd, b.p, b.len);
	return r;
}

int saved_sync(int dirfd, const char *name)
{
	AUTO_FD fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	int r = fd < 0 ? -errno : fd_sync_at(fd, "state.json");

	if (r == 0)
		r = fd_sync_at(fd, "devices");
	if (r == 0)
		r = fd_sync_at(fd, "ram");
	return r < 0 ? r : fsync(fd) < 0 ? -errno : 0;
}

/*
 * After a rename from WAS to IS whose folder does not get to the disk it is taken back, because its caller takes the failure for one that
 * changed nothing: a guest that goes on beside saved/ would later be taken for what it was, with a disk that is another;
 * one that does not start would have lost its memory. Where not even that is possible the new name counts.
 */
static int sync_name(int dirfd, const char *was, const char *is)
{
	int r = fd_sync_at(dirfd, ".");

	return r < 0 && renameat(dirfd, is, dirfd, was) < 0 ? 0 : r;
}

int saved_commit(int dirfd, const struct saved *s, struct err *e)
{
	AUTO_FD newfd = openat(dirfd, SAVED_NEW, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	int r = newfd < 0 ? -errno : saved_describe(newfd, s);

	if (r == 0)
		r = saved_sync(dirfd, SAVED_NEW);
	if (r == 0 && renameat(dirfd, SAVED_NEW, dirfd, SAVED) < 0)
		r = -errno;
	else if (r == 0)
		r = sync_name(dirfd, SAVED_NEW, SAVED);
	return r < 0 ? err_set(e, ERR_IO, -r, "its memory cannot be written to the disk") : 0;
}

int saved_read_in(int saveddir, const char *what, const char *fit, struct saved *ret, struct err *e)
{
	AUTO_JSN *j = NULL;
	AUTO_BUF b;
	const char *was = "";
	uint64_t format = 0;
	int r;

	buf_init(&b, STATE_MAX);
	r = fd_read_file(saveddir, "state.json", &b);
	if (r < 0)
		return err_set(e, ERR_IO, -r, SAVED "/state.json");
	j = jsn_parse(b.p ? b.p : "", b.len, e);
	if (!j || jsn_u64(j, "format", 0, UINT32_MAX, &format, e) < 0 ||
	    jsn_str(j, "fit", &was, e) < 0 || jsn_bool(j, "balloon", &ret->balloon, e) < 0 ||
	    jsn_bool(j, "based", &ret->based, e) < 0)
		return err_wrap(e, SAVED "/state.json");
	if (format == FORMAT && !strcmp(was, fit))
		return 0;
	(void)err_set(e, ERR_CONFLICT, 0, "%s", what);
	return -ESTALE;
}

int saved_read(int dirfd, const char *fit, struct saved *ret, struct err *e)
{
	AUTO_FD fd = openat(dirfd, SAVED, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		return err_set(e, ERR_IO, errno, SAVED);
	return saved_read_in(
		fd,
		"the sandbox was suspended under another QEMU, accelerator, CPU or image, and its memory does "
		"not fit this one; `asb restart` boots it from its disk",
		fit, ret, e);
}

int saved_gone(int dirfd)
{
	AUTO_FD fd = openat(dirfd, SAVED_GONE, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat is, named;

	if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0 || fstat(fd, &is) < 0 ||
	    fstatat(dirfd, SAVED_GONE, &named, AT_SYMLINK_NOFOLLOW) < 0 ||
	    is.st_ino != named.st_ino)
		return -1;
	return fd_take(&fd);
}

int saved_drop(int dirfd, struct err *e)
{
	AUTO_FD fd = openat(dirfd, SAVED, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	int r = fd_remove_tree_at(dirfd, SAVED_GONE);

	if (fd >= 0 && r == 0 && flock(fd, LOCK_EX) < 0) /* saved_gone(): for two calls at most */
		r = -errno;
	if (r == 0 && renameat(dirfd, SAVED, dirfd, SAVED_GONE) == 0)
		r = sync_name(dirfd, SAVED, SAVED_GONE);
	else if (r == 0 && errno != ENOENT)
		r = -errno;
	if (r < 0)
		return err_set(e, ERR_IO, -r,
			       "the memory of the suspended sandbox cannot be removed");
	ignore_result(
		fd_remove_tree_at(dirfd,
				  SAVED_GONE)); /* what stays is only space, and is collected */
	ignore_result(fd_remove_tree_at(dirfd, SAVED_NEW));
	return 0;
}

void saved_collect(int dirfd)
{
	int fd = openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *d;

	if (!dir) {
		fd_close(&fd);
		return;
	}
	while ((d = readdir(dir)))
		if (str_starts(d->d_name, BRANCH "-"))
			ignore_result(fd_remove_tree_at(dirfd, d->d_name)); /* it is only space */
	(void)closedir(dir);
}
