/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_FUZZ_CONFINED_H
#define ASB_FUZZ_CONFINED_H

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

/*
 * For targets that reach code which changes files: a mount namespace in which everything is read-only except DIR (below
 * build/), which is made. False, with the reason on stderr, where such a namespace is not to be had: the target must then try
 * nothing. mount_setattr(2).
 */
static inline bool fuzz_confine(const char *dir)
{
	struct mount_attr ro = { .attr_set = MOUNT_ATTR_RDONLY },
			  rw = { .attr_clr = MOUNT_ATTR_RDONLY };
	unsigned uid = geteuid();
	char map[64];
	int fd;

	(void)mkdir(dir, 0755);
	if (unshare(CLONE_NEWNS | (uid ? CLONE_NEWUSER : 0)) < 0)
		goto failed;
	if (uid) {
		int n = snprintf(map, sizeof(map), "%u %u 1\n", uid, uid);

		fd = open("/proc/self/uid_map", O_WRONLY | O_CLOEXEC);
		if (fd < 0 || write(fd, map, (size_t)n) != n || close(fd) < 0)
			goto failed;
	}
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount(dir, dir, NULL, MS_BIND, NULL) < 0 ||
	    mount_setattr(AT_FDCWD, "/", AT_RECURSIVE, &ro, sizeof(ro)) < 0 ||
	    mount_setattr(AT_FDCWD, dir, 0, &rw, sizeof(rw)) < 0)
		goto failed;
	return true;
failed:
	fprintf(stderr, "nothing is tried: no read-only namespace here: %s\n", strerror(errno));
	return false;
}

#endif
