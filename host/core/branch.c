/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "host/core/core.h"
#include "lib/loop.h"
#include "lib/str.h"

/* As with create: the names are recorded before the machines are begun. */

static int record(const struct backend *b, const char *image, struct core_child *c,
		  const char *name, struct err *e)
{
	unsigned char raw[8];
	char hex[2 * sizeof(raw) + 1], img[SANDBOX_IMAGE_MAX + 1];
	struct state_record r = { .name = c->name, .microvm_id = c->id, .image_arn = img };

	if (getrandom(raw, sizeof(raw), 0) != (ssize_t)sizeof(raw))
		return err_set(e, ERR_INTERNAL, errno, "getrandom");
	str_hex(raw, sizeof(raw), hex);
	if (str_format(c->id, sizeof(c->id), "%s-%s", b->name, hex) < 0 ||
	    str_format(img, sizeof(img), "%s", image) < 0 ||
	    str_format(c->name, sizeof(c->name), "%s", name) < 0)
		return err_set(e, ERR_INVALID, ENAMETOOLONG, "the sandbox's name");
	c->child = (struct sandbox_child){ .name = c->name, .id = c->id };
	return state_add(&r, e);
}

static void forget(const struct core_child *c)
{
	ignore_result(state_remove(c->name, c->id, NULL)); /* after a failure that is told */
}

/* Ends one whose name was removed while it was being made. */
static int check(const struct backend *b, const struct core_child *c, struct err *e)
{
	int r = core_still_recorded(c->name, c->id, e);

	if (r < 0)
		ignore_result(b->remove(c->id, NULL)); /* that there is no name is told */
	return r;
}

int core_branch(const struct core_named *src, const char *const *names, size_t n,
		struct progress *p, int64_t limit_ns, struct core_child *ret, struct err *e)
{
	struct sandbox_child *children = calloc(n, sizeof(*children));
	size_t made = 0;
	int r = 0;

	if (!children)
		return err_set(e, ERR_INTERNAL, ENOMEM, "the copies");
	if (src->backend->collect)
		src->backend->collect();
	core_cancel_begin(p);
	for (; made < n && r == 0; made += r == 0) {
		r = record(src->backend, src->record.image_arn, &ret[made], names[made], e);
		children[made] = ret[made].child;
	}
	if (r == 0)
		r = src->backend->branch(src->record.microvm_id, children, n, p,
					 loop_now() + limit_ns, e);
	core_cancel_end();
	for (size_t i = 0; i < made; i++) {
		ret[i].child = children[i];
		if (r == 0 && ret[i].child.result == 0)
			ret[i].child.result = check(src->backend, &ret[i], &ret[i].child.err);
		if (r < 0 || ret[i].child.result < 0)
			forget(&ret[i]);
	}
	free(children);
	return r;
}

struct wanted {
	const char *name;
	struct snapshot_info info;
	bool found;
};

static int match(void *arg, const struct snapshot_info *i)
{
	struct wanted *w = arg;

	w->found = strcmp(i->name, w->name) == 0;
	if (w->found)
		w->info = *i;
	return w->found;
}

/* The image of the record; of a snapshot that is not there or broken the backend tells more. */
static int image_of(const struct backend *b, const char *snapshot, char ret[SANDBOX_IMAGE_MAX + 1],
		    struct err *e)
{
	struct wanted w = { .name = snapshot };
	int r = b->snapshots->list(match, &w, e);

	if (r < 0)
		return r;
	if (!w.found)
		return err_set(e, ERR_NOT_FOUND, ENOENT, "there is no snapshot named '%s'",
			       snapshot);
	return str_format(ret, SANDBOX_IMAGE_MAX + 1, "%s", w.info.image);
}

int core_restore(const struct backend *b, const char *snapshot, const char *name, unsigned flags,
		 struct progress *p, int64_t limit_ns, struct core_child *ret, struct err *e)
{
	char image[SANDBOX_IMAGE_MAX + 1];
	int r = image_of(b, snapshot, image, e);

	if (r < 0)
		return r;
	if (b->collect)
		b->collect();
	core_cancel_begin(p);
	r = record(b, image, ret, name, e);
	if (r == 0) {
		r = b->snapshots->restore(snapshot, &ret->child, flags, p, loop_now() + limit_ns,
					  e);
		if (r == 0)
			r = check(b, ret, e);
		if (r < 0)
			forget(ret);
	}
	core_cancel_end();
	return r;
}
