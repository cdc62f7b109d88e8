/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host/agent/ask.h"
#include "host/agent/compat.h"
#include "host/agent/copy_int.h"
#include "lib/fd.h"
#include "lib/str.h"

/* Files by an agent that knows paths and contents only: one file, without its mode and owner. */

static const char no_tree[] = "copies single files only, neither directories nor archives";

static int check(const struct copy_spec *s, const char *path, struct err *e)
{
	if (s->flags & COPY_OWNER)
		return ask_unsupported(e, "cannot set or tell the owner of files (--archive)");
	if (!str_is_utf8(path, strlen(path)))
		return ask_unsupported(e, "takes paths of UTF-8 only");
	return 0;
}

static struct compat_file file_of(const struct copy_spec *s, const char *path)
{
	return (struct compat_file){
		.backend = s->backend, .id = s->id, .path = path, .cancel = s->cancel
	};
}

static int read_local(const struct copy_spec *s, struct buf *b, struct err *e)
{
	AUTO_FD fd = open(s->local, O_RDONLY | O_CLOEXEC | O_NONBLOCK |
					    (s->flags & COPY_FOLLOW ? 0 : O_NOFOLLOW));
	struct stat st;
	int r;

	if (fd < 0 && errno == ELOOP)
		return ask_unsupported(e, "makes no symbolic links (-L copies what one names)");
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_set(e, ERR_IO, errno, "%.400s", s->local);
	if (!S_ISREG(st.st_mode))
		return ask_unsupported(e, no_tree);
	r = fd_read_all(fd, b);
	if (r == -ENOSPC)
		return compat_too_big(s->local, e);
	return r < 0 ? err_set(e, ERR_IO, -r, "%.400s", s->local) : 0;
}

int copy_compat_in(const struct copy_spec *s, const struct copy_plan *p, struct copy_count *ret,
		   struct err *e)
{
	AUTO_BUF content = { .cap = COMPAT_FILE_MAX }, inside = { .cap = COPY_PATH_MAX + 1 };
	struct compat_file f = file_of(s, p->path);
	struct err why = ERR_INIT;
	int r = check(s, p->path, e);

	if (r == 0)
		r = read_local(s, &content, e);
	if (r < 0)
		return r;
	if (buf_addf(&inside, "%s/%s", p->path, p->base) < 0)
		return err_set(e, ERR_INVALID, ENAMETOOLONG, "%.100s...", p->path);
	if (p->path[strlen(p->path) - 1] == '/')
		f.path = inside.p;
	r = compat_write(&f, content.p ? content.p : "", content.len, &why);
	if (r == -EISDIR && f.path != inside.p) {
		why = (struct err)ERR_INIT;
		f.path = inside.p;
		r = compat_write(&f, content.p ? content.p : "", content.len, &why);
	}
	if (r < 0 && e)
		*e = why;
	if (r == 0)
		*ret = (struct copy_count){ .members = 1, .bytes = content.len };
	return r;
}

int copy_compat_out(const struct copy_spec *s, const struct copy_plan *p, struct copy_count *ret,
		    struct err *e)
{
	AUTO_BUF content = { .cap = COMPAT_FILE_MAX + 4 }, to = { .cap = 2 * COPY_PATH_MAX };
	struct compat_file f = file_of(s, s->guest);
	mode_t mask = umask(0);
	int r = check(s, s->guest, e);

	(void)umask(mask);
	if (r == 0)
		r = compat_read(&f, &content, e);
	if (r == -EISDIR)
		return ask_unsupported(e, no_tree);
	if (r == 0 && buf_addf(&to, "%s/%s", p->into, p->as) < 0)
		r = err_set(e, ERR_INVALID, ENAMETOOLONG, "%.100s...", p->into);
	if (r < 0)
		return r;
	r = fd_replace_file_lazy(to.p, content.p ? content.p : "", content.len, 0666 & ~mask);
	if (r < 0)
		return err_set(e, ERR_IO, -r, "%.400s", to.p);
	*ret = (struct copy_count){ .members = 1, .bytes = content.len };
	return 0;
}
