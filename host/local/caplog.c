/* SPDX-License-Identifier: Apache-2.0 */
#include "host/local/caplog.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/fd.h"

int caplog_open(struct caplog *l, int dirfd, const char *name, off_t cap)
{
	struct stat st;

	l->cap = cap;
	l->size = 0;
	l->fd = openat(dirfd, name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (l->fd < 0)
		return -errno;
	if (fstat(l->fd, &st) == 0)
		l->size = st.st_size;
	return 0;
}

void caplog_close(struct caplog *l)
{
	fd_close(&l->fd);
}

/* In place: a reader that follows the file keeps its descriptor. */
static void halve(struct caplog *l)
{
	size_t keep = (size_t)(l->cap / 2);
	char *p = malloc(keep), *nl;
	ssize_t n = p ? pread(l->fd, p, keep, l->size - (off_t)keep) : 0;
	char *from = p;

	if (n > 0) {
		nl = memchr(p, '\n', (size_t)n);
		if (nl)
			from = nl + 1;
		n -= from - p;
		if (pwrite(l->fd, from, (size_t)n, 0) != n)
			n = 0;
	}
	if (n < 0)
		n = 0;
	if (ftruncate(l->fd, n) == 0)
		l->size = n;
	free(p);
}

void caplog_write(struct caplog *l, const char *p, size_t n)
{
	ssize_t k;

	if (l->fd < 0)
		return;
	if ((off_t)n > l->cap / 4) {
		p += n - (size_t)(l->cap / 4);
		n = (size_t)(l->cap / 4);
	}
	if (l->size + (off_t)n > l->cap)
		halve(l);
	if (l->size + (off_t)n > l->cap)
		return;
	k = pwrite(l->fd, p, n, l->size);
	if (k > 0)
		l->size += k;
}
