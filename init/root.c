/* SPDX-License-Identifier: Apache-2.0 */
#include "root.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/fd.h"
#include "lib/log.h"
#include "mounts.h"
#include "lib/proto.h"
#include "lib/str.h"

/*
 * The initramfs stays below the new root (a rootfs cannot be unmounted), and three of its places
 * live on out of sight: the mounts of the image and of the disk, and /asb/bin. Two descriptors keep
 * the way to them: `disk`, because an ext4 must be made read-only by a mount of its own to be clean
 * at the next start (doing it to the overlay only syncs it), and `programs`, which is bound to
 * where they are seen. Nothing is copied.
 */

#define LOWER	"/lower"
#define DISK	"/disk"
#define NEWROOT "/newroot"
#define WAIT_MS 5000

static int disk = -1, programs = -1;

/* Devices of modules and of slow buses come a moment later than init. */
static bool wait_for(const char *path, int ms)
{
	for (;; ms--) {
		if (access(path, F_OK) == 0)
			return true;
		if (ms <= 0)
			return false;
		(void)poll(NULL, 0, 1);
	}
}

static int open_dir(const char *path, int *ret, struct err *e)
{
	*ret = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return *ret < 0 ? err_set(e, ERR_IO, errno, "open %s", path) : 0;
}

static int mount_upper(struct err *e)
{
	int r;

	if (access("/dev/vdb", F_OK) == 0)
		r = mounts_one("/dev/vdb", DISK, "ext4", MS_NOATIME, "noinit_itable", e);
	else
		r = mounts_one("tmpfs", DISK, "tmpfs", MS_NOATIME, "mode=0755,size=50%", e);
	if (r < 0)
		return r;
	if ((mkdir(DISK "/upper", 0755) < 0 || mkdir(DISK "/work", 0755) < 0) && errno != EEXIST)
		return err_set(e, ERR_IO, errno, "mkdir in the VM's disk");
	return open_dir(DISK, &disk, e);
}

int root_mount(struct err *e)
{
	int r;

	if (!wait_for("/dev/vda", WAIT_MS))
		return err_set(e, ERR_IO, ENOENT, "mount /dev/vda");
	r = mounts_one("/dev/vda", LOWER, "erofs", MS_RDONLY, NULL, e);
	if (r == 0)
		r = mount_upper(e);
	if (r == 0)
		r = mounts_one("overlay", NEWROOT, "overlay", MS_NOATIME,
			       "lowerdir=" LOWER ",upperdir=" DISK "/upper,workdir=" DISK "/work",
			       e);
	return r;
}

int root_switch(struct err *e)
{
	static const char *const moved[] = { "/dev", "/sys", "/proc" };
	int r = open_dir("/asb/bin", &programs, e);

	for (size_t i = 0; r == 0 && i < ARRAY_LEN(moved); i++) {
		char to[64];

		(void)snprintf(to, sizeof(to), NEWROOT "%s", moved[i]);
		if (mkdir(to, 0755) < 0 && errno != EEXIST)
			r = err_set(e, ERR_IO, errno, "mkdir %s in the image", moved[i]);
		else if (mount(moved[i], to, NULL, MS_MOVE, NULL) < 0)
			r = err_set(e, ERR_IO, errno, "move %s into the image", moved[i]);
	}
	if (r < 0)
		return r;
	if (chdir(NEWROOT) < 0 || mount(".", "/", NULL, MS_MOVE, NULL) < 0 || chroot(".") < 0 ||
	    chdir("/") < 0)
		return err_set(e, ERR_IO, errno, "switch root");
	return 0;
}

int root_show_programs(struct err *e)
{
	char from[32];
	int r = fd_mkdirs(PROTO_BIN_DIR, 0755);

	if (r < 0)
		return err_set(e, ERR_IO, -r, "mkdir %s", PROTO_BIN_DIR);
	(void)snprintf(from, sizeof(from), "/proc/self/fd/%d", programs);
	if (mount(from, PROTO_BIN_DIR, NULL, MS_BIND, NULL) < 0 ||
	    mount(NULL, PROTO_BIN_DIR, NULL,
		  MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV, NULL) < 0)
		return err_set(e, ERR_IO, errno, "bind %s", PROTO_BIN_DIR);
	fd_close(&programs);
	return 0;
}

void root_seal(void)
{
	char path[32];

	sync();
	if (disk < 0)
		return;
	if (mount(NULL, "/", NULL, MS_REMOUNT | MS_RDONLY, NULL) < 0)
		log_warn("root stays writable: %s", strerror(errno));
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", disk);
	if (mount(NULL, path, NULL, MS_REMOUNT | MS_RDONLY, NULL) < 0)
		log_warn("the disk stays writable: %s", strerror(errno));
	sync();
}
