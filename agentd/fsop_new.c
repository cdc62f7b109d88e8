/* SPDX-License-Identifier: Apache-2.0 */
#include "fsop_new.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/fd.h"
#include "lib/str.h"

#define TEMP_TRIES 16

/* Links the complete file, which has no name, as NAME. */
static int link_as(const struct fsop_new *n, const char *name)
{
	char self[32];

	if (linkat(n->fd, "", n->dir, name, AT_EMPTY_PATH) == 0) /* wants CAP_DAC_READ_SEARCH */
		return 0;
	if (errno == EEXIST)
		return -EEXIST;
	(void)snprintf(self, sizeof(self), "/proc/self/fd/%d", n->fd);
	return linkat(AT_FDCWD, self, n->dir, name, AT_SYMLINK_FOLLOW) < 0 ? -errno : 0;
}

/* Gives the file a hidden name, and makes it first when there is none yet. */
static int give_name(struct fsop_new *n)
{
	int r = -EEXIST;

	for (int i = 0; i < TEMP_TRIES && r == -EEXIST; i++) {
		unsigned char rnd[8];
		char hex[17];

		if (getrandom(rnd, sizeof(rnd), GRND_NONBLOCK) != sizeof(rnd))
			return -EAGAIN;
		str_hex(rnd, sizeof(rnd), hex);
		(void)snprintf(n->temp, sizeof(n->temp), ".agentd-new-%s", hex);
		if (n->fd >= 0) {
			r = link_as(n, n->temp);
		} else {
			n->fd = openat(n->dir, n->temp,
				       O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
			r = n->fd < 0 ? -errno : 0;
		}
	}
	if (r < 0)
		n->temp[0] = '\0';
	return r;
}

int fsop_new_open(struct fsop_new *n, int dir)
{
	*n = (struct fsop_new){ .dir = dir, .fd = -1 };
	if (access("/proc/self/fd", X_OK) == 0) /* linkat(2) may need it */
		n->fd = openat(dir, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
	if (n->fd >= 0)
		return 0;
	return give_name(n);
}

static int forget_name(struct fsop_new *n)
{
	int r = n->temp[0] && unlinkat(n->dir, n->temp, 0) < 0 ? -errno : 0;

	n->temp[0] = '\0';
	return r;
}

static int move(struct fsop_new *n, const char *base)
{
	if (renameat(n->dir, n->temp, n->dir, base) < 0)
		return -errno;
	n->temp[0] = '\0';
	return 0;
}

int fsop_new_commit(struct fsop_new *n, const char *base, bool replace)
{
	struct stat st;
	int r = 0;

	if (replace) {
		if (!n->temp[0])
			r = give_name(n);
		return r < 0 ? r : move(n, base);
	}
	if (!n->temp[0])
		return link_as(n, base);
	if (linkat(n->dir, n->temp, n->dir, base, 0) == 0)
		return forget_name(n);
	if (errno == EEXIST)
		return -EEXIST;
	/* a file system without links */
	if (fstatat(n->dir, base, &st, AT_SYMLINK_NOFOLLOW) == 0)
		return -EEXIST;
	return move(n, base);
}

void fsop_new_done(struct fsop_new *n)
{
	ignore_result(forget_name(n)); /* nothing more can be done about it */
	fd_close(&n->fd);
}
