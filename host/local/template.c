/* SPDX-License-Identifier: Apache-2.0 */
#include "host/local/template.h"

#include <bearssl.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "host/local/tree.h"
#include "host/local/vmfile.h"
#include "lib/fd.h"
#include "lib/jsn.h"
#include "lib/log.h"
#include "lib/loop.h"
#include "lib/pretty.h"
#include "lib/proc.h"
#include "lib/str.h"

/*
 * The first sandbox of a kind boots, and leaves a copy of itself behind when it is ready; the next ones begin there.
 * One lock for all templates: who has it may make one and may remove what is half made. It is never waited for.
 *
 * The memory is not read to check it, that would cost what a template saves: its time of change must be the one that
 * was noted when it was made. That finds a file that somebody wrote to, not a disk that forgets.
 */

#define FORMAT	     1
#define PART	     "templates"
#define HALF	     ".new-"
#define MANIFEST_MAX 4096
#define ABOUT	     "about.json"
#define WAIT_NS	     50000000L
#define DEVICES_MAX  (64 << 20)
#define UNUSED_S     (30 * 86400)

/* --- where they are --- */
static int folder(const char *prefix, const char *key, char ret[LOCAL_PATH_MAX], struct err *e)
{
	return vmdir_below(PART, prefix, key, ret, e);
}

/* -EBUSY when another has it. */
static int take_lock(int *ret, struct err *e)
{
	char path[LOCAL_PATH_MAX];
	AUTO_FD fd = -1;
	int r = folder("", "lock", path, e);

	if (r < 0)
		return r;
	fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return err_set(e, ERR_IO, errno, "%s", path);
	if (flock(fd, LOCK_EX | LOCK_NB) < 0)
		return -EBUSY;
	*ret = fd_take(&fd);
	return 0;
}

/* --- template.json --- */
static int sum_file(int dirfd, const char *name, char ret[65])
{
	AUTO_BUF b;
	unsigned char sum[br_sha256_SIZE];
	br_sha256_context h;
	int r;

	buf_init(&b, DEVICES_MAX);
	r = fd_read_file(dirfd, name, &b);
	if (r < 0)
		return r;
	br_sha256_init(&h);
	br_sha256_update(&h, b.p, b.len);
	br_sha256_out(&h, sum);
	str_hex(sum, sizeof(sum), ret);
	return 0;
}

/* "<size> <time of change>" */
static int stamp(int dirfd, const char *name, char ret[64])
{
	struct stat st;

	if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	return str_format(ret, 64, "%lld %lld.%09ld", (long long)st.st_size,
			  (long long)st.st_mtim.tv_sec, st.st_mtim.tv_nsec);
}

/* What template.json must say of what is there. */
static int describe(int dirfd, const char *key, struct buf *ret)
{
	AUTO_JSN *j = cJSON_CreateObject();
	char ram[64], disk[64], devices[65];
	int r = stamp(dirfd, "ram", ram);

	if (r == 0)
		r = stamp(dirfd, "disk.qcow2", disk);
	if (r == 0)
		r = sum_file(dirfd, "devices", devices);
	if (r < 0)
		return r;
	if (!j || !jsn_add_u64(j, "format", FORMAT) || !jsn_add_str(j, "key", key) ||
	    !jsn_add_str(j, "ram", ram) || !jsn_add_str(j, "disk", disk) ||
	    !jsn_add_str(j, "devices", devices))
		return -ENOMEM;
	return pretty_json(j, ret);
}

/* Whether what is there is what was made. */
static bool is_whole(int dirfd, const char *key)
{
	AUTO_BUF now;
	AUTO_BUF then;

	buf_init(&now, MANIFEST_MAX);
	buf_init(&then, MANIFEST_MAX);
	return fd_read_file(dirfd, "template.json", &then) == 0 &&
	       describe(dirfd, key, &now) == 0 && now.len == then.len && now.p &&
	       memcmp(now.p, then.p, now.len) == 0;
}

/* --- using --- */
void template_discard(const char *key)
{
	char path[LOCAL_PATH_MAX], away[LOCAL_PATH_MAX];

	if (folder("", key, path, NULL) < 0 || folder(HALF "gone-", key, away, NULL) < 0)
		return;
	if (rename(path, away) == 0) /* at once out of everybody's way */
		ignore_result(fd_remove_tree(away));
}

int template_use(const char *key, int dirfd, struct err *e)
{
	char path[LOCAL_PATH_MAX], disk[LOCAL_PATH_MAX];
	AUTO_FD from = -1;
	int r = folder("", key, path, e);

	if (r == 0)
		r = str_format(disk, sizeof(disk), "%s/disk.qcow2", path);
	if (r < 0)
		return r;
	from = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (from < 0)
		return -ENOENT;
	if (!is_whole(from, key)) {
		template_discard(key);
		return -ENOENT;
	}
	if (linkat(from, "ram", dirfd, TEMPLATE_RAM, 0) == 0 &&
	    linkat(from, "devices", dirfd, TEMPLATE_DEVICES, 0) == 0 &&
	    vmfile_copy(disk, dirfd, "disk.qcow2") == 0) {
		(void)futimens(from, NULL); /* for template_collect */
		return 0;
	}
	/* Removed meanwhile, too many links, a full disk: who boots finds out whether it goes without. */
	(void)unlinkat(dirfd, TEMPLATE_RAM, 0);
	(void)unlinkat(dirfd, TEMPLATE_DEVICES, 0);
	(void)unlinkat(dirfd, "disk.qcow2", 0);
	return -ENOENT;
}

