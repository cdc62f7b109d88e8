/* SPDX-License-Identifier: Apache-2.0 */
#include "until.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "stats.h"

#define FIRST_BYTE_MS 120000

extern char **environ;

static int64_t read_until(int fd, const char *want, char *text, size_t size, int64_t start)
{
	int64_t took = -1;
	size_t len = 0;

	for (;;) {
		struct pollfd pf = { .fd = fd, .events = POLLIN };
		ssize_t k;

		if (poll(&pf, 1, FIRST_BYTE_MS) <= 0)
			return -1;
		k = read(fd, text + len, size - 1 - len);
		if (k <= 0)
			return took;
		len += (size_t)k;
		text[len] = '\0';
		if (took < 0 && (!want || strstr(text, want)))
			took = stats_now() - start;
		if (len > size / 2)
			len = 0;
	}
}

int64_t bench_until(const char *const *argv, const char *want, const char *err_path, char *text,
		    size_t size, int64_t *ret_end)
{
	posix_spawn_file_actions_t fa;
	int p[2], status = -1;
	int64_t start = stats_now(), took = -1;
	pid_t pid;

	text[0] = '\0';
	if (pipe(p) < 0)
		return -1;
	posix_spawn_file_actions_init(&fa);
	posix_spawn_file_actions_addopen(&fa, 0, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_adddup2(&fa, p[1], 1);
	posix_spawn_file_actions_addopen(&fa, 2, err_path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	posix_spawn_file_actions_addclose(&fa, p[0]);
	posix_spawn_file_actions_addclose(&fa, p[1]);
	if (posix_spawnp(&pid, argv[0], &fa, NULL, (char *const *)(uintptr_t)argv, environ) == 0) {
		(void)close(p[1]);
		p[1] = -1;
		took = read_until(p[0], want, text, size, start);
		(void)waitpid(pid, &status, 0);
	}
	(void)close(p[0]);
	if (p[1] >= 0)
		(void)close(p[1]);
	posix_spawn_file_actions_destroy(&fa);
	if (ret_end)
		*ret_end = stats_now() - start;
	return status ? -1 : took;
}
