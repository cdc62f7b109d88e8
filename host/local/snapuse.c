/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host/local/accel.h"
#include "host/local/children.h"
#include "host/local/images.h"
#include "host/local/qemubin.h"
#include "host/local/saved.h"
#include "host/local/snapdir.h"
#include "host/local/snapshot.h"
#include "host/local/template.h"
#include "lib/fd.h"
#include "lib/str.h"

/*
 * A sandbox begins with a snapshot as a child of a branch does: its folder is that of a suspended one, with hard links to
 * the memory, so the snapshot may be removed at any time. Whether that memory can go on here is asked in words that
 * are true on every machine (fit.h); what the new folder says of it are those of this one.
 */

/* The name of an image with its version is that of one machine; its content is what a snapshot needs. */
struct wanted {
	const char *sum;
	struct image *ret;
};

static int has_sum(void *arg, const struct image *i)
{
	struct wanted *w = arg;

	if (i->broken[0] || strcmp(i->sha256, w->sum) != 0)
		return 0;
	*w->ret = *i;
	return 1;
}

static int find_image(const char *name, const char *sum, struct image *ret, struct err *e)
{
	struct wanted w = { sum, ret };
	struct image_ref ref;
	struct err why = ERR_INIT;
	int r = image_ref_parse(name, &ref, &why);

	if (r == 0)
		r = images_find(&ref, ret, &why);
	if (r == 0 && (!sum || strcmp(ret->sha256, sum) == 0))
		return 0;
	if (sum && images_each(has_sum, &w, NULL) == 1)
		return 0;
	if (r == 0)
		(void)err_set(&why, ERR_NOT_FOUND, 0,
			      "the image %s here is another one (its root file system is %.12s)",
			      name, ret->sha256);
	if (sum)
		(void)err_wrap(&why, "it needs the image %s, root file system %.12s", name, sum);
	if (e)
		*e = why;
	return -ENOENT;
}

static int find(const char *name, const char *sum, struct snap_place *ret, struct err *e)
{
	struct image *i = malloc(sizeof(*i));
	int r = i ? find_image(name, sum, i, e) : err_set(e, ERR_INTERNAL, ENOMEM, "the image");

	if (r == 0 && strlen(i->sha256) != sizeof(ret->rootfs) - 1)
		r = err_set(
			e, ERR_INVALID, EINVAL,
			"a snapshot needs the \"sha256\" of its image %s, which %s/image.json lacks",
			name, i->dir);
	if (r == 0) {
		memcpy(ret->rootfs, i->sha256, sizeof(ret->rootfs));
		r = str_format(ret->image, sizeof(ret->image), "%s:%llu", i->name,
			       (unsigned long long)i->version);
	}
	free(i);
	if (r == 0)
		r = share_find(ret->image, &ret->share, e);
	return r < 0 ? r : qemubin_find(ret->qemu, e);
}

int snapuse_find(const char *image, struct snap_place *ret, struct err *e)
{
	return find(image, NULL, ret, e);
}

int snapuse_fits(struct snap_meta *m, bool memory, struct snap_place *ret, struct err *e)
{
	struct fit here;
	const char *accel;
	int r = find(m->config.image, m->rootfs, ret, e);

	if (r == 0)
		r = str_format(m->config.image, sizeof(m->config.image), "%s", ret->image);
	if (r < 0 || !memory)
		return r;
	accel = accel_choose(ret->qemu, ret->share.kernel) == ACCEL_TCG ? "tcg" : "kvm";
	r = fit_here(ret->qemu, &m->config, accel, &here, e);
	return r < 0 ? r : fit_check(&m->fit, &here, e);
}

/* Device state goes to QEMU, which believes it; memory is checked by length and time alone, and by save. */
static int check(int dirfd, const struct snap_meta *m, bool memory, struct err *e)
{
	AUTO_FD fd = -1;
	char sum[DIGEST_LEN + 1];
	uint64_t bytes;
	int r = snapdir_check(dirfd, m, e);

	if (r < 0 || !memory)
		return r;
	fd = openat(dirfd, snap_part_names[SNAP_DEVICES], O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	r = fd < 0 ? -errno : digest_file(fd, NULL, &bytes, sum);
	if (r < 0)
		return err_set(e, ERR_IO, -r, "devices of the snapshot");
	if (strcmp(sum, m->part[SNAP_DEVICES].sum) == 0)
		return 0;
	(void)err_set(e, ERR_CONFLICT, 0, "devices of the snapshot is damaged");
	return -ESTALE;
}

static int fill(const struct snap_meta *m, const struct snap_place *place, bool memory, int dirfd,
		const char *path, struct sandbox_child *child, struct err *e)
{
	char fit[TEMPLATE_KEY_LEN + 1] = "", disk[LOCAL_PATH_MAX];
	const struct saved state = { .fit = fit, .balloon = m->balloon, .based = m->based };
	const struct vm_source from = {
		.disk = disk, .saved = memory ? "." : NULL, .dirfd = dirfd, .state = &state
	};
	int r = str_format(disk, sizeof(disk), "%s/%s", path, snap_part_names[SNAP_DISK]);

	if (r < 0)
		return err_set(e, ERR_INVALID, -r, "%s", path);
	if (memory)
		r = template_fit(place->qemu, &place->share, &m->config,
				 strcmp(m->fit.accel, "kvm") == 0, fit, e);
	if (r == 0)
		children_fill(&m->config, &from, child, 1);
	return r;
}

static int restore(const char *name, struct snap_place *place, struct sandbox_child *child,
		   unsigned flags, struct err *e)
{
	char path[LOCAL_PATH_MAX];
	struct snap_meta m;
	AUTO_FD dirfd = -1;
	bool memory;
	int r = snapdir_open(name, path, &dirfd, &m, e);

	if (r < 0)
		return r;
	memory = m.memory && !(flags & SNAPSHOT_DISK);
	r = snapuse_fits(&m, memory, place, e);
	if (r < 0)
		(void)err_wrap(e, "snapshot '%s'", name); /* R says more */
	if (r == 0)
		r = check(dirfd, &m, memory, e);
	if (r == 0)
		r = fill(&m, place, memory, dirfd, path, child, e);
	snap_meta_done(&m);
	return r;
}

int snapuse_restore(const char *name, struct sandbox_child *child, unsigned flags,
		    const struct progress *p, int64_t deadline_ns, struct err *e)
{
	struct snap_place *place = malloc(sizeof(*place));
	int r = place ? restore(name, place, child, flags, e)
		      : err_set(e, ERR_INTERNAL, ENOMEM, "the snapshot");

	free(place);
	if (r < 0)
		return r;
	children_start(child, 1, p, deadline_ns);
	if (child->result < 0 && e)
		*e = child->err;
	return child->result;
}
