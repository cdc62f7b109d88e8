/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "host/local/copy.h"
#include "host/local/saved.h"
#include "host/local/snapdir.h"
#include "host/local/snapshot.h"
#include "host/local/template.h"
#include "host/local/vmfile.h"
#include "lib/fd.h"
#include "lib/loop.h"
#include "lib/str.h"

/*
 * A snapshot is what a branch copies (copy.h), kept. Memory is linked, not copied: nobody writes to those files any more;
 * the same for the memory of a template below it, so that may go. What has to be looked up is looked up before the
 * guest is stopped, and checksums are taken when it runs again.
 */

struct making {
	struct copy copy;
	struct snap_new new;
	struct snap_meta meta;
	struct snap_place place;
};

static int link_part(struct making *k, int dirfd, const char *from, enum snap_part p, struct err *e)
{
	if (linkat(dirfd, from, k->new.dirfd, snap_part_names[p], 0) < 0)
		return err_set(e, ERR_IO, errno, "%s of the snapshot", snap_part_names[p]);
	k->meta.part[p].there = true;
	return 0;
}

static int put_memory(struct making *k, struct err *e)
{
	const struct vm_source *from = &k->copy.from;
	char devices[128], ram[128];
	int r = str_format(devices, sizeof(devices), "%s/devices", from->saved);

	if (r == 0)
		r = str_format(ram, sizeof(ram), "%s/ram", from->saved);
	if (r < 0)
		return err_set(e, ERR_INTERNAL, -r, "the copy");
	r = link_part(k, from->dirfd, devices, SNAP_DEVICES, e);
	if (r == 0)
		r = link_part(k, from->dirfd, ram, SNAP_RAM, e);
	if (r == 0 && k->meta.based)
		r = link_part(k, from->dirfd, TEMPLATE_RAM, SNAP_BASE, e);
	return r;
}

static int put_disk(struct making *k, struct err *e)
{
	int r;

	if (k->copy.own_disk)
		return link_part(k, AT_FDCWD, k->copy.from.disk, SNAP_DISK, e);
	r = vmfile_copy(k->copy.from.disk, k->new.dirfd, snap_part_names[SNAP_DISK]);
	k->meta.part[SNAP_DISK].there = r == 0;
	return r < 0 ? err_set(e, ERR_IO, -r, "a copy of %s", k->copy.from.disk) : 0;
}

/* What the copy says of itself, which must be true of what is found here: of another QEMU we would note the wrong
 * version. */
static int take_state(struct making *k, struct err *e)
{
	const char *accel = k->copy.accel;
	char fit[TEMPLATE_KEY_LEN + 1];
	struct saved saved = { .fit = NULL };
	AUTO_FD fd = openat(k->copy.from.dirfd, k->copy.from.saved,
			    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	int r = fd < 0 ? err_set(e, ERR_IO, errno, "the copy") : 0;

	if (r == 0)
		r = template_fit(k->place.qemu, &k->place.share, &k->copy.config,
				 strcmp(accel, "kvm") == 0, fit, e);
	if (r == 0)
		r = saved_read_in(
			fd,
			"the sandbox's memory is of another QEMU, CPU or image than are here now: only its "
			"disk can be kept (--disk-only)",
			fit, &saved, e);
	if (r == 0)
		r = fit_here(k->place.qemu, &k->copy.config, accel, &k->meta.fit, e);
	k->meta.memory = true;
	k->meta.based = saved.based;
	k->meta.balloon = saved.balloon;
	return r;
}

static int take_config(struct making *k, struct err *e)
{
	int r;

	k->meta.config = k->copy.config;
	k->copy.config.env = NULL; /* handed on */
	memcpy(k->meta.rootfs, k->place.rootfs, sizeof(k->meta.rootfs));
	r = str_format(k->meta.config.image, sizeof(k->meta.config.image), "%s", k->place.image);
	return r < 0 ? err_set(e, ERR_INTERNAL, -r, "the image") : 0;
}

static int take_sums(struct making *k, const struct progress *p, struct err *e)
{
	for (int i = 0; i < SNAP_PARTS; i++) {
		struct snap_part_meta *part = &k->meta.part[i];
		AUTO_FD fd = -1;
		int r;

		if (!part->there)
			continue;
		fd = openat(k->new.dirfd, snap_part_names[i], O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
		r = fd < 0 ? -errno
			   : digest_file(fd, p ? p->cancel : NULL, &part->bytes, part->sum);
		if (r < 0)
			return err_set(e, r == -EINTR ? ERR_UNAVAILABLE : ERR_IO, -r,
				       "%s of the snapshot", snap_part_names[i]);
	}
	return 0;
}

static void tell(const struct progress *p, const char *stage, int64_t begun)
{
	if (p && p->fn)
		p->fn(p->arg, stage, (loop_now() - begun) / 1000000);
}

/* From the copy to the parts of the snapshot; the copy is not needed any more then. */
static int gather(struct making *k, const char *id, bool memory, int64_t deadline_ns, struct err *e)
{
	const unsigned how = COPY_SYNC | (memory ? 0 : COPY_DISK);
	char mark[SANDBOX_ID_MAX + 1];
	int r = vmdir_new_id(mark, e);

	if (r < 0)
		return r;
	r = copy_take(&k->copy, id, mark, how, deadline_ns, e);
	if (r == 0 && memory)
		r = take_state(k, e);
	if (r == 0 && memory)
		r = put_memory(k, e);
	if (r == 0)
		r = put_disk(k, e);
	if (r == 0)
		r = take_config(k, e);
	copy_drop(&k->copy);
	return r;
}

static int look_up(struct making *k, const char *id, struct err *e)
{
	struct sandbox_info i;
	int r = vmdir_info(id, &i, e);

	return r < 0 ? r : snapuse_find(i.image, &k->place, e);
}

int snapmake_create(const char *id, const char *name, unsigned flags, const struct progress *p,
		    int64_t deadline_ns, struct err *e)
{
	struct making *k = calloc(1, sizeof(*k));
	const int64_t begun = loop_now();
	int r = k ? look_up(k, id, e) : err_set(e, ERR_INTERNAL, ENOMEM, "the snapshot");

	if (r == 0)
		r = snapdir_begin(name, &k->new, e);
	if (r < 0) {
		free(k);
		return r;
	}
	k->meta.created_s = time(NULL);
	r = str_format(k->meta.name, sizeof(k->meta.name), "%s", name);
	if (r == 0)
		r = gather(k, id, !(flags & SNAPSHOT_DISK), deadline_ns, e);
	tell(p, "copy", begun);
	if (r == 0)
		r = take_sums(k, p, e);
	tell(p, "checksums", begun);
	if (r == 0)
		r = snapdir_publish(&k->new, &k->meta, e);
	snapdir_abort(&k->new);
	snap_meta_done(&k->meta);
	free(k);
	return r;
}
