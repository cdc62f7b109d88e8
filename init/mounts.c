/* SPDX-License-Identifier: Apache-2.0 */
#include "mounts.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

struct entry {
	const char *source, *target, *type;
	unsigned long flags;
	const char *data;
	bool optional; /* a kernel may be built without it */
};

#define NODEV_ETC (MS_NOSUID | MS_NODEV | MS_NOEXEC)

static const struct entry early[] = {
	{ "proc", "/proc", "proc", NODEV_ETC, NULL, false },
	{ "sysfs", "/sys", "sysfs", NODEV_ETC, NULL, false },
	{ "devtmpfs", "/dev", "devtmpfs", MS_NOSUID, "mode=0755", false },
};

/* /run is executable: the guest programs are below it. */
static const struct entry late[] = {
	{ "tmpfs", "/run", "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755,size=20%", false },
	{ "devpts", "/dev/pts", "devpts", MS_NOSUID | MS_NOEXEC, "gid=5,mode=620,ptmxmode=666",
	  false },
	{ "tmpfs", "/dev/shm", "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777", false },
	{ "mqueue", "/dev/mqueue", "mqueue", NODEV_ETC, NULL, true },
	{ "cgroup2", "/sys/fs/cgroup", "cgroup2", NODEV_ETC, "nsdelegate,memory_recursiveprot",
	  true },
};

/* What udev would make in a devtmpfs. */
static const struct {
	const char *to, *at;
} links[] = {
	{ "/proc/self/fd", "/dev/fd" },
	{ "/proc/self/fd/0", "/dev/stdin" },
	{ "/proc/self/fd/1", "/dev/stdout" },
	{ "/proc/self/fd/2", "/dev/stderr" },
};

int mounts_one(const char *source, const char *target, const char *type, unsigned long flags,
	       const char *data, struct err *e)
{
	if (mkdir(target, 0755) < 0 && errno != EEXIST && errno != EROFS)
		return err_set(e, ERR_IO, errno, "mkdir %s", target);
	if (mount(source, target, type, flags, data) < 0 && errno != EBUSY)
		return err_set(e, ERR_IO, errno, "mount %s on %s", source, target);
	return 0;
}

static int mount_table(const struct entry *t, size_t n, struct err *e)
{
	for (; n; t++, n--) {
		int r = mounts_one(t->source, t->target, t->type, t->flags, t->data,
				   t->optional ? NULL : e);

		if (r < 0 && !t->optional)
			return r;
	}
	return 0;
}

int mounts_early(struct err *e)
{
	return mount_table(early, ARRAY_LEN(early), e);
}

/*
 * /tmp is on the VM's disk, as in a container: what does not fit into memory belongs there. Its
 * mode is looked at first, because setting it would copy the directory up to the disk.
 */
static int make_tmp(struct err *e)
{
	struct stat st;

	if (mkdir("/tmp", 0755) < 0 && errno != EEXIST)
		return err_set(e, ERR_IO, errno, "mkdir /tmp");
	if (stat("/tmp", &st) < 0 || ((st.st_mode & 07777) != 01777 && chmod("/tmp", 01777) < 0))
		return err_set(e, ERR_IO, errno, "chmod /tmp");
	return 0;
}

int mounts_late(struct err *e)
{
	int r = mount_table(late, ARRAY_LEN(late), e);

	for (size_t i = 0; r == 0 && i < ARRAY_LEN(links); i++)
		if (symlink(links[i].to, links[i].at) < 0 && errno != EEXIST)
			r = err_set(e, ERR_IO, errno, "symlink %s", links[i].at);
	return r < 0 ? r : make_tmp(e);
}
