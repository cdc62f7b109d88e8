/* SPDX-License-Identifier: Apache-2.0 */
#include "host/local/snapdir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host/state/state.h"
#include "lib/fd.h"
#include "lib/str.h"

/*
 * As with the folders of VMs (vmdir.c): whoever makes a folder holds its lock, so one with a hidden name that nobody
 * holds is left over; it is spared while it is young, because the lock comes an instant after the folder. One that is
 * removed needs no lock: any process may help.
 *
 * rename(2) does not replace a directory that has something in it, so of two that make the same name one fails.
 */

#define NEW   ".new-"
#define GONE  ".new-gone-"
#define TRIES 3 /* of a name: what has no lock yet may be taken for left over */
#define PART  "snapshots"

static int folder(const char *prefix, const char *name, char ret[LOCAL_PATH_MAX], struct err *e)
{
	return vmdir_below(PART, prefix, name, ret, e);
}

static int fresh(const char *prefix, char ret[LOCAL_PATH_MAX], struct err *e)
{
	unsigned char raw[8];
	char hex[2 * sizeof(raw) + 1];

	if (getrandom(raw, sizeof(raw), 0) != (ssize_t)sizeof(raw))
		return err_set(e, ERR_INTERNAL, errno, "getrandom");
	str_hex(raw, sizeof(raw), hex);
	return folder(prefix, hex, ret, e);
}

static int sync_root(void)
{
	char root[LOCAL_PATH_MAX];
	int r = vmdir_part(PART, root, NULL);

	return r < 0 ? r : fd_sync_at(AT_FDCWD, root);
}

/* --- reading --- */
int snapdir_open(const char *name, char path[LOCAL_PATH_MAX], int *ret_fd, struct snap_meta *ret,
		 struct err *e)
{
	AUTO_FD fd = -1;
	AUTO_BUF b;
	int r = state_check_name(name, e);

	buf_init(&b, SNAP_META_MAX);
	if (r == 0)
		r = folder("", name, path, e);
	if (r < 0)
		return r;
	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT)
		return err_set(e, ERR_NOT_FOUND, ENOENT, "there is no snapshot named '%s'", name);
	r = fd < 0 ? -errno : fd_read_file(fd, SNAP_META, &b);
	if (r < 0)
		return err_set(e, ERR_IO, -r, "%s", path);
	r = snap_meta_parse(b.p ? b.p : "", b.len, ret, e);
	if (r < 0)
		return err_wrap(e, "%s", path);
	*ret_fd = fd_take(&fd);
	return 0;
}

