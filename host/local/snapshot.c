/* SPDX-License-Identifier: Apache-2.0 */
#include "host/local/snapshot.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host/local/snapdir.h"
#include "host/local/snapfile.h"
#include "lib/fd.h"
#include "lib/pretty.h"
#include "lib/str.h"

/* --- looking --- */
struct each {
	int (*fn)(void *arg, const struct snapshot_info *i);
	void *arg;
};

static int take_info(const struct snap_meta *m, int dirfd, struct snapshot_info *i)
{
	struct err e = ERR_INIT;
	int r = str_format(i->source, sizeof(i->source), "%s", m->config.name);

	if (r == 0)
		r = str_format(i->image, sizeof(i->image), "%s", m->config.image);
	i->memory = m->memory;
	i->cpus = m->config.cpus;
	i->memory_mib = m->config.memory_mib;
	i->created_s = m->created_s;
	for (int p = 0; p < SNAP_PARTS; p++)
		i->bytes += m->part[p].bytes;
	i->disk_bytes = snapdir_bytes(dirfd);
	if (r == 0 && snapdir_check(dirfd, m, &e) < 0)
		r = str_format(i->broken, sizeof(i->broken), "%.250s", e.msg);
	return r;
}

static int each_one(void *arg, const char *name)
{
	const struct each *each = arg;
	struct snapshot_info i = { .memory = false };
	char path[LOCAL_PATH_MAX];
	struct err e = ERR_INIT;
	struct snap_meta m;
	AUTO_FD dirfd = -1;
	int r = snapdir_open(name, path, &dirfd, &m, &e);

	if (str_format(i.name, sizeof(i.name), "%s", name) < 0 || e.code == ERR_NOT_FOUND)
		return 0; /* removed while we look */
	if (r == 0) {
		r = take_info(&m, dirfd, &i);
		snap_meta_done(&m);
	} else {
		r = str_format(i.broken, sizeof(i.broken), "%.250s", e.msg);
	}
	return r < 0 ? r : each->fn(each->arg, &i);
}

static int list(int (*fn)(void *arg, const struct snapshot_info *i), void *arg, struct err *e)
{
	struct each each = { fn, arg };

	return snapdir_each(each_one, &each, e);
}

static int inspect(const char *name, char **ret_json, struct err *e)
{
	char path[LOCAL_PATH_MAX];
	struct snap_meta m;
	AUTO_FD dirfd = -1;
	AUTO_JSN *j = NULL;
	AUTO_BUF b;
	int r = snapdir_open(name, path, &dirfd, &m, e);

	buf_init(&b, SNAP_META_MAX);
	if (r < 0)
		return r;
	j = snap_meta_json(&m, true);
	snap_meta_done(&m);
	r = j && jsn_add_str(j, "path", path) && jsn_add_u64(j, "disk_bytes", snapdir_bytes(dirfd))
		    ? pretty_json(j, &b)
		    : -ENOMEM;
	*ret_json = r == 0 ? buf_take(&b) : NULL;
	return *ret_json ? 0 : err_set(e, ERR_INTERNAL, ENOMEM, "inspect");
}

/* --- to a file and back --- */
static int save(const char *name, int fd, const struct progress *p, struct err *e)
{
	char path[LOCAL_PATH_MAX];
	struct snap_meta m;
	AUTO_FD dirfd = -1;
	int r = snapdir_open(name, path, &dirfd, &m, e);

	if (r < 0)
		return r;
	r = snapfile_write(dirfd, &m, fd, p, e);
	snap_meta_done(&m);
	return r;
}

/* Without the parts that are not taken over. */
static void forget_memory(struct snap_meta *m)
{
	m->memory = m->based = false;
	for (int p = 0; p < SNAP_PARTS; p++)
		if (p != SNAP_DISK)
			m->part[p] = (struct snap_part_meta){ .there = false };
}

static int check_fits(struct snap_meta *m, bool disk_only, struct err *e)
{
	struct snap_place *place = malloc(sizeof(*place));
	int r = place ? snapuse_fits(m, m->memory && !disk_only, place, e)
		      : err_set(e, ERR_INTERNAL, ENOMEM, "the snapshot");

	free(place);
	return r;
}

static int load_into(struct snap_in *in, struct snap_meta *m, bool disk_only,
		     const struct progress *p, struct err *e)
{
	struct snap_new new;
	int r = snapdir_begin(m->name, &new, e);

	if (r < 0)
		return r;
	r = snapfile_take(in, m, new.dirfd, disk_only, p, e);
	if (disk_only)
		forget_memory(m);
	if (r == 0)
		r = snapdir_publish(&new, m, e);
	snapdir_abort(&new);
	return r;
}

static int load(int fd, const char *name, unsigned flags, const struct progress *p,
		char ret_name[SANDBOX_NAME_MAX + 1], struct err *e)
{
	const bool disk_only = flags & SNAPSHOT_DISK;
	struct snap_in *in;
	struct snap_meta m;
	struct snap_fd from = { fd, p ? p->cancel : NULL };
	int r = snapfile_open(snapfile_read_fd, &from, &in, &m, e);

	if (r < 0)
		return r;
	if (name)
		r = str_format(m.name, sizeof(m.name), "%s", name);
	if (r == 0)
		r = check_fits(&m, disk_only, e);
	if (r == 0)
		r = load_into(in, &m, disk_only, p, e);
	if (r == 0)
		r = str_format(ret_name, SANDBOX_NAME_MAX + 1, "%s", m.name);
	snap_meta_done(&m);
	snapfile_close(in);
	return r;
}

const struct snapshot_ops snapshots_local = {
	.create = snapmake_create,
	.restore = snapuse_restore,
	.list = list,
	.inspect = inspect,
	.remove = snapdir_remove,
	.save = save,
	.load = load,
};
