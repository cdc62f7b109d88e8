/* SPDX-License-Identifier: Apache-2.0 */
#include "kill_tree.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "lib/buf.h"
#include "lib/fd.h"
#include "lib/str.h"

#define LIST_MAX (1UL << 20)

void kill_tree(int sig)
{
	AUTO_BUF b;
	char path[64], *s, *end;

	buf_init(&b, LIST_MAX);
	if (getpid() == 1) {
		(void)kill(-1, sig);
		return;
	}
	ignore_result(str_format(path, sizeof(path), "/proc/self/task/%ld/children",
				 (long)getpid())); /* it fits */
	if (fd_read_file(AT_FDCWD, path, &b) < 0)
		return;
	for (s = b.p; s && *s; s = end) { /* "12 345 "; a child that ended is a zombie of ours, so
					     no number is reused */
		long pid = strtol(s, &end, 10);

		if (end == s)
			return;
		(void)kill((pid_t)pid, sig);
		while (*end == ' ')
			end++;
	}
}
