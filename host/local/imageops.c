/* SPDX-License-Identifier: Apache-2.0 */
#include "host/local/imageops.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "host/local/imagebuild.h"
#include "host/local/images.h"
#include "host/local/imagestore.h"
#include "host/local/imageuse.h"
#include "host/local/snapdir.h"
#include "host/local/template.h"
#include "host/local/vmdir.h"
#include "lib/str.h"

/*
 * What commands see of the images: the versions there are, joined with who uses them and with the templates of their
 * content. A removal looks at the users first and removes then; a sandbox that is created in between finds its image
 * gone when it starts, and is told so.
 */

struct walk {
	struct image_uses uses;
	char last[IMAGE_NAME_LEN + 1]; /* name of the version before: it was newer */
	int (*fn)(void *arg, const struct image_info *i);
	void *arg;
};

struct sum {
	const char *rootfs;
	uint64_t count, bytes;
};

static int add_template(void *arg, const struct template_info *t)
{
	struct sum *s = arg;

	if (strcmp(t->rootfs, s->rootfs) != 0)
		return 0;
	s->count++;
	s->bytes += t->bytes;
	return 0;
}

/* Of the user's images: the blob itself and its one link. */
static uint64_t unique_bytes(const struct image *i)
{
	struct stat st;

	if (i->installed || stat(i->rootfs, &st) < 0 || st.st_nlink > 2)
		return 0;
	return (uint64_t)st.st_blocks * 512;
}

static int give(struct walk *w, const struct image *i, const struct image_info *info,
		const char **users)
{
	struct image_info full = *info;
	struct sum s = { .rootfs = i->rootfs };
	size_t n = 0;

	for (size_t k = 0; k < w->uses.len; k++)
		if (image_use_means(&w->uses.all[k], i->name, i->version, info->newest))
			users[n++] = w->uses.all[k].name;
	users[n] = NULL;
	if (i->rootfs[0])
		ignore_result(template_each(add_template, &s)); /* never stops */
	full.used_by = users;
	full.templates = s.count;
	full.template_bytes = s.bytes;
	return w->fn(w->arg, &full);
}

static int on_image(void *arg, const struct image *i)
{
	struct walk *w = arg;
	const struct image_info info = { .name = i->name,
					 .version = i->version,
					 .newest = strcmp(w->last, i->name) != 0,
					 .installed = i->installed,
					 .sha256 = i->sha256,
					 .created = i->created,
					 .source = i->source,
					 .path = i->dir,
					 .broken = i->broken,
					 .bytes = i->bytes,
					 .unique_bytes = unique_bytes(i) };
	const char **users = malloc((w->uses.len + 1) * sizeof(*users));
	int r = users ? give(w, i, &info, users) : -ENOMEM;

	free(users);
	memcpy(w->last, i->name, sizeof(w->last));
	return r;
}

static int list(int (*fn)(void *arg, const struct image_info *i), void *arg, struct err *e)
{
	struct walk w = { .fn = fn, .arg = arg };
	int r = image_uses_find(&w.uses, e);

	if (r == 0)
		r = images_each(on_image, &w, e);
	image_uses_done(&w.uses);
	return r;
}

/* --- removing --- */
struct doomed {
	struct image_ref ref;
	struct image_ref *all; /* owned */
	size_t len;
	bool force, installed;
	struct err *err;
};

static int in_use(const struct image_info *i, struct err *e)
{
	struct image_users who = { .len = 0 };

	for (const char *const *u = i->used_by; *u; u++)
		image_users_add(&who, *u);
	(void)err_set(e, ERR_CONFLICT, 0, "%s:%llu is used by %s", i->name,
		      (unsigned long long)i->version, image_users_text(&who));
	return -EBUSY;
}

static int add_doomed(struct doomed *d, const struct image_info *i)
{
	struct image_ref *all = realloc(d->all, (d->len + 1) * sizeof(*all));

	if (!all)
		return err_set(d->err, ERR_INTERNAL, ENOMEM, "the images");
	d->all = all;
	all[d->len] = (struct image_ref){ .version = i->version };
	return str_format(all[d->len++].name, sizeof(all->name), "%s", i->name);
}

