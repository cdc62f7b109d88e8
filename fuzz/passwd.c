/* SPDX-License-Identifier: Apache-2.0 */
/* LINK: agentd/passwd.c */
/* The image's own passwd and group files, and who is asked for: three parts, separated by a NUL or by a line "--". */
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "agentd/passwd.h"
#include "fuzz/fuzz.h"

static const char *file_of(const char *p, size_t n, int *ret_fd, char *path, size_t size)
{
	*ret_fd = memfd_create("fuzz", MFD_CLOEXEC);
	if (*ret_fd < 0 || write(*ret_fd, p, n) != (ssize_t)n)
		abort();
	(void)snprintf(path, size, "/proc/self/fd/%d", *ret_fd);
	return path;
}

/* Cuts at the first line "--"; the rest is returned, or an empty string. */
static char *cut(char *s)
{
	char *end = strstr(s, "\n--\n");

	if (!end)
		return s + strlen(s);
	end[1] = '\0';
	return end + 4;
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	static struct passwd_user u;
	char *who = fuzz_text(p, n), *passwd = cut(who), *group = cut(passwd);
	char one[40], two[40];
	struct err e = ERR_INIT;
	int a, b;

	who[strcspn(who, "\n")] = '\0';
	if (passwd_resolve(who, file_of(passwd, strlen(passwd), &a, one, sizeof(one)),
			   file_of(group, n - (size_t)(group - who), &b, two, sizeof(two)), &u,
			   &e) == 0 &&
	    (u.n_groups > PASSWD_GROUPS_MAX || !memchr(u.name, 0, sizeof(u.name)) ||
	     !memchr(u.home, 0, sizeof(u.home)) || !memchr(u.shell, 0, sizeof(u.shell))))
		abort();
	(void)close(a);
	(void)close(b);
	free(who);
	return 0;
}
