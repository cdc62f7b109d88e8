/* SPDX-License-Identifier: Apache-2.0 */
#include "host/local/imagesource.h"

#include <archive.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host/local/program.h"
#include "lib/fd.h"
#include "lib/loop.h"
#include "lib/pack.h"
#include "lib/str.h"

/*
 * Every source becomes a tar stream that lib/unpack.c puts into the build's folder: a directory by lib/pack.c in a child
 * process, a Dockerfile by a builder that exports its root file system. So one piece of code decides what of a
 * source may be in an image, and nothing is ever changed in the source.
 *
 * The guest mounts something of its own over the folders below. What the source has there would never be seen, so it is
 * left out: packing the /proc of a running machine would be worse than useless. mkfs.erofs 1.5 leaves out every name that
 * begins with lost+found, in any folder, and says nothing. It is done here, where it is counted and told.
 */

#define LOOK_MS	   200
#define ROOTFS_TAR "rootfs.tar"
#define BUILDERS   "buildah, podman or docker"
#define NOT_KEPT   "lost+found"

static const struct {
	const char *name;
	mode_t mode;
} mounted[] = {
	{ "dev", 0755 }, { "proc", 0755 }, { "sys", 0755 }, { "run", 0755 }, { "tmp", 01777 }
};

struct feed {
	int fd;
	int64_t deadline_ns;
	const volatile sig_atomic_t *cancel;
	struct imagesource *ret;
};

/* --- what belongs into an image --- */
static bool is_below_mounted(const char *path)
{
	if (str_starts(path, "./"))
		path += 2;
	for (size_t i = 0; i < ARRAY_LEN(mounted); i++) {
		size_t n = strlen(mounted[i].name);

		if (!strncmp(path, mounted[i].name, n) && path[n] == '/')
			return true;
	}
	return false;
}

static bool has_name_not_kept(const char *path)
{
	for (const char *name = path, *slash; name; name = slash ? slash + 1 : NULL) {
		if (str_starts(name, NOT_KEPT))
			return true;
		slash = strchr(name, '/');
	}
	return false;
}

static bool is_left_out(const char *path, mode_t mode)
{
	return S_ISCHR(mode) || S_ISBLK(mode) || is_below_mounted(path) || has_name_not_kept(path);
}

static bool skip_in_tar(void *arg, const char *path, mode_t mode)
{
	struct feed *f = arg;

	if (!is_left_out(path, mode))
		return false;
	f->ret->left_out++;
	return true;
}

/* Folders that are missing; what is there already, of whatever kind, stays. */
static int add_folders(int tree, struct err *e)
{
	for (size_t i = 0; i < ARRAY_LEN(mounted); i++) {
		if (mkdirat(tree, mounted[i].name, mounted[i].mode) < 0) {
			if (errno != EEXIST)
				return err_set(e, ERR_IO, errno, "/%s of the image",
					       mounted[i].name);
		} else if (fchmodat(tree, mounted[i].name, mounted[i].mode, 0) < 0) {
			return err_set(e, ERR_IO, errno, "/%s of the image", mounted[i].name);
		}
	}
	return fchmod(tree, 0755) < 0 ? err_set(e, ERR_IO, errno, "/ of the image") : 0;
}

/* --- the stream --- */
static int wait_readable(const struct feed *f)
{
	struct pollfd pf = { .fd = f->fd, .events = POLLIN };

	for (;;) {
		int r;

		if (f->cancel && *f->cancel)
			return -EINTR;
		if (loop_now() >= f->deadline_ns)
			return -ETIMEDOUT;
		r = poll(&pf, 1, LOOK_MS);
		if (r < 0 && errno != EINTR)
			return -errno;
		if (r > 0)
			return 0;
	}
}

static ssize_t feed_read(void *arg, void *p, size_t n)
{
	const struct feed *f = arg;

	for (;;) {
		int r = wait_readable(f);
		ssize_t k;

		if (r < 0)
			return r;
		if (f->ret->count.bytes > IMAGE_BYTES_MAX)
			return -EFBIG;
		k = read(f->fd, p, n);
		if (k >= 0 || (errno != EINTR && errno != EAGAIN))
			return k < 0 ? -errno : k;
	}
}

static int add_filters(struct archive *a)
{
	int r = archive_read_support_filter_gzip(a);

	return r == ARCHIVE_OK ? archive_read_support_filter_zstd(a) : r;
}

static int unpack(struct feed *f, int tree, struct err *e)
{
	const struct unpack_spec s = { .dir = tree,
				       .flags = geteuid() == 0 ? UNPACK_OWNER : 0,
				       .read = feed_read,
				       .arg = f,
				       .filters = add_filters,
				       .skip = skip_in_tar };

	return unpack_tree(&s, &f->ret->count, e);
}

