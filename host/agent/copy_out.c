/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host/agent/copy_int.h"
#include "lib/fd.h"
#include "lib/str.h"
#include "lib/unpack.h"

/*
 * Out of the guest: GET /v1/archive, extracted by lib/unpack.c or written to standard output. The guest is hostile: whatever it says of
 * its files, only the name that was asked for is taken, and it lands under the name that was decided on here.
 */

#define BLOCK (64U << 10)

/* When the stream failed, it knows better why than who read it. */
static int finish(struct copy_flow *f, int r, struct err *e)
{
	if (r < 0 && stream_failed(f->stream))
		r = stream_end(f->stream, NULL, e);
	stream_free(f->stream);
	return r;
}

static int to_stdout(struct copy_flow *f, struct err *e)
{
	char *block = malloc(BLOCK);
	ssize_t k = 1;
	int r = block ? 0 : err_set(e, ERR_INTERNAL, ENOMEM, "copying");

	while (r == 0 && k > 0) {
		k = copy_flow_read(f, block, BLOCK);
		if (k > 0)
			r = fd_write_all(STDOUT_FILENO, block, (size_t)k);
		if (r < 0)
			r = err_set(e, ERR_IO, -r, "writing to standard output");
	}
	free(block);
	return r < 0 ? r : (int)k;
}

static const char *follow(const struct copy_spec *s)
{
	return s->flags & COPY_FOLLOW ? "&follow=1" : "";
}

static int extract(const struct copy_spec *s, const struct copy_plan *p, struct copy_count *ret,
		   struct err *e)
{
	AUTO_FD dir = open(p->into, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct copy_flow f = { .spec = s };
	struct unpack_spec u = { .dir = dir,
				 .from = p->base,
				 .to = strcmp(p->as, ".") != 0 ? p->as : NULL,
				 .flags = UNPACK_NO_SETID,
				 .read = copy_flow_read,
				 .arg = &f };
	struct unpack_count count;
	int r;

	if (dir < 0)
		return err_set(e, errno == ENOENT ? ERR_NOT_FOUND : ERR_IO, errno, "%.400s",
			       p->into);
	if (s->flags & COPY_OWNER)
		u.flags |= UNPACK_OWNER;
	r = copy_open(s, "GET", s->guest, follow(s), &f.stream, e);
	if (r < 0)
		return r;
	r = unpack_tree(&u, &count, e);
	*ret = (struct copy_count){ count.members, count.bytes };
	return finish(&f, r, e);
}

/* P->path is DST, P->to what it is. */
static int to_path(const struct copy_spec *s, struct copy_plan *p, struct copy_count *ret,
		   struct err *e)
{
	struct copy_path src;
	bool compat;
	int r = copy_split(s->guest, &src, e);

	if (r < 0)
		return r;
	r = copy_guest_kind(s, memcpy(p->dir, s->guest, strlen(s->guest) + 1),
			    (s->flags & COPY_FOLLOW) != 0, &p->from, e);
	compat = r == -ENOSYS;
	if (compat) {
		p->from = COPY_FILE;
		r = 0;
	}
	if (r == 0 && p->from == COPY_MISSING)
		r = err_set(e, ERR_NOT_FOUND, 0, "%.400s: there is no such file in the sandbox",
			    s->guest);
	if (r < 0)
		return r;
	memset(p->dir, 0, sizeof(p->dir));
	/* the agent calls ".." "." as well */
	ignore_result(str_format(p->base, sizeof(p->base), "%s",
				 !strcmp(src.base, "..") ? "." : src.base)); /* it fits */
	r = copy_table(p, e);
	if (r < 0)
		return r;
	return compat ? copy_compat_out(s, p, ret, e) : extract(s, p, ret, e);
}

/* A link to a file is replaced by what it names. */
static int plan_local(const char *local, struct copy_plan **ret, struct err *e)
{
	enum copy_kind to;
	char *real = NULL;
	int r = copy_local_kind(local, true, &to, e);

	if (r == 0 && to == COPY_FILE) {
		real = realpath(local, NULL);
		r = real ? 0 : err_set(e, ERR_IO, errno, "%.400s", local);
	}
	if (r == 0)
		r = copy_plan(real ? real : local, ret, e);
	if (r == 0)
		(*ret)->to = to;
	free(real);
	return r;
}

int copy_out(const struct copy_spec *s, struct copy_count *ret, struct err *e)
{
	struct copy_flow f = { .spec = s };
	struct copy_plan *p = NULL;
	int r;

	*ret = (struct copy_count){ 0 };
	if (!strcmp(s->local, "-")) {
		r = copy_open(s, "GET", s->guest, follow(s), &f.stream, e);
		return r < 0 ? r : finish(&f, to_stdout(&f, e), e);
	}
	r = plan_local(s->local, &p, e);
	if (r < 0 || !p)
		return r < 0 ? r : -ENOMEM;
	r = to_path(s, p, ret, e);
	free(p);
	return r;
}
