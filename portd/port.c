/* SPDX-License-Identifier: Apache-2.0 */
#include "port.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "../lib/fd.h"
#include "../lib/sock.h"
#include "../lib/str.h"

#define LOOK_MS 5

/* Whether DIR/ENTRY/name holds NAME (and a newline). */
static bool is_named(const char *dir, const char *entry, const char *name)
{
	char path[512];
	AUTO_BUF b;

	buf_init(&b, 256);
	if (str_format(path, sizeof(path), "%s/%s/name", dir, entry) < 0 ||
	    fd_read_file(AT_FDCWD, path, &b) < 0 || !b.p)
		return false;
	b.p[strcspn(b.p, "\n")] = '\0';
	return !strcmp(b.p, name);
}

/* 0, -ENOENT when there is no such port (yet), or another negative errno. */
static int look(const char *class_dir, const char *dev_dir, const char *name, int *ret_fd)
{
	DIR *d = opendir(class_dir);
	struct dirent *entry;
	int r = -ENOENT;

	if (!d)
		return -errno;
	while (r == -ENOENT && (entry = readdir(d))) {
		char path[512];

		if (entry->d_name[0] == '.' || !is_named(class_dir, entry->d_name, name))
			continue;
		r = str_format(path, sizeof(path), "%s/%s", dev_dir, entry->d_name);
		if (r < 0)
			break;
		*ret_fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
		r = *ret_fd < 0 ? -errno : 0;
	}
	(void)closedir(d);
	return r;
}

int port_open(const char *class_dir, const char *dev_dir, const char *name, int wait_ms,
	      int *ret_fd, struct err *e)
{
	const struct timespec pause = { .tv_nsec = LOOK_MS * 1000000L };
	int r;

	for (int ms = 0;; ms += LOOK_MS) {
		r = look(class_dir, dev_dir, name, ret_fd);
		if (r != -ENOENT || ms >= wait_ms)
			break;
		(void)nanosleep(&pause, NULL);
	}
	return r < 0 ? err_set(e, ERR_UNAVAILABLE, -r, "virtio port %s", name) : 0;
}

int port_open_path(const char *path, int *ret_fd, struct err *e)
{
	struct stat st;
	int r;

	if (stat(path, &st) < 0)
		return err_set(e, ERR_NOT_FOUND, errno, "%s", path);
	if (S_ISSOCK(st.st_mode)) {
		r = sock_connect(path, ret_fd);
	} else {
		*ret_fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
		r = *ret_fd < 0 ? -errno : 0;
	}
	return r < 0 ? err_set(e, ERR_UNAVAILABLE, -r, "%s", path) : 0;
}
