/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "host/local/expiry.h"
#include "host/local/saved.h"
#include "host/local/template.h"
#include "host/local/tree.h"
#include "host/local/vmdir.h"
#include "host/state/state.h"
#include "lib/fd.h"
#include "lib/loop.h"
#include "lib/str.h"

/*
 * What killed processes left behind. A folder that somebody holds is never touched. One that nobody
 * holds and that was never kept belongs to a create whose process is dead: it goes, and its name
 * with it. One that was kept goes only when no record names it any more.
 *
 * Two moments of a create look like that and are not: a hidden folder whose lock is not yet taken,
 * and a record whose folder is not yet made. Whoever is in one of them holds the lock <state>/local/making, shared. If it can be
 * had alone, nobody is, and such things are left over. Else the records wait for the next time, and so do hidden folders
 * until they are YOUNG_S old.
 */

#define MAKING	    "making"
#define MAKING_STEP 5000000L /* ns */
#define MAKING_NS   1000000000LL
#define YOUNG_S	    10
#define RECORDS_MAX (4U << 20)

static int making = -1;

/* Who is recorded: " <id> <name>\n" for each of ours. */
struct records {
	struct buf text;
	bool known;   /* false: the state file could not be read, so everything kept is wanted */
	bool settled; /* nobody is about to make a folder */
};

static int note(void *arg, const struct state_record *r)
{
	struct records *rec = arg;

	if (!vmdir_is_id(r->microvm_id))
		return 0;
	return buf_addf(&rec->text, " %s %s\n", r->microvm_id, r->name);
}

/* Where the name of ID's record begins; NULL when there is none. */
static const char *find(const struct records *rec, const char *id)
{
	char key[SANDBOX_ID_MAX + 3];
	const char *at;

	if (!rec->text.p || str_format(key, sizeof(key), " %s ", id) < 0)
		return NULL;
	at = strstr(rec->text.p, key);
	return at ? at + strlen(key) : NULL;
}

static void forget(const struct records *rec, const char *id)
{
	const char *at = find(rec, id);
	char name[SANDBOX_NAME_MAX + 1];

	if (at && str_format(name, sizeof(name), "%.*s", (int)strcspn(at, "\n"), at) == 0)
		ignore_result(state_remove(name, id, NULL)); /* the next collect tries again */
}

struct collect {
	const char *root;
	int rootfd;
	unsigned flags; /* of prune_flags */
	prune_fn *fn;	/* may be NULL */
	void *arg;
};

static void tell(const struct collect *c, const char *name)
{
	if (c->fn)
		c->fn(c->arg, "sandbox", name, tree_own(c->rootfd, name));
}

static void tell_rest(const struct collect *c, int dirfd, const char *id, const char *rest)
{
	char what[SANDBOX_ID_MAX + 32];

	if (c->fn && str_format(what, sizeof(what), "%s/%s", id, rest) == 0)
		c->fn(c->arg, "memory", what, tree_own(dirfd, rest));
}

/* Memory that a supervisor which was killed has half written, and such that could not be removed. */
static void collect_rest(const struct collect *c, int dirfd, const char *id)
{
	AUTO_FD lock = -1; /* one that lives has it */
	int gone = saved_gone(dirfd);

	if (gone >= 0)
		tell_rest(c, dirfd, id, SAVED_GONE);
	if (gone >= 0 && !(c->flags & PRUNE_DRY)) { /* or the next */
		ignore_result(fd_remove_children(fd_take(&gone)));
		ignore_result(unlinkat(dirfd, SAVED_GONE, AT_REMOVEDIR));
	}
	fd_close(&gone);
	if (faccessat(dirfd, SAVED_NEW, F_OK, AT_SYMLINK_NOFOLLOW) < 0 ||
	    vmdir_lock(dirfd, 0, &lock) < 0)
		return;
	tell_rest(c, dirfd, id, SAVED_NEW);
	if (!(c->flags & PRUNE_DRY))
		ignore_result(fd_remove_tree_at(dirfd, SAVED_NEW));
}