/* --- making --- */
static int write_about(const char *dir, const struct share *share, const struct vm_config *c)
{
	AUTO_JSN *j = cJSON_CreateObject();
	AUTO_BUF b;
	char path[LOCAL_PATH_MAX];
	int r = str_format(path, sizeof(path), "%s/" ABOUT, dir);

	buf_init(&b, MANIFEST_MAX);
	if (!j || !jsn_add_str(j, "rootfs", share->rootfs) || !jsn_add_u64(j, "cpus", c->cpus) ||
	    !jsn_add_u64(j, "memory_mib", c->memory_mib))
		return -ENOMEM;
	if (r == 0)
		r = pretty_json(j, &b);
	return r < 0 ? r : fd_replace_file_lazy(path, b.p, b.len, 0600);
}

int template_begin(const char *key, const struct share *share, const struct vm_config *c,
		   struct template_new *ret, struct err *e)
{
	AUTO_FD lock = -1;
	char path[LOCAL_PATH_MAX];
	int r = folder("", key, path, e);

	ret->lock = -1;
	if (r == 0)
		r = folder(HALF, key, ret->dir, e);
	if (r == 0)
		r = take_lock(&lock, e);
	if (r < 0)
		return r;
	if (access(path, F_OK) == 0)
		return -EEXIST;
	r = fd_remove_tree(ret->dir);
	if (r == 0 && mkdir(ret->dir, 0700) < 0)
		r = -errno;
	if (r == 0)
		r = write_about(ret->dir, share, c);
	if (r < 0)
		return err_set(e, ERR_IO, -r, "%s", ret->dir);
	ret->lock = fd_take(&lock);
	return 0;
}

void template_abort(struct template_new *t)
{
	if (t->lock < 0)
		return;
	ignore_result(fd_remove_tree(t->dir));
	fd_close(&t->lock);
}

/* In the folder of the new template. */
static int finish(const char *key)
{
	AUTO_BUF b;
	char from[LOCAL_PATH_MAX] = "", to[LOCAL_PATH_MAX] = "";
	int r = fd_sync_at(AT_FDCWD, "ram");

	buf_init(&b, MANIFEST_MAX);
	if (r == 0)
		r = fd_sync_at(AT_FDCWD, "devices");
	if (r == 0)
		r = fd_sync_at(AT_FDCWD, "disk.qcow2");
	if (r == 0)
		r = fd_sync_at(AT_FDCWD, ABOUT);
	if (r == 0)
		r = describe(AT_FDCWD, key, &b);
	if (r == 0)
		r = fd_replace_file("template.json", b.p, b.len, 0600);
	if (r == 0)
		r = folder(HALF, key, from, NULL);
	if (r == 0)
		r = folder("", key, to, NULL);
	if (r == 0 && rename(from, to) < 0)
		r = -errno;
	return r;
}

int template_publish_main(int argc, char **argv)
{
	uint64_t lock;
	pid_t pid;
	int r;

	if (argc != 4 || strlen(argv[2]) != TEMPLATE_KEY_LEN ||
	    str_to_u64(argv[3], 3, INT_MAX, &lock) < 0)
		return 2;
	pid = fork();
	if (pid != 0)
		return pid < 0 ? 1 : 0;
	log_open("template", STDERR_FILENO, LOG_LEVEL_INFO);
	r = finish(argv[2]);
	if (r < 0)
		log_error("the template was not kept: %s", strerror(-r));
	return r < 0; /* and whoever takes the lock next removes what there is */
}

int template_publish(struct template_new *t, const char *key, struct err *e)
{
	char exe[] = "/proc/self/exe", word[] = "__supervise", what[] = "template";
	char key_text[TEMPLATE_KEY_LEN + 1], lock_text[16];
	char *argv[] = { exe, word, what, key_text, lock_text, NULL };
	struct proc_spec s = PROC_SPEC_INIT;
	struct proc_child child;
	int r;

	ignore_result(str_format(key_text, sizeof(key_text), "%s", key)); /* they fit */
	ignore_result(str_format(lock_text, sizeof(lock_text), "%d", t->lock));
	s.argv = argv;
	s.cwd = t->dir;
	s.fd[2] = STDERR_FILENO;
	s.keep = &t->lock;
	s.keep_len = 1;
	s.flags = PROC_SETSID | PROC_NOPATH;
	r = proc_spawn(&s, &child, NULL, e);
	if (r == 0) {
		while (waitpid(child.pid, NULL, 0) < 0 &&
		       errno == EINTR) /* it forks and exits at once */
			;
		fd_close(&child.pidfd);
		fd_close(&t->lock);
	} else {
		template_abort(t);
	}
	return r;
}

