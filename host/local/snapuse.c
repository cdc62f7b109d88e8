/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host/local/accel.h"
#include "host/local/children.h"
#include "host/local/qemubin.h"
#include "host/local/saved.h"
#include "host/local/snapdir.h"
#include "host/local/snapshot.h"
#include "host/local/template.h"
#include "lib/fd.h"
#include "lib/jsn.h"
#include "lib/str.h"

/*
 * A sandbox begins with a snapshot as a child of a branch does: its folder is that of a suspended one, with hard links to
 * the memory, so the snapshot may be removed at any time. Whether that memory can go on here is asked in words that
 * are true on every machine (fit.h); what the new folder says of it are those of this one.
 */

#define IMAGE_JSON_MAX 65536

/* image.json beside the file system says which it is. */
static int read_image(const char *rootfs, struct snap_place *ret, struct err *e)
{
	AUTO_BUF b;
	AUTO_JSN *j = NULL;
	char path[LOCAL_PATH_MAX];
	const char *name = "", *sum = "";
	uint64_t version = 0;
	int r = str_format(path, sizeof(path), "%.*s/image.json",
			   (int)(strrchr(rootfs, '/') - rootfs), rootfs);

	buf_init(&b, IMAGE_JSON_MAX);
	if (r == 0)
		r = fd_read_file(AT_FDCWD, path, &b);
	if (r < 0)
		return err_set(e, ERR_IO, -r, "%s", path);
	j = jsn_parse(b.p ? b.p : "", b.len, e);
	if (!j || jsn_str(j, "name", &name, e) < 0 || jsn_str(j, "sha256", &sum, e) < 0 ||
	    jsn_u64(j, "version", 1, UINT32_MAX, &version, e) < 0)
		return err_wrap(e, "%s", path);
	if (strlen(sum) != 64 || !*name || !version ||
	    str_format(ret->image, sizeof(ret->image), "%s:%llu", name,
		       (unsigned long long)version) < 0)
		return err_set(e, ERR_INVALID, EINVAL,
			       "%s: a snapshot needs its \"name\", \"version\" and \"sha256\"",
			       path);
	memcpy(ret->rootfs, sum, sizeof(ret->rootfs));
	return 0;
}

int snapuse_find(const char *image, struct snap_place *ret, struct err *e)
{
	int r = share_find(image, &ret->share, e);

	if (r == 0)
		r = qemubin_find(ret->qemu, e);
	return r < 0 ? r : read_image(ret->share.rootfs, ret, e);
}

int snapuse_fits(const struct snap_meta *m, bool memory, struct snap_place *ret, struct err *e)
{
	struct fit here;
	const char *accel;
	int r = snapuse_find(m->config.image, ret, e);

	if (r < 0)
		return err_wrap(e, "it needs the image %s (%.12s)", m->config.image, m->rootfs);
	if (strcmp(ret->rootfs, m->rootfs) != 0) {
		(void)err_set(
			e, ERR_NOT_FOUND, 0,
			"it needs the image %s whose root file system is %.12s, and the one here is %.12s",
			m->config.image, m->rootfs, ret->rootfs);
		return -ENOENT;
	}
	if (!memory)
		return 0;
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
