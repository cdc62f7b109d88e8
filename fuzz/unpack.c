/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A tar stream from somebody hostile, extracted below "in", beside which lies "out" with one file, and which has links to there
 * and to the root. Whatever the stream says, "out" stays as it is. The first byte: flags.
 */
#include <dirent.h>
#include <ftw.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "fuzz/confined.h"
#include "fuzz/fuzz.h"
#include "lib/unpack.h"

#define HOME "build/fuzz/unpack.d"
#define MARK "untouched\n"

static bool usable;

static void start(void)
{
	int fd;

	usable = fuzz_confine("build/fuzz");
	if (!usable)
		return;
	(void)mkdir(HOME, 0755);
	if (mount("none", HOME, "tmpfs", 0, "size=64m") < 0 || mkdir(HOME "/out", 0755) < 0)
		abort();
	fd = open(HOME "/out/file", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0 || write(fd, MARK, sizeof(MARK) - 1) < 0 || close(fd) < 0)
		abort();
}

static void check_outside(void)
{
	char text[64];
	struct stat st;
	DIR *d = opendir(HOME "/out");
	int fd = open(HOME "/out/file", O_RDONLY | O_CLOEXEC | O_NOFOLLOW), n = 0;
	ssize_t k = fd < 0 ? -1 : read(fd, text, sizeof(text));

	if (!d || fstat(fd, &st) < 0 || (st.st_mode & 07777) != 0600 || st.st_nlink != 1)
		abort();
	while (readdir(d))
		n++;
	if (n != 3 || k != (ssize_t)sizeof(MARK) - 1 || memcmp(text, MARK, (size_t)k) != 0)
		abort();
	(void)closedir(d);
	(void)close(fd);
	d = opendir(HOME);
	for (n = 0; d && readdir(d);)
		n++;
	if (!d || n != 4) /* ., .., in, out */
		abort();
	(void)closedir(d);
}

static int drop(const char *path, const struct stat *st, int type, struct FTW *f)
{
	(void)st;
	(void)type;
	(void)f;
	return remove(path);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	static bool started;
	struct unpack_count count = { 0, 0 };
	struct err e = ERR_INIT;
	int dir;

	if (!started)
		start();
	started = true;
	if (!usable || n < 1)
		return 0;
	if (mkdir(HOME "/in", 0755) < 0 || symlink("../out", HOME "/in/link") < 0 ||
	    symlink("/", HOME "/in/root") < 0 || mkdir(HOME "/in/dir", 0755) < 0)
		abort();
	dir = open(HOME "/in", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ignore_result(unpack_bytes(dir, p + 1, n - 1, p[0] & (UNPACK_OWNER | UNPACK_NO_SETID),
				   &count, &e));
	(void)close(dir);
	check_outside();
	if (chmod(HOME "/in", 0755) < 0 || nftw(HOME "/in", drop, 16, FTW_DEPTH | FTW_PHYS) < 0)
		abort();
	return 0;
}
