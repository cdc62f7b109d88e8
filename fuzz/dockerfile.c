/* SPDX-License-Identifier: Apache-2.0 */
/* LINK: host/aws/dockerfile.c host/aws/dockertext.c host/aws/dockercopy.c */
/* A Dockerfile of somebody. What is asked of its context is a clean path below it; a refusal, or a note, names a line that there is. */
#include <stdio.h>

#include "fuzz/fuzz.h"
#include "host/aws/dockerfile.h"

static bool all;

static bool has(void *arg, const char *path)
{
	size_t n = strlen(path);

	(void)arg;
	if (!n || path[0] == '/' || path[n - 1] == '/' || strstr(path, "//") ||
	    strncmp(path, "../", 3) == 0 || strstr(path, "/../") || strcmp(path, "..") == 0)
		abort();
	return all;
}

static bool refused(const char *s, size_t n, bool everything, unsigned *ret_line)
{
	const struct dockerfile_context c = { has, NULL };
	struct err e = ERR_INIT, note = ERR_INIT;
	int r;

	all = everything;
	r = dockerfile_check(s, n, &c, &note, &e);
	if (r == 0 && !note.code)
		return false;
	if (sscanf(r < 0 ? e.msg : note.msg, "Dockerfile:%u: ", ret_line) != 1 || *ret_line < 1 ||
	    (r < 0 && note.code))
		abort();
	return r < 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	char *s = fuzz_text(p, n);
	unsigned lines = 1, line = 1;
	bool no;

	for (size_t i = 0; i < n && s[i]; i++)
		lines += s[i] == '\n';
	no = refused(s, n, false, &line);
	if (line > lines)
		abort();
	if (refused(s, n, true, &line) && !no) /* less in it, fewer good */
		abort();
	free(s);
	return 0;
}
