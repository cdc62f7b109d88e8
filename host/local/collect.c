/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "host/local/expiry.h"
#include "host/local/template.h"
#include "host/local/vmdir.h"
#include "host/state/state.h"
#include "lib/fd.h"
#include "lib/str.h"

/*
 * What killed processes left behind. A folder that somebody holds is never touched. One that nobody
 * holds and that was never kept belongs to a create whose process is dead: it goes, and its name
 * with it. One that was kept goes only when no record names it any more.
 *
 * Two moments of a create look like that and are not: a hidden folder whose lock is not yet taken,
 * and a record whose folder is not yet made. Both last a few milliseconds, so both are left alone
 * until they are YOUNG_S old; a record has no date of its own, and gets a mark with one at the
 * first look.
 */

#define MARK	    ".gone-"
#define YOUNG_S	    10
#define RECORDS_MAX (4U << 20)

/* Who is recorded: " <id> <name>\n" for each of ours. */
struct records {
	struct buf text;
	bool known; /* false: the state file could not be read, so everything kept is wanted */
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

static void collect_folder(int rootfd, const char *root, const char *name,
			   const struct records *rec)
{
	const bool hidden = str_starts(name, VMDIR_HIDDEN);
	const char *id = hidden ? name + sizeof(VMDIR_HIDDEN) - 1 : name;
	char path[LOCAL_PATH_MAX];
	AUTO_FD dirfd = -1;
	AUTO_FD lock = -1;
	struct stat st;

	if (!vmdir_is_id(id) || str_format(path, sizeof(path), "%s/%s", root, name) < 0)
		return;
	dirfd = openat(rootfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dirfd < 0 || fstat(dirfd, &st) < 0)
		return;
	if (hidden && st.st_mtime + YOUNG_S > time(NULL))
		return;
	if (vmdir_is_kept(dirfd) && (find(rec, id) || !rec->known)) {
		expiry_enforce(dirfd);
		return;
	}
	if (vmdir_lock(dirfd, 0, &lock) < 0)
		return;
	forget(rec, id);
	ignore_result(fd_remove_tree(path)); /* the next collect tries again */
}

static bool needs_mark(int rootfd, const struct records *rec, const char *id)
{
	return find(rec, id) && faccessat(rootfd, id, F_OK, 0) < 0;
}

static void collect_record(int rootfd, const struct records *rec, const char *id)
{
	char hidden[64], mark[64];
	struct stat st;

	if (str_format(hidden, sizeof(hidden), VMDIR_HIDDEN "%s", id) < 0 ||
	    str_format(mark, sizeof(mark), MARK "%s", id) < 0)
		return;
	if (faccessat(rootfd, id, F_OK, 0) == 0 || faccessat(rootfd, hidden, F_OK, 0) == 0)
		return;
	if (fstatat(rootfd, mark, &st, 0) < 0) {
		int fd = openat(rootfd, mark, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

		fd_close(&fd);
	} else if (st.st_mtime + YOUNG_S <= time(NULL)) {
		forget(rec, id);
		(void)unlinkat(rootfd, mark, 0);
	}
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

void vmdir_collect(void)
{
	struct records rec = { .known = false };
	char root[LOCAL_PATH_MAX];
	struct dirent *d;
	DIR *dir = NULL;

	buf_init(&rec.text, RECORDS_MAX);
	template_collect();
	rec.known = state_each(note, &rec, NULL) == 0;
	if (vmdir_root(root, NULL) == 0)
		dir = opendir(root);
	if (!dir) {
		buf_done(&rec.text);
		return;
	}
	while ((d = readdir(dir))) {
		const bool mark = str_starts(d->d_name, MARK);

		if (!mark)
			collect_folder(dirfd(dir), root, d->d_name, &rec);
		else if (rec.known && !needs_mark(dirfd(dir), &rec, d->d_name + sizeof(MARK) - 1))
			(void)unlinkat(dirfd(dir), d->d_name, 0);
	}
	if (rec.known)
		collect_records(dirfd(dir), &rec);
	(void)closedir(dir);
	buf_done(&rec.text);
}
