/* SPDX-License-Identifier: Apache-2.0 */
#include "modules.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/buf.h"
#include "lib/fd.h"

#define LIST_MAX (64UL << 10)

static int load(const char *path, struct err *e)
{
	AUTO_FD fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return err_set(e, ERR_IO, errno, "open module %s", path);
	if (syscall(SYS_finit_module, fd, "", 0) < 0 && errno != EEXIST)
		return err_set(e, ERR_IO, errno, "load module %s", path);
	(void)unlink(path); /* the file's pages are memory of an initramfs */
	return 0;
}

int modules_load(const char *list, struct err *e)
{
	AUTO_BUF b;
	int r;

	buf_init(&b, LIST_MAX);
	r = fd_read_file(AT_FDCWD, list, &b);
	if (r == -ENOENT)
		return 0;
	if (r < 0)
		return err_set(e, ERR_IO, -r, "read %s", list);
	for (char *s = b.p; s && *s;) {
		size_t n = strcspn(s, "\n");
		char *next = s + n + (s[n] == '\n');

		s[n] = '\0';
		r = n ? load(s, e) : 0;
		if (r < 0)
			return r;
		s = next;
	}
	return 0;
}