static int unpack_file(struct feed *f, const char *path, int tree, struct err *e)
{
	int r;

	f->fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (f->fd < 0)
		return err_set(e, ERR_IO, errno, "%s", path);
	r = unpack(f, tree, e);
	fd_close(&f->fd);
	return r < 0 ? err_wrap(e, "%s", path) : 0;
}

static int unpack_stdin(struct feed *f, int tree, struct err *e)
{
	f->fd = STDIN_FILENO;
	if (isatty(f->fd)) {
		(void)err_set(e, ERR_USAGE, 0,
			      "standard input is a terminal; a tar is wanted there");
		return -EINVAL;
	}
	return unpack(f, tree, e);
}

/* --- a directory --- */
struct packing { /* in the child */
	int out;
	struct report {
		struct err err;
		uint64_t left_out;
	} report; /* what the child has to say, less than a pipe holds */
};

static int pipe_write(void *arg, const void *p, size_t n)
{
	return fd_write_all(((const struct packing *)arg)->out, p, n);
}

static bool skip_in_tree(void *arg, const char *path, mode_t mode)
{
	struct packing *k = arg;

	if (!is_left_out(path, mode))
		return false;
	k->report.left_out++;
	return true;
}

NORETURN static void pack_child(const char *source, int out, int report, pid_t parent)
{
	struct packing k = { .out = out, .report = { .err = ERR_INIT } };
	const struct pack_spec s = { .dir = AT_FDCWD,
				     .name = source,
				     .as = ".",
				     .follow = true,
				     .write = pipe_write,
				     .skip = skip_in_tree,
				     .arg = &k };
	struct pack_count count;
	int r;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(EXIT_FAILURE);
	r = pack_tree(&s, &count, &k.report.err);
	if (fd_write_all(report, &k.report, sizeof(k.report)) < 0)
		r = -EPIPE;
	_exit(r < 0 ? EXIT_FAILURE : EXIT_SUCCESS);
}

/* It was killed when it says nothing and has not succeeded. */
static int child_result(const struct feed *f, pid_t pid, int report, int r, struct err *e)
{
	struct report said;
	int status = 0;

	if (r < 0)
		(void)kill(pid, SIGKILL);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (WIFEXITED(status) && read(report, &said, sizeof(said)) == (ssize_t)sizeof(said)) {
		f->ret->left_out += said.left_out;
		if (WEXITSTATUS(status) == 0)
			return r;
		if (e && r != -EINTR)
			*e = said.err;
		return r == -EINTR ? r : -EIO;
	}
	if (r == 0 && status != 0)
		return err_set(e, ERR_INTERNAL, EIO, "reading the directory");
	return r;
}

static int copy_directory(struct feed *f, const char *source, int tree, struct err *e)
{
	const pid_t parent = getpid();
	int data[2], report[2], r;
	pid_t pid;

	if (pipe2(data, O_CLOEXEC) < 0)
		return err_set(e, ERR_IO, errno, "a pipe");
	if (pipe2(report, O_CLOEXEC) < 0) {
		r = err_set(e, ERR_IO, errno, "a pipe");
		fd_close(&data[0]);
		fd_close(&data[1]);
		return r;
	}
	pid = fork();
	if (pid == 0) {
		fd_close(&data[0]);
		pack_child(source, data[1], report[1], parent);
	}
	r = pid < 0 ? err_set(e, ERR_IO, errno, "a process") : 0;
	fd_close(&data[1]);
	fd_close(&report[1]);
	f->fd = data[0];
	if (r == 0)
		r = unpack(f, tree, e);
	fd_close(&f->fd); /* ends a child that still writes */
	if (pid > 0)
		r = child_result(f, pid, report[0], r, e);
	fd_close(&report[0]);
	return r;
}

/* A copy of a directory into itself would not end. */
static int check_outside(const char *source, const char *dir, struct err *e)
{
	char *from = realpath(source, NULL), *to = realpath(dir, NULL);
	size_t n = from ? strlen(from) : 0;
	bool inside = from && to && (n == 1 || (!strncmp(to, from, n) && to[n] == '/'));

	free(from);
	free(to);
	if (!inside)
		return 0;
	(void)err_set(e, ERR_INVALID, 0,
		      "%.200s contains the folder of asb, where the image would be built", source);
	return -EINVAL;
}

/* --- a Dockerfile --- */
static const char *find_builder(void)
{
	static const char *const known[] = { "buildah", "podman", "docker" };
	const char *asked = getenv("ASB_BUILDER");

	if (asked && *asked)
		return asked;
	for (size_t i = 0; i < ARRAY_LEN(known); i++)
		if (program_is_there(known[i]))
			return known[i];
	return NULL;
}

