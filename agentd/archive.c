/* SPDX-License-Identifier: Apache-2.0 */
#include "archive.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/pack.h"
#include "worker.h"

/*
 * /v1/archive in the worker. The path that the client gives is followed as the kernel does, symbolic links too: the
 * client owns the guest. What is below it is treated by lib/pack.c and lib/unpack.c.
 *
 * GET answers an error only as long as nothing has been written, so the first block of the archive is what begins the answer.
 */

/* --- GET --- */
struct out {
	bool begun;
};

static int out_write(void *arg, const void *p, size_t n)
{
	struct out *o = arg;

	if (!o->begun) {
		int r = work_begin("application/x-tar", -1);

		if (r < 0)
			return r;
		o->begun = true;
	}
	return work_write(p, n);
}

static void tick(void *arg)
{
	(void)arg;
	work_alive();
}

/*
 * Splits PATH (changed) into the directory, its length in *RET_DIR ("" stands for "/"), and the last component, which is
 * "." for "/" and what ends in "/."; slashes at the end do not count. Returns the component, which points into PATH.
 */
static const char *last_component(char *path)
{
	size_t n = strlen(path);
	char *slash;

	while (n > 1 && path[n - 1] == '/')
		path[--n] = '\0';
	slash = strrchr(path, '/');
	return slash && slash[1] ? slash + 1 : ".";
}

int archive_out(int argc, char **argv)
{
	struct out out = { false };
	struct pack_count count;
	struct err e = ERR_INIT;
	const char *base;
	struct pack_spec s = { .dir = AT_FDCWD, .write = out_write, .tick = tick, .arg = &out };
	bool slash_dot;
	int r;

	if (argc < 1)
		return work_error(500, 0, "no path");
	base = last_component(argv[0]);
	slash_dot = !strcmp(base, ".") || !strcmp(base, "..");
	s.name = argv[0];
	s.as = slash_dot ? "." : base;
	s.follow = slash_dot || (argc > 1 && !strcmp(argv[1], "follow=1"));
	r = pack_tree(&s, &count, &e);
	if (r < 0 && !out.begun)
		return work_fail(&e);
	return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
