/* SPDX-License-Identifier: Apache-2.0 */
#include "host/aws/guestdir.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "host/aws/dockerfile.h"
#include "lib/fd.h"

static bool is_packed(void *names, const char *path)
{
	return artefact_has(names, path);
}

/* A folder without one is told before anything is packed. */
static int read_dockerfile(const char *path, struct buf *ret, struct err *e)
{
	AUTO_FD dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct stat st;
	int r;

	if (dir < 0)
		return err_set(e, ERR_NOT_FOUND, errno, "%.200s", path);
	if (fstatat(dir, "Dockerfile", &st, 0) == 0 && !S_ISREG(st.st_mode))
		return err_set(e, ERR_INVALID, 0, "%.200s/Dockerfile is no file", path);
	r = fd_read_file(dir, "Dockerfile", ret);
	if (r == -ENOENT)
		return err_set(e, ERR_NOT_FOUND, 0,
			       "%.200s has no Dockerfile (asb image init makes a folder that has)",
			       path);
	return r < 0 ? err_set(e, ERR_IO, -r, "%.200s/Dockerfile", path) : 0;
}

int guestdir_read(const char *dir, const char *image, const volatile sig_atomic_t *cancel,
		  struct guestdir *ret, struct err *e)
{
	AUTO_BUF text, names;
	const struct dockerfile_context has = { is_packed, &names };
	int r;

	buf_init(&text, DOCKERFILE_MAX);
	buf_init(&names, ARTEFACT_NAMES_MAX);
	*ret = (struct guestdir){ .fault = ERR_INIT, .note = ERR_INIT };
	r = read_dockerfile(dir, &text, e);
	if (r < 0)
		return r;
	r = artefact_zip(dir, cancel, &ret->zip, &names, e);
	if (r < 0)
		return r;
	ignore_result(dockerfile_check(text.p ? text.p : "", text.len, &has, &ret->note,
				       &ret->fault)); /* the fault tells */
	sigv4_hash(ret->zip.p, ret->zip.len, ret->sha);
	r = artefact_key(image, ret->sha, ret->key);
	return r < 0 ? err_set(e, ERR_INTERNAL, -r, "the zip's name") : 0;
}

void guestdir_done(struct guestdir *g)
{
	buf_done(&g->zip);
}

int guestdir_refusal(const struct guestdir *g, struct err *e)
{
	return g->fault.code ? err_set(e, g->fault.code, 0,
				       "%s (--no-check builds it all the same)", g->fault.msg)
			     : 0;
}
