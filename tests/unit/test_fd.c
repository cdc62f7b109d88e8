/* SPDX-License-Identifier: Apache-2.0 */
#include "../../lib/fd.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../lib/tap.h"

static char dir[] = "/tmp/asb-test-fd-XXXXXX";

static int count_entries(void)
{
	DIR *d = opendir(dir);
	struct dirent *e;
	int n = 0;

	while (d && (e = readdir(d)))
		n += strcmp(e->d_name, ".") && strcmp(e->d_name, "..");
	if (d)
		(void)closedir(d);
	return n;
}

static void rewritten(const char *path, const char *text, bool same_file, const char *what)
{
	struct stat before, after;
	bool there = lstat(path, &before) == 0;
	AUTO_BUF b;

	buf_init(&b, 100);
	ok_int(fd_rewrite_file(path, text, strlen(text), 0644), 0, what);
	ok(lstat(path, &after) == 0 && S_ISREG(after.st_mode) &&
		   (there && before.st_ino == after.st_ino) == same_file,
	   same_file ? "it is the same file" : "it is another file");
	ok_int(fd_read_file(AT_FDCWD, path, &b), 0, "it is read");
	ok(b.len == strlen(text) && !memcmp(b.p, text, b.len), "and has these bytes alone");
}

static void test_rewrite(void)
{
	char path[256], other[256];
	AUTO_BUF b;

	buf_init(&b, 100);
	(void)snprintf(path, sizeof(path), "%s/re", dir);
	(void)snprintf(other, sizeof(other), "%s/other", dir);
	rewritten(path, "one", false, "a new file");
	rewritten(path, "longer", true, "more");
	rewritten(path, "two", true, "less");
	ok_int(truncate(path, 0), 0, "an empty file");
	rewritten(path, "three", false, "is replaced");
	ok(rename(path, other) == 0 && symlink(other, path) == 0, "a symbolic link");
	rewritten(path, "four", false, "is replaced");
	ok_int(fd_read_file(AT_FDCWD, other, &b), 0, "and what it named");
	ok_str(b.p, "three", "is left alone");
	ok(unlink(path) == 0 && unlink(other) == 0, "no other file is left");
}

static void test_replace(void)
{
	char path[256], gone[256];
	struct stat st;
	AUTO_BUF b;

	buf_init(&b, 100);
	(void)snprintf(path, sizeof(path), "%s/file", dir);
	(void)snprintf(gone, sizeof(gone), "%s/no/file", dir);
	ok_int(fd_replace_file(path, "one", 3, 0600), 0, "a new file");
	ok_int(fd_replace_file(path, "second", 6, 0640), 0, "replaced");
	ok(stat(path, &st) == 0 && (st.st_mode & 07777) == 0640, "has the mode");
	ok_int(fd_read_file(AT_FDCWD, path, &b), 0, "is read back");
	ok_str(b.p, "second", "with the new bytes");
	ok_int(fd_replace_file(gone, "x", 1, 0600), -ENOENT, "a missing folder is an error");
	ok_int(count_entries(), 1, "and no temporary file stays");
	buf_done(&b);
	buf_init(&b, 6);
	ok_int(fd_read_file(AT_FDCWD, path, &b), 0, "a file that just fits is read");
	buf_done(&b);
	buf_init(&b, 5);
	ok_int(fd_read_file(AT_FDCWD, path, &b), -ENOSPC, "a larger one is refused");
}

static void test_trees(void)
{
	char path[4096], link[4096], outside[64] = "/tmp/asb-test-outside-XXXXXX";
	int out = mkstemp(outside);

	(void)snprintf(path, sizeof(path), "%s/t/a/b/c", dir);
	ok_int(fd_mkdirs(path, 0755), 0, "nested folders");
	ok_int(fd_mkdirs(path, 0755), 0, "again is fine");
	(void)snprintf(path, sizeof(path), "%s/file/x", dir);
	ok_int(fd_mkdirs(path, 0755), -ENOTDIR, "below a file is not");
	(void)snprintf(link, sizeof(link), "%s/t/a/link", dir);
	ok(symlink(outside, link) == 0, "a link that leads outside");
	(void)snprintf(path, sizeof(path), "%s/t", dir);
	ok_int(fd_remove_tree(path), 0, "the tree is removed");
	ok(access(path, F_OK) < 0, "it is gone");
	ok(access(outside, F_OK) == 0, "what the link led to is not");
	ok_int(fd_remove_tree(path), 0, "removing what is gone is fine");
	fd_close(&out);
	(void)unlink(outside);
}

/* What processes that were killed while they replaced a file have left. */
static void test_collect(void)
{
	static const char *const names[] = { "f.abcdef", "f.json", "f.a.cdef", "g.abcdef", "f" };
	char path[64], what[64];

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
		ok_int(fd_replace_file_lazy(path, "x", 1, 0600), 0, "a file");
	}
	snprintf(path, sizeof(path), "%s/f", dir);
	fd_replace_collect(path);
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
		snprintf(what, sizeof(what), "%s %s", names[i], i ? "stays" : "goes");
		ok((access(path, F_OK) == 0) == (i != 0), "%s", what);
	}
	fd_replace_collect("/nonexistent/f");
}

static void test_at(void)
{
	char path[64], back[8];
	int fd;

	snprintf(path, sizeof(path), "%s/at", dir);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	ok_int(fd_pwrite_all(fd, "abcdef", 6, 2), 0, "written at 2");
	ok_int(fd_pread_all(fd, back, 6, 2), 6, "and read from there");
	ok(memcmp(back, "abcdef", 6) == 0, "the same");
	ok_int(fd_pread_all(fd, back, 8, 4), 4, "less at the end of the file");
	ok_int(fd_pread_all(fd, back, 8, 8), 0, "none behind it");
	ok_int(lseek(fd, 0, SEEK_CUR), 0, "its position has not moved");
	fd_close(&fd);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	ok_int(fd_pwrite_all(fd, "x", 1, 0), -EBADF, "an error is told");
	fd_close(&fd);
	ok_int((int)fd_pread_all(-1, back, 1, 0), -EBADF, "of reading, too");
}

int main(void)
{
	int p[2], fd;

	if (!mkdtemp(dir))
		return 1;
	test_rewrite();
	test_replace();
	test_trees();
	test_collect();
	test_at();
	fd = -1;
	fd_close(&fd);
	ok_int(fd, -1, "closing none is fine");
	ok(pipe2(p, O_CLOEXEC) == 0, "a pipe");
	fd = p[0];
	ok_int(fd_take(&p[0]), fd, "fd_take hands it on");
	ok_int(p[0], -1, "and forgets it");
	fd_close(&fd);
	fd_close(&p[1]);
	ok_int(fd_remove_tree(dir), 0, "clean up");
	return tap_done();
}
