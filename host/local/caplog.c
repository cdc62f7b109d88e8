/* SPDX-License-Identifier: Apache-2.0 */
#include "host/local/caplog.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "lib/fd.h"
#include "lib/str.h"

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

static size_t stamp(char *out, size_t size)
{
	char day[24];
	struct timespec now;
	struct tm tm;

	(void)clock_gettime(CLOCK_REALTIME, &now);
	if (!gmtime_r(&now.tv_sec, &tm) || !strftime(day, sizeof(day), "%Y-%m-%dT%H:%M:%S", &tm))
		return 0;
	return str_format(out, size, "%s.%06ldZ ", day, now.tv_nsec / 1000) < 0 ? 0 : strlen(out);
}

void caplog_lines(struct caplog *l, const char *p, size_t n)
{
	char out[4096], time[40];
	size_t len = 0, t = 0;

	for (size_t i = 0; i < n; i++) {
		bool held = l->cr;

		l->cr = p[i] == '\r';
		if (l->cr && !held)
			continue; /* a terminal's line ends in CR LF, a file's in LF */
		if (!l->mid_line) {
			if (!t) /* once is enough for all that came together */
				t = stamp(time, sizeof(time));
			memcpy(out + len, time, t);
			len += t;
		}
		if (held && p[i] != '\n') {
			out[len++] = '\r';
			l->mid_line = true;
		}
		if (l->cr)
			continue;
		out[len++] = p[i];
		l->mid_line = p[i] != '\n';
		if (len + sizeof(time) + 1 >= sizeof(out)) {
			caplog_write(l, out, len);
			len = 0;
		}
	}
	if (len)
		caplog_write(l, out, len);
}
