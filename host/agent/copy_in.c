/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host/agent/copy_int.h"
#include "lib/jsn.h"
#include "lib/pack.h"

/* Into the guest: PUT /v1/archive with what lib/pack.c makes of SRC, or with the tar on standard input. */

#define BLOCK (64U << 10)

/* What the agent says it has extracted. */
static void read_count(const cJSON *j, struct copy_count *ret)
{
	ignore_result(jsn_u64(j, "members", 0, 1ULL << 53, &ret->members, NULL)); /* absent: 0 */
	ignore_result(jsn_u64(j, "bytes", 0, 1ULL << 53, &ret->bytes, NULL));
}

/*
 * R: what became of writing. When writing failed because the agent had answered, its answer tells more; else E stays.
 */
static int finish(struct copy_flow *f, int r, struct copy_count *ret, struct err *e)
{
	AUTO_JSN *j = NULL;

	if (r == 0 || r == -EPIPE || stream_failed(f->stream))
		r = stream_end(f->stream, &j, e);
	if (r == 0)
		read_count(j, ret);
	stream_free(f->stream);
	return r;
}

static int send_stdin(struct copy_flow *f, struct err *e)
{
	char *block = malloc(BLOCK);
	int r = block ? 0 : err_set(e, ERR_INTERNAL, ENOMEM, "copying");
	struct pollfd in = { .fd = STDIN_FILENO, .events = POLLIN };

	while (r == 0) {
		ssize_t k;

		if (poll(&in, 1, 0) == 0) { /* what is here goes out while there is no more */
			r = stream_turn(f->stream, STDIN_FILENO);
			continue;
		}
		k = read(STDIN_FILENO, block, BLOCK);
		if (k == 0)
			break;
		if (k > 0)
			r = copy_flow_write(f, block, (size_t)k);
		else if (errno != EINTR)
			r = err_set(e, ERR_IO, errno, "reading standard input");
		else if (f->spec->cancel && *f->spec->cancel)
			r = err_set(e, ERR_UNAVAILABLE, EINTR, "copying");
	}
	free(block);
	return r;
}

/* SRC as it is called here: ".." and the like by their real name. The caller frees it. */
static int source_base(const char *local, char ret[256], struct err *e)
{
	struct copy_path p;
	char *real;
	int r = copy_split(local, &p, e);

	if (r == 0 && !strcmp(p.base, "..")) {
		real = realpath(local, NULL);
		r = real ? copy_split(real, &p, e) : err_set(e, ERR_IO, errno, "%.400s", local);
		free(real);
	}
	if (r == 0)
		memcpy(ret, p.base, sizeof(p.base));
	return r;
}

static const char *more(const struct copy_spec *s)
{
	return s->flags & COPY_OWNER ? "&keep_owner=1" : "";
}

static int send_tree(const struct copy_spec *s, const char *into, const char *as,
		     struct copy_count *ret, struct err *e)
{
	struct copy_flow f = { .spec = s };
	struct pack_spec p = { .dir = AT_FDCWD,
			       .name = s->local,
			       .as = as,
			       .follow = (s->flags & COPY_FOLLOW) != 0,
			       .write = copy_flow_write,
			       .arg = &f };
	struct pack_count packed;
	int r = copy_open(s, "PUT", into, more(s), &f.stream, e);

	if (r < 0)
		return r;
	r = pack_tree(&p, &packed, e);
	return finish(&f, r, ret, e);
}

/* P->path is DST. */
static int send_file(const struct copy_spec *s, struct copy_plan *p, struct copy_count *ret,
		     struct err *e)
{
	int r = source_base(s->local, p->base, e);

	if (r == 0)
		r = copy_local_kind(s->local, (s->flags & COPY_FOLLOW) != 0, &p->from, e);
	if (r == 0 && p->from == COPY_MISSING)
		r = err_set(e, ERR_NOT_FOUND, 0, "%.400s: there is no such file here", s->local);
	if (r == 0)
		r = copy_guest_kind(s, p->path, true, &p->to, e);
	if (r == -ENOSYS)
		return copy_compat_in(s, p, ret, e);
	if (r == 0)
		r = copy_table(p, e);
	return r < 0 ? r : send_tree(s, p->into, p->as, ret, e);
}

int copy_in(const struct copy_spec *s, struct copy_count *ret, struct err *e)
{
	struct copy_flow f = { .spec = s };
	struct copy_plan *p;
	int r;

	*ret = (struct copy_count){ 0 };
	if (!strcmp(s->local, "-")) {
		r = copy_open(s, "PUT", s->guest, more(s), &f.stream, e);
		return r < 0 ? r : finish(&f, send_stdin(&f, e), ret, e);
	}
	r = copy_plan(s->guest, &p, e);
	if (r < 0)
		return r;
	r = send_file(s, p, ret, e);
	free(p);
	return r;
}