int template_wait(const char *key, int64_t deadline_ns, const volatile sig_atomic_t *cancel)
{
	const struct timespec step = { .tv_nsec = WAIT_NS };
	char path[LOCAL_PATH_MAX];
	int r = folder("", key, path, NULL);

	while (r == 0) {
		AUTO_FD lock = -1;

		if (access(path, F_OK) == 0)
			return 0;
		if (take_lock(&lock, NULL) == 0) /* nobody makes one any more */
			return access(path, F_OK) == 0 ? 0 : -EIO;
		if (cancel && *cancel)
			return -EINTR;
		if (loop_now() >= deadline_ns)
			return -ETIMEDOUT;
		(void)nanosleep(&step, NULL);
	}
	return r;
}

/* --- all of them --- */
static int read_about(int dirfd, struct template_info *t)
{
	AUTO_BUF b;
	AUTO_JSN *j = NULL;
	const char *rootfs = "";
	int r;

	buf_init(&b, MANIFEST_MAX);
	r = fd_read_file(dirfd, ABOUT, &b);
	if (r < 0)
		return r;
	j = jsn_parse(b.p ? b.p : "", b.len, NULL);
	if (!j || jsn_str(j, "rootfs", &rootfs, NULL) < 0 ||
	    jsn_u64(j, "cpus", 0, 1024, &t->cpus, NULL) < 0 ||
	    jsn_u64(j, "memory_mib", 0, 1U << 30, &t->memory_mib, NULL) < 0)
		return -EINVAL;
	return str_format(t->rootfs, sizeof(t->rootfs), "%s", rootfs);
}

static bool is_key(const char *name)
{
	return strlen(name) == TEMPLATE_KEY_LEN &&
	       strspn(name, "0123456789abcdef") == TEMPLATE_KEY_LEN;
}

/* False when there is no such folder any more. */
static bool look(int rootfd, const char *name, struct template_info *t)
{
	AUTO_FD fd = openat(rootfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return false;
	*t = (struct template_info){ .used_s = st.st_mtime, .bytes = tree_own(rootfd, name) };
	if (read_about(fd, t) < 0)
		t->rootfs[0] = '\0';
	memcpy(t->key, name, is_key(name) ? TEMPLATE_KEY_LEN : 0);
	return true;
}

int template_each(int (*fn)(void *arg, const struct template_info *t), void *arg)
{
	struct template_info t;
	char root[LOCAL_PATH_MAX];
	struct dirent *d;
	DIR *dir = vmdir_part(PART, root, NULL) < 0 ? NULL : opendir(root);
	int r = 0;

	while (dir && r == 0 && (d = readdir(dir)))
		if (is_key(d->d_name) && look(dirfd(dir), d->d_name, &t))
			r = fn(arg, &t);
	if (dir)
		(void)closedir(dir);
	return r;
}

/* --- collecting --- */
struct collect {
	const char *root;
	int rootfd;
	unsigned flags;
	prune_fn *fn;
	void *arg;
};

static bool is_stale(const struct collect *c, const char *name)
{
	struct template_info t;
	struct stat st;

	if (fstatat(c->rootfd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISDIR(st.st_mode))
		return false;
	if (str_starts(name, HALF))
		return true;
	if (!is_key(name))
		return false;
	if ((c->flags & PRUNE_TEMPLATES) || st.st_mtime + UNUSED_S <= time(NULL))
		return true;
	return (c->flags & PRUNE_STALE) && look(c->rootfd, name, &t) && t.rootfs[0] &&
	       access(t.rootfs, F_OK) < 0;
}

static void collect_one(const struct collect *c, const char *name)
{
	char path[LOCAL_PATH_MAX];

	if (!is_stale(c, name))
		return;
	if (c->fn)
		c->fn(c->arg, "template", name, tree_own(c->rootfd, name));
	if (!(c->flags & PRUNE_DRY) && str_format(path, sizeof(path), "%s/%s", c->root, name) == 0)
		ignore_result(fd_remove_tree(path)); /* the next collect tries again */
}

void template_collect(unsigned flags, prune_fn *fn, void *arg)
{
	char root[LOCAL_PATH_MAX];
	struct collect c = { .root = root, .flags = flags, .fn = fn, .arg = arg };
	AUTO_FD lock = -1;
	struct dirent *d;
	DIR *dir;

	if (vmdir_part(PART, root, NULL) < 0 || !(dir = opendir(root)))
		return;
	c.rootfd = dirfd(dir);
	if (take_lock(&lock, NULL) == 0)
		while ((d = readdir(dir)))
			collect_one(&c, d->d_name);
	(void)closedir(dir);
}
