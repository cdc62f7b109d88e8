/* SPDX-License-Identifier: Apache-2.0 */
#include "archive.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/fd.h"
#include "lib/jsn.h"
#include "lib/pack.h"
#include "lib/unpack.h"
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

static bool has_word(int argc, char **argv, const char *word)
{
	for (int i = 1; i < argc; i++)
		if (!strcmp(argv[i], word))
			return true;
	return false;
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
	s.follow = slash_dot || has_word(argc, argv, "follow=1");
	r = pack_tree(&s, &count, &e);
	if (r < 0 && !out.begun)
		return work_fail(&e, NULL);
	return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* --- PUT --- */
static ssize_t in_read(void *arg, void *p, size_t n)
{
	ssize_t k;

	(void)arg;
	do
		k = read(STDIN_FILENO, p, n);
	while (k < 0 && errno == EINTR);
	return k < 0 ? -errno : k;
}

/* agentd's word that the client has gone. */
static void on_term(int sig)
{
	unpack_abandon();
	_exit(128 + sig);
}

static int open_target(const char *path, bool parents, int *ret, struct err *e)
{
	int r = parents ? fd_mkdirs(path, 0777) : 0; /* less the umask */

	if (r == 0) {
		*ret = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
		r = *ret < 0 ? -errno : 0;
	}
	return r < 0 ? err_set(e, ERR_IO, -r, "%s", path) : 0;
}

static cJSON *counted(const struct unpack_count *count)
{
	cJSON *o = cJSON_CreateObject();

	if (o && jsn_add_u64(o, "members", count->members) && jsn_add_u64(o, "bytes", count->bytes))
		return o;
	cJSON_Delete(o);
	return NULL;
}

int archive_in(int argc, char **argv)
{
	const struct sigaction term = { .sa_handler = on_term };
	struct unpack_count count = { 0 };
	struct err e = ERR_INIT;
	AUTO_FD dir = -1;
	struct unpack_spec s = { .read = in_read, .tick = tick };
	int r;

	if (argc < 1)
		return work_error(500, 0, "no path");
	(void)sigaction(SIGTERM, &term, NULL);
	(void)sigaction(SIGPIPE, &term, NULL);
	if (has_word(argc, argv, "keep_owner=1"))
		s.flags |= UNPACK_OWNER;
	r = open_target(argv[0], has_word(argc, argv, "parents=1"), &dir, &e);
	s.dir = dir;
	if (r == 0)
		r = unpack_tree(&s, &count, &e);
	return r < 0 ? work_fail(&e, counted(&count)) : work_reply(200, counted(&count));
}