static int look(int dirfd, enum snap_part p, uint64_t *ret_bytes, char ret_changed[40])
{
	struct stat st;

	if (fstatat(dirfd, snap_part_names[p], &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	*ret_bytes = (uint64_t)st.st_size;
	return str_format(ret_changed, 40, "%lld.%09ld", (long long)st.st_mtim.tv_sec,
			  st.st_mtim.tv_nsec);
}

int snapdir_check(int dirfd, const struct snap_meta *m, struct err *e)
{
	for (int p = 0; p < SNAP_PARTS; p++) {
		const struct snap_part_meta *was = &m->part[p];
		char changed[40] = "";
		uint64_t bytes = 0;
		int r = was->there ? look(dirfd, (enum snap_part)p, &bytes, changed) : 0;

		if (r < 0)
			return err_set(e, ERR_IO, -r, "%s of the snapshot", snap_part_names[p]);
		if (!was->there || (bytes == was->bytes && !strcmp(changed, was->changed)))
			continue;
		(void)err_set(e, ERR_CONFLICT, 0,
			      "%s of the snapshot is not what it was when it was made",
			      snap_part_names[p]);
		return -ESTALE;
	}
	return 0;
}

uint64_t snapdir_bytes(int dirfd)
{
	uint64_t n = 0;
	struct stat st;

	for (int p = 0; p < SNAP_PARTS; p++)
		if (fstatat(dirfd, snap_part_names[p], &st, AT_SYMLINK_NOFOLLOW) == 0)
			n += (uint64_t)st.st_blocks * 512;
	return n;
}

static int is_snapshot(const struct dirent *d)
{
	return state_check_name(d->d_name, NULL) == 0;
}

int snapdir_each(int (*fn)(void *arg, const char *name), void *arg, struct err *e)
{
	char root[LOCAL_PATH_MAX];
	struct dirent **all;
	int n, r = vmdir_part(PART, root, e);

	if (r < 0)
		return r;
	n = scandir(root, &all, is_snapshot, alphasort);
	if (n < 0)
		return err_set(e, ERR_IO, errno, "%s", root);
	for (int i = 0; i < n; i++) {
		if (r == 0)
			r = fn(arg, all[i]->d_name);
		free(all[i]);
	}
	free(all);
	return r;
}

/* --- making --- */
static int begin_once(struct snap_new *n)
{
	if (mkdir(n->path, 0700) < 0)
		return -errno;
	n->dirfd = open(n->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return n->dirfd < 0 ? -errno : vmdir_lock(n->dirfd, 0, &n->lock);
}

int snapdir_begin(const char *name, struct snap_new *ret, struct err *e)
{
	char path[LOCAL_PATH_MAX];
	struct stat st;
	int r = state_check_name(name, e);

	*ret = (struct snap_new){ .dirfd = -1, .lock = -1 };
	if (r == 0)
		r = folder("", name, path, e);
	if (r < 0)
		return r;
	if (lstat(path, &st) == 0) {
		(void)err_set(e, ERR_EXISTS, 0, "there is a snapshot named '%s' already", name);
		return -EEXIST;
	}
	snapdir_collect(false, NULL, NULL);
	for (int i = 0; i < TRIES; i++) {
		r = fresh(NEW, ret->path, e);
		if (r < 0)
			return r;
		r = begin_once(ret);
		if (r == 0)
			return 0;
		(void)err_set(e, ERR_IO, -r, "%s", ret->path);
		snapdir_abort(ret);
		if (r != -EWOULDBLOCK && r != -ENOENT)
			break;
	}
	return r;
}

void snapdir_abort(struct snap_new *n)
{
	if (n->path[0])
		ignore_result(fd_remove_tree(n->path)); /* else a later collect does */
	n->path[0] = '\0';
	fd_close(&n->dirfd);
	fd_close(&n->lock);
}

static int write_meta(const struct snap_new *n, const struct snap_meta *m)
{
	AUTO_BUF b;
	AUTO_FD fd = openat(n->dirfd, SNAP_META,
			    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	int r = fd < 0 ? -errno : 0;

	buf_init(&b, SNAP_META_MAX);
	if (r == 0)
		r = snap_meta_print(m, true, &b);
	if (r == 0)
		r = fd_write_all(fd, b.p, b.len);
	return r == 0 && fsync(fd) < 0 ? -errno : r;
}

static int make_durable(const struct snap_new *n, struct snap_meta *m)
{
	int r = 0;

	for (int p = 0; p < SNAP_PARTS && r == 0; p++) {
		uint64_t bytes = 0;

		if (!m->part[p].there)
			continue;
		r = fd_sync_at(n->dirfd, snap_part_names[p]);
		if (r == 0)
			r = look(n->dirfd, (enum snap_part)p, &bytes, m->part[p].changed);
		if (r == 0 && bytes != m->part[p].bytes)
			r = -ESTALE;
	}
	if (r == 0)
		r = write_meta(n, m);
	if (r == 0)
		r = fd_sync_at(n->dirfd, ".");
	return r < 0 ? r : sync_root();
}

int snapdir_publish(struct snap_new *n, struct snap_meta *m, struct err *e)
{
	char path[LOCAL_PATH_MAX];
	int r = folder("", m->name, path, e);

	if (r < 0)
		return r;
	r = make_durable(n, m);
	if (r < 0)
		return err_set(e, ERR_IO, -r, "the snapshot cannot be brought to the disk");
	if (rename(n->path, path) < 0) {
		if (errno != ENOTEMPTY && errno != EEXIST)
			return err_set(e, ERR_IO, errno, "%s", path);
		(void)err_set(e, ERR_EXISTS, 0, "there is a snapshot named '%s' already", m->name);
		return -EEXIST;
	}
	r = sync_root();
	if (r < 0 && rename(path, n->path) == 0) /* who is told that it failed finds none */
		return err_set(e, ERR_IO, -r, "the snapshot cannot be brought to the disk");
	n->path[0] = '\0';
	(void)unlinkat(n->dirfd, "lock", 0);
	return 0;
}

/* --- removing --- */
int snapdir_remove(const char *name, struct err *e)
{
	char path[LOCAL_PATH_MAX], away[LOCAL_PATH_MAX];
	int r = state_check_name(name, e);

	if (r == 0)
		r = folder("", name, path, e);
	if (r == 0)
		r = fresh(GONE, away, e);
	if (r < 0)
		return r;
	if (rename(path, away) < 0) {
		if (errno == ENOENT)
			return err_set(e, ERR_NOT_FOUND, ENOENT, "there is no snapshot named '%s'",
				       name);
		return err_set(e, ERR_IO, errno, "%s", path);
	}
	r = sync_root();
	if (r == 0)
		r = fd_remove_tree(away);
	return r < 0 ? err_set(e, ERR_IO, -r, "%s", away) : 0;
}

/* With its lock in *RET_LOCK: nobody has it then, or its maker has not come to that yet and takes another name. */
static bool is_left_over(int rootfd, const char *name, int *ret_fd, int *ret_lock)
{
	AUTO_FD fd = openat(rootfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0 || (!str_starts(name, GONE) && vmdir_lock(fd, 0, ret_lock) < 0))
		return false;
	*ret_fd = fd_take(&fd);
	return true;
}

void snapdir_collect(bool dry, void (*fn)(void *arg, const char *name, uint64_t bytes), void *arg)
{
	char root[LOCAL_PATH_MAX];
	struct dirent *d;
	DIR *dir = vmdir_part(PART, root, NULL) == 0 ? opendir(root) : NULL;

	while (dir && (d = readdir(dir))) {
		AUTO_FD fd = -1;
		AUTO_FD lock = -1;

		if (!str_starts(d->d_name, NEW) || !is_left_over(dirfd(dir), d->d_name, &fd, &lock))
			continue;
		if (fn)
			fn(arg, d->d_name, snapdir_bytes(fd));
		if (!dry)
			ignore_result(fd_remove_tree_at(dirfd(dir), d->d_name)); /* or the next */
	}
	if (dir)
		(void)closedir(dir);
}