/* All three know --output type=tar: the root file system of the last stage, its owners and modes as they are in it. */
static int build(struct feed *f, const char *context, const struct image_work *w, int log,
		 struct err *e)
{
	static char what[LOCAL_PATH_MAX + 32], dir[4096]; /* too big for the stack */
	char name[512], word[] = "build", output[] = "--output", tar[LOCAL_PATH_MAX];
	char *argv[] = { name, word, output, what, dir, NULL };
	const char *builder = find_builder();
	struct program p = { .argv = argv,
			     .log = log,
			     .out_max = IMAGE_BYTES_MAX,
			     .deadline_ns = f->deadline_ns,
			     .cancel = f->cancel };
	AUTO_FD out = -1;
	int r;

	if (!builder) {
		(void)err_set(e, ERR_NOT_FOUND, 0,
			      "a Dockerfile needs " BUILDERS
			      ": install one of them, or give asb a tar or "
			      "a directory with the files themselves");
		return -ENOENT;
	}
	r = str_format(tar, sizeof(tar), "%s/" ROOTFS_TAR, w->dir);
	if (r == 0)
		r = str_format(what, sizeof(what), "type=tar,dest=%s", tar);
	if (r == 0)
		r = str_format(name, sizeof(name), "%s", builder);
	if (r == 0)
		r = str_format(dir, sizeof(dir), "%s%s", context[0] == '-' ? "./" : "", context);
	if (r < 0)
		return err_set(e, ERR_INVALID, -r, "%.200s", context);
	out = open(tar, O_RDWR | O_CREAT | O_CLOEXEC, 0600); /* watched; builders write into it */
	p.out = out;
	f->ret->builder = builder;
	return out < 0 ? err_set(e, ERR_IO, errno, "%s", tar) : program_run(&p, e);
}

static int build_and_unpack(struct feed *f, const char *context, const struct image_work *w,
			    int log, int tree, struct err *e)
{
	char tar[LOCAL_PATH_MAX];
	int r = str_format(tar, sizeof(tar), "%s/" ROOTFS_TAR, w->dir);

	if (r == 0)
		r = build(f, context, w, log, e);
	if (r == 0)
		r = unpack_file(f, tar, tree, e);
	(void)unlinkat(w->dirfd, ROOTFS_TAR, 0);
	return r;
}

/* --- which one it is --- */
static bool has_recipe(const char *dir)
{
	static const char *const names[] = { "Dockerfile", "Containerfile" };
	char path[4096];
	struct stat st;

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (str_format(path, sizeof(path), "%s/%s", dir, names[i]) == 0 &&
		    stat(path, &st) == 0 && S_ISREG(st.st_mode))
			return true;
	return false;
}

static int unpack_any(struct feed *f, const char *source, const struct image_work *w, int log,
		      int tree, struct err *e)
{
	struct stat st;
	int r;

	f->ret->kind = "tar";
	if (!strcmp(source, "-"))
		return unpack_stdin(f, tree, e);
	if (stat(source, &st) < 0)
		return err_set(e, errno == ENOENT ? ERR_NOT_FOUND : ERR_IO, errno, "%s", source);
	if (!S_ISDIR(st.st_mode))
		return unpack_file(f, source, tree, e);
	if (has_recipe(source)) {
		f->ret->kind = "dockerfile";
		return build_and_unpack(f, source, w, log, tree, e);
	}
	f->ret->kind = "directory";
	r = check_outside(source, w->dir, e);
	return r < 0 ? r : copy_directory(f, source, tree, e);
}

int imagesource_unpack(const char *source, const struct image_work *w, int log,
		       const struct progress *p, int64_t deadline_ns, struct imagesource *ret,
		       struct err *e)
{
	struct feed f = {
		.fd = -1, .deadline_ns = deadline_ns, .cancel = p ? p->cancel : NULL, .ret = ret
	};
	AUTO_FD tree = -1;
	int r;

	*ret = (struct imagesource){ .kind = "", .builder = "" };
	if (mkdirat(w->dirfd, IMAGE_TREE, 0700) < 0)
		return err_set(e, ERR_IO, errno, "%s/" IMAGE_TREE, w->dir);
	tree = openat(w->dirfd, IMAGE_TREE, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (tree < 0)
		return err_set(e, ERR_IO, errno, "%s/" IMAGE_TREE, w->dir);
	r = unpack_any(&f, source, w, log, tree, e);
	return r < 0 ? r : add_folders(tree, e);
}