static void collect_folder(const struct collect *c, const char *name, const struct records *rec)
{
	const bool hidden = str_starts(name, VMDIR_HIDDEN), gone = str_starts(name, VMDIR_GONE);
	const char *id = hidden ? name + sizeof(VMDIR_HIDDEN) - 1
			 : gone ? name + sizeof(VMDIR_GONE) - 1
				: name;
	char path[LOCAL_PATH_MAX];
	AUTO_FD dirfd = -1;
	AUTO_FD lock = -1;
	struct stat st;

	if (!vmdir_is_id(id) || str_format(path, sizeof(path), "%s/%s", c->root, name) < 0)
		return;
	if (gone) { /* whoever was at it may be so still: then two are */
		tell(c, name);
		if (!(c->flags & PRUNE_DRY))
			ignore_result(fd_remove_tree(path));
		return;
	}
	dirfd = openat(c->rootfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dirfd < 0 || fstat(dirfd, &st) < 0)
		return;
	if (hidden && !rec->settled && st.st_mtime + YOUNG_S > time(NULL))
		return;
	if (vmdir_is_kept(dirfd) && (find(rec, id) || !rec->known)) {
		if (!(c->flags & PRUNE_DRY)) {
			expiry_enforce(dirfd);
			if (rec->settled) /* then nobody makes anything of its copies */
				saved_collect(dirfd);
		}
		collect_rest(c, dirfd, id);
		return;
	}
	if (vmdir_lock(dirfd, 0, &lock) < 0)
		return;
	tell(c, name);
	if (c->flags & PRUNE_DRY)
		return;
	forget(rec, id);
	if (hidden)
		ignore_result(fd_remove_tree(path)); /* the next collect tries again */
	else
		ignore_result(vmdir_remove(id, NULL));
}

static void collect_record(int rootfd, const struct records *rec, const char *id)
{
	char hidden[64];

	if (str_format(hidden, sizeof(hidden), VMDIR_HIDDEN "%s", id) == 0 &&
	    faccessat(rootfd, id, F_OK, 0) < 0 && errno == ENOENT &&
	    faccessat(rootfd, hidden, F_OK, 0) < 0 && errno == ENOENT)
		forget(rec, id);
}

static void collect_records(int rootfd, const struct records *rec)
{
	for (const char *s = rec->text.p; s && *s; s = strchr(s, '\n') + 1) {
		char id[SANDBOX_ID_MAX + 1];
		size_t n = strcspn(s + 1, " ");

		if (str_format(id, sizeof(id), "%.*s", (int)n, s + 1) == 0)
			collect_record(rootfd, rec, id);
	}
}

static DIR *open_root(const char *root, const struct records *rec)
{
	DIR *dir = opendir(root);

	if (dir || errno != ENOENT || !rec->known || rec->text.len || mkdir(root, 0700) < 0)
		return dir;
	return opendir(root);
}

static int open_making(int op)
{
	char base[LOCAL_PATH_MAX], path[LOCAL_PATH_MAX];
	AUTO_FD fd = -1;

	if (vmdir_base(base, NULL) < 0 || str_format(path, sizeof(path), "%s/" MAKING, base) < 0)
		return -1;
	fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	return fd < 0 || flock(fd, op | LOCK_NB) < 0 ? -1 : fd_take(&fd);
}

void vmdir_making(void)
{
	const struct timespec step = { .tv_nsec = MAKING_STEP };
	const int64_t end = loop_now() + MAKING_NS;

	if (making >= 0)
		return;
	while ((making = open_making(LOCK_SH)) < 0 && loop_now() < end)
		(void)nanosleep(&step, NULL);
}

void vmdir_made(void)
{
	fd_close(&making);
}

void vmdir_prune(unsigned flags, prune_fn *fn, void *arg)
{
	struct dirent *d;
	char root[LOCAL_PATH_MAX];
	struct records rec = { .known = false };
	struct collect c = { .root = root, .flags = flags, .fn = fn, .arg = arg };
	AUTO_FD alone = -1;
	DIR *dir = NULL;

	if (vmdir_root(root, NULL) < 0)
		return;
	buf_init(&rec.text, RECORDS_MAX);
	alone = open_making(LOCK_EX); /* before the records are read */
	rec.settled = alone >= 0;
	rec.known = state_each(note, &rec, NULL) == 0;
	dir = open_root(root, &rec);
	if (dir) {
		c.rootfd = dirfd(dir);
		while ((d = readdir(dir)))
			collect_folder(&c, d->d_name, &rec);
		if (rec.known && rec.settled && !(flags & PRUNE_DRY))
			collect_records(c.rootfd, &rec);
		(void)closedir(dir);
	}
	buf_done(&rec.text);
}

void vmdir_collect(void)
{
	template_collect(0, NULL, NULL);
	vmdir_prune(0, NULL, NULL);
}
