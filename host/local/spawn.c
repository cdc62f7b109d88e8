/* SPDX-License-Identifier: Apache-2.0 */
#include "host/local/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host/local/local.h"
#include "lib/fd.h"
#include "lib/proc.h"
#include "lib/str.h"

#define LIMIT_MAX_MS (24ULL * 3600 * 1000)

int spawn_parse(int argc, char **argv, struct spawn_args *ret)
{
	uint64_t owner, lock, ms;

	if (argc != 6 || (strcmp(argv[2], "start") != 0 && strcmp(argv[2], "create") != 0) ||
	    str_to_u64(argv[3], 3, INT_MAX, &owner) < 0 ||
	    str_to_u64(argv[4], 3, INT_MAX, &lock) < 0 ||
	    str_to_u64(argv[5], 1, LIMIT_MAX_MS, &ms) < 0)
		return -EINVAL;
	*ret = (struct spawn_args){ .folder = argv[1],
				    .start = !strcmp(argv[2], "start"),
				    .owner_fd = (int)owner,
				    .lock_fd = (int)lock,
				    .limit_ns = (int64_t)ms * 1000000 };
	return 0;
}

static int spawn(const struct spawn_args *a, int owner, int log, struct err *e)
{
	char exe[] = "/proc/self/exe", word[] = "__supervise", create[] = "create",
	     start[] = "start";
	char folder[LOCAL_PATH_MAX], owner_text[16], lock_text[16], ms[24];
	char *argv[] = { exe,	     word,	folder, a->start ? start : create,
			 owner_text, lock_text, ms,	NULL };
	const int keep[] = { owner, a->lock_fd };
	struct proc_spec s = PROC_SPEC_INIT;
	struct proc_child child;
	int64_t limit_ms = a->limit_ns / 1000000;
	int r = str_format(folder, sizeof(folder), "%s", a->folder);

	if (limit_ms < 1)
		limit_ms = 1;
	if (r == 0)
		r = str_format(owner_text, sizeof(owner_text), "%d", owner);
	if (r == 0)
		r = str_format(lock_text, sizeof(lock_text), "%d", a->lock_fd);
	if (r == 0)
		r = str_format(ms, sizeof(ms), "%lld", (long long)limit_ms);
	if (r < 0)
		return err_set(e, ERR_INVALID, -r, "%s", a->folder);
	s.argv = argv;
	s.fd[1] = s.fd[2] = log;
	s.keep = keep;
	s.keep_len = (int)ARRAY_LEN(keep);
	s.flags = PROC_SETSID | PROC_NOPATH;
	r = proc_spawn(&s, &child, NULL, e);
	if (r < 0)
		return r;
	while (waitpid(child.pid, NULL, 0) < 0 &&
	       errno == EINTR) /* it forks again and exits at once */
		;
	fd_close(&child.pidfd);
	return 0;
}

int spawn_supervisor(struct spawn_args *a, struct err *e)
{
	char path[LOCAL_PATH_MAX];
	AUTO_FD log = -1;
	AUTO_FD ours = -1;
	AUTO_FD theirs = -1;
	int sv[2];
	int r = str_format(path, sizeof(path), "%s/supervisor.log", a->folder);

	if (r < 0 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sv) < 0)
		return err_set(e, ERR_IO, r < 0 ? -r : errno, "cannot start a supervisor");
	ours = sv[0];
	theirs = sv[1];
	log = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (log < 0)
		return err_set(e, ERR_IO, errno, "%s", path);
	r = spawn(a, theirs, log, e);
	if (r == 0)
		a->owner_fd = fd_take(&ours);
	return r;
}
