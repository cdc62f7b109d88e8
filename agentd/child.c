/* SPDX-License-Identifier: Apache-2.0 */
#include "child.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "lib/buf.h"
#include "lib/fd.h"
#include "tree.h"

#define OWN_OOM_SCORE "-500"
#define OWN_FILES     65536

static struct rlimit files;
static bool have_files, oom_changed, nice_changed;

static bool own_oom_score_is_0(void)
{
	AUTO_BUF b = { .cap = 32 };

	return fd_read_file(AT_FDCWD, "/proc/self/oom_score_adj", &b) < 0 || !b.p ||
	       !strcmp(b.p, "0\n");
}

void child_remember(void)
{
	have_files = getrlimit(RLIMIT_NOFILE, &files) == 0;
	errno = 0;
	nice_changed = getpriority(PRIO_PROCESS, 0) != 0 && errno == 0;
	oom_changed = !own_oom_score_is_0();
}

void child_protect_self(void)
{
	struct rlimit more = files;

	if (have_files && files.rlim_cur < OWN_FILES) {
		more.rlim_cur = files.rlim_max < OWN_FILES ? files.rlim_max : OWN_FILES;
		(void)setrlimit(RLIMIT_NOFILE, &more);
	}
	if (!oom_changed && fd_write_str(AT_FDCWD, "/proc/self/oom_score_adj", OWN_OOM_SCORE) == 0)
		oom_changed = true;
}

int child_setup(void *tree)
{
	/* where one of these is refused, the command runs all the same: they are comfort, not
	 * confinement */
	if (oom_changed) {
		if (geteuid() != 0)
			(void)prctl(PR_SET_DUMPABLE, 1, 0, 0, 0); /* else the file is root's */
		ignore_result(fd_write_str(AT_FDCWD, "/proc/self/oom_score_adj", "0"));
	}
	if (nice_changed)
		(void)setpriority(PRIO_PROCESS, 0, 0);
	if (have_files)
		(void)setrlimit(RLIMIT_NOFILE, &files);
	return tree_child(tree);
}
