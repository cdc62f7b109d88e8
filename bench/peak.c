/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/*
 * bench-peak COMMAND…: runs it and prints how long it took, in ms, and the most memory it had resident, in KiB. A program of its own, because
 * that number begins with what the process had that it was forked from (getrusage(2)), and this one has next to nothing.
 */
int main(int argc, char **argv)
{
	struct timespec a, b;
	struct rusage use;
	int status;
	pid_t pid;

	if (argc < 2)
		return 2;
	clock_gettime(CLOCK_MONOTONIC, &a);
	pid = fork();
	if (pid == 0) {
		execvp(argv[1], argv + 1);
		_exit(127);
	}
	if (pid < 0 || wait4(pid, &status, 0, &use) < 0)
		return 1;
	clock_gettime(CLOCK_MONOTONIC, &b);
	printf("%.3f %ld\n",
	       (double)(b.tv_sec - a.tv_sec) * 1e3 + (double)(b.tv_nsec - a.tv_nsec) / 1e6,
	       use.ru_maxrss);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