static int choose(void *arg, const struct image_info *i)
{
	struct doomed *d = arg;

	if (strcmp(i->name, d->ref.name) != 0 || (d->ref.version && d->ref.version != i->version))
		return 0;
	if (i->installed) {
		d->installed = true;
		return 0;
	}
	if (i->used_by[0] && !d->force)
		return in_use(i, d->err);
	return add_doomed(d, i);
}

static int none_to_remove(const struct doomed *d, struct err *e)
{
	if (d->installed) {
		(void)err_set(e, ERR_DENIED, 0, "'%s' belongs to the installation", d->ref.name);
		return -EPERM;
	}
	return err_set(e, ERR_NOT_FOUND, ENOENT, "there is no local image '%s%s'", d->ref.name,
		       d->ref.version ? " of that version" : "");
}

/* Its folder also when it cannot be read. */
static int remove_one(const struct image_ref *ref, struct err *e)
{
	struct image *i = calloc(1, sizeof(*i));
	char root[LOCAL_PATH_MAX];
	struct err ignored = ERR_INIT;
	int r = i ? images_root(root, e) : err_set(e, ERR_INTERNAL, ENOMEM, "the image");

	if (r == 0 && images_find(ref, i, &ignored) < 0)
		i->sha256[0] = '\0';
	if (r == 0)
		r = str_format(i->name, sizeof(i->name), "%s", ref->name);
	if (r == 0)
		r = str_format(i->dir, sizeof(i->dir), "%s/%s/%llu", root, ref->name,
			       (unsigned long long)ref->version);
	if (r == 0) {
		i->version = ref->version;
		r = imagestore_remove(i, e);
	}
	free(i);
	return r;
}

static int remove_images(const char *image, bool force, void (*fn)(void *arg, const char *image),
			 void *arg, struct err *e)
{
	struct doomed d = { .force = force, .err = e };
	char text[IMAGE_REF_MAX + 1];
	int r = image_ref_parse(image, &d.ref, e);

	if (r == 0)
		r = list(choose, &d, e);
	if (r == 0 && d.len == 0)
		r = none_to_remove(&d, e);
	for (size_t i = 0; i < d.len && r == 0; i++) {
		r = remove_one(&d.all[i], e);
		if (r == 0 && str_format(text, sizeof(text), "%s:%llu", d.all[i].name,
					 (unsigned long long)d.all[i].version) == 0)
			fn(arg, text);
	}
	free(d.all);
	return r;
}

const struct image_ops imageops_local = {
	.build = imagebuild,
	.list = list,
	.remove = remove_images,
};

/* --- pruning --- */
struct prune {
	unsigned flags;
	prune_fn *fn;
	void *arg;
	struct doomed doomed;
};

static int choose_unused(void *arg, const struct image_info *i)
{
	struct prune *p = arg;
	char text[IMAGE_REF_MAX + 1];

	if (i->installed || i->newest || i->used_by[0] ||
	    str_format(text, sizeof(text), "%s:%llu", i->name, (unsigned long long)i->version) < 0)
		return 0;
	p->fn(p->arg, "image", text, i->unique_bytes);
	return p->flags & PRUNE_DRY ? 0 : add_doomed(&p->doomed, i);
}

static int prune_images(unsigned flags, prune_fn *fn, void *arg, struct err *e)
{
	struct prune p = { .flags = flags, .fn = fn, .arg = arg, .doomed = { .err = e } };
	int r = list(choose_unused, &p, e);

	for (size_t i = 0; i < p.doomed.len && r == 0; i++)
		r = remove_one(&p.doomed.all[i], e);
	free(p.doomed.all);
	return r;
}

static void on_snapshot(void *arg, const char *name, uint64_t bytes)
{
	struct prune *p = arg;

	p->fn(p->arg, "snapshot", name, bytes);
}

int imageops_prune(unsigned flags, prune_fn *fn, void *arg, struct err *e)
{
	struct prune p = { .fn = fn, .arg = arg };
	int r = 0;

	if (flags & PRUNE_IMAGES)
		r = prune_images(flags, fn, arg, e);
	if (r == 0 && (flags & PRUNE_STALE))
		r = imagestore_collect(flags, fn, arg, e);
	if (flags & PRUNE_STALE) {
		vmdir_prune(flags, fn, arg);
		snapdir_collect(flags & PRUNE_DRY, on_snapshot, &p);
	}
	if (flags & (PRUNE_STALE | PRUNE_TEMPLATES))
		template_collect(flags, fn, arg);
	return r;
}
