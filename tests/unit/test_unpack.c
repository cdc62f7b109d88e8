/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/unpack.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/beneath.h"
#include "lib/buf.h"
#include "lib/fd.h"
#include "lib/pack.h"
#include "tap.h"

/* Archives are written by libarchive, whose writer takes any name; their extraction by lib/unpack.c is looked at from outside. */

/* ok_int with a text that is formatted. */
#define eq_int(got, want, ...)                                     \
	do {                                                       \
		long long g = (got), w = (want);                   \
                                                                   \
		if (!ok(g == w, __VA_ARGS__))                      \
			printf("#   got %lld, want %lld\n", g, w); \
	} while (0)

static char top[64];   /* holds outside, and in */
static char where[80]; /* top/in: what is extracted into */
static int dir = -1;

struct tar {
	struct archive *a;
	char bytes[256 << 10];
	size_t len;
};

static struct tar tar;

static void begin(void)
{
	tar.a = archive_write_new();
	tar.len = 0;
	(void)archive_write_set_format_pax_restricted(tar.a);
	(void)archive_write_set_options(tar.a, "hdrcharset=BINARY");
	(void)archive_write_open_memory(tar.a, tar.bytes, sizeof(tar.bytes), &tar.len);
}

static void add(const char *name, unsigned type, unsigned mode, const char *content,
		const char *link)
{
	struct archive_entry *en = archive_entry_new();
	size_t n = content ? strlen(content) : 0;

	archive_entry_copy_pathname(en, name);
	archive_entry_set_filetype(en, type);
	archive_entry_set_perm(en, mode);
	archive_entry_set_size(en, (int64_t)n);
	archive_entry_set_mtime(en, 1000000000, 0);
	if (link && type == AE_IFLNK)
		archive_entry_copy_symlink(en, link);
	else if (link)
		archive_entry_copy_hardlink(en, link);
	(void)archive_write_header(tar.a, en);
	if (n)
		(void)archive_write_data(tar.a, content, n);
	archive_entry_free(en);
}

#define FILE_(name, text)   add(name, AE_IFREG, 0644, text, NULL)
#define DIR_(name)	    add(name, AE_IFDIR, 0755, NULL, NULL)
#define SYMLINK_(name, to)  add(name, AE_IFLNK, 0777, NULL, to)
#define HARDLINK_(name, to) add(name, AE_IFREG, 0644, NULL, to)

static void end(void)
{
	(void)archive_write_close(tar.a);
	(void)archive_write_free(tar.a);
}

static struct unpack_count count;
static struct err err;

static int extract_flags(unsigned flags)
{
	err = (struct err)ERR_INIT;
	return unpack_bytes(dir, tar.bytes, tar.len, flags, &count, &err);
}

static int extract(void)
{
	end();
	return extract_flags(0);
}

/* A fresh, empty directory and an outside that must stay as it is. */
static void fresh(void)
{
	char path[128];

	fd_close(&dir);
	ok(!top[0] || fd_remove_tree(top) == 0, "clean");
	(void)snprintf(top, sizeof(top), "/tmp/test_unpack.XXXXXX");
	ok(mkdtemp(top) != NULL, "a directory");
	(void)snprintf(where, sizeof(where), "%s/in", top);
	(void)snprintf(path, sizeof(path), "%s/outside", top);
	ok(mkdir(where, 0755) == 0 && mkdir(path, 0755) == 0, "in and outside");
	dir = open(where, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	begin();
}

static bool have(const char *rel, const char *content)
{
	char path[512], got[256] = "";
	int fd;
	ssize_t k;

	(void)snprintf(path, sizeof(path), "%s/%s", where, rel);
	fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return false;
	k = read(fd, got, sizeof(got) - 1);
	(void)close(fd);
	return k >= 0 && !strcmp(got, content);
}

static unsigned mode_of(const char *rel)
{
	char path[256];
	struct stat st;

	(void)snprintf(path, sizeof(path), "%s/%s", where, rel);
	return lstat(path, &st) < 0 ? 0 : st.st_mode;
}

static bool outside_is_empty(void)
{
	char path[128];

	(void)snprintf(path, sizeof(path), "%s/outside", top);
	return rmdir(path) == 0 && mkdir(path, 0755) == 0;
}

/* Nothing of a temporary name is left in where. */
static bool no_temporaries(void)
{
	char cmd[256];
	struct stat st;
	bool none = true;

	for (unsigned i = 0; i < 64 && none; i++) {
		(void)snprintf(cmd, sizeof(cmd), "%s/.asb-%u", where, i);
		none = lstat(cmd, &st) < 0;
	}
	return none;
}

/* --- what is refused --- */
static void refused(const char *name, const char *member, const char *why)
{
	int r = extract();

	ok(r < 0, "%s is refused", name);
	ok(strstr(err.msg, member) && strstr(err.msg, why), "it names the member: %s", err.msg);
	ok(outside_is_empty() && no_temporaries(), "nothing outside, nothing left");
}

static void test_hostile(void)
{
	char link[128];

	fresh();
	SYMLINK_("a", "../outside");
	FILE_("a/x", "evil");
	refused("a file through a link of the archive", "a/x", "symbolic link");
	eq_int(count.members, 1, "what came before stands");

	fresh();
	(void)snprintf(link, sizeof(link), "%s/outside", top);
	SYMLINK_("a", link);
	DIR_("a/sub");
	refused("a directory through an absolute link", "a/sub", "symbolic link");

	fresh();
	SYMLINK_("a", "b");
	SYMLINK_("b", "../outside");
	FILE_("a/x/y", "evil");
	refused("a chain of links", "a/x/y", "symbolic link");

	fresh();
	SYMLINK_("a", "missing");
	FILE_("a/x", "evil");
	refused("a dangling link", "a/x", "symbolic link");

	fresh();
	FILE_("../outside/x", "evil");
	refused("..", "../outside/x", "\"..\"");
	fresh();
	FILE_("a/b/../../../outside/x", "evil");
	refused(".. in the middle", "a/b/../../../outside/x", "\"..\"");
	fresh();
	DIR_("..");
	refused(".. alone", "..", "\"..\"");
	fresh();
	(void)snprintf(link, sizeof(link), "%s/outside/x", top);
	FILE_(link, "evil");
	refused("an absolute name", link, "absolute");

	fresh();
	HARDLINK_("h", "../outside/x");
	refused("a hard link to ..", "h", "\"..\"");
	fresh();
	HARDLINK_("h", "/etc/passwd");
	refused("a hard link to an absolute name", "h", "absolute");
	fresh();
	SYMLINK_("a", "../outside");
	HARDLINK_("h", "a/x");
	refused("a hard link through a link", "h", "symbolic link");
	fresh();
	HARDLINK_("h", "nothing");
	refused("a hard link to nothing", "h", "nothing");

	fresh();
	add("dev", AE_IFCHR, 0666, NULL, NULL);
	refused("a device", "dev", "device");
	fresh();
	FILE_(".", "evil");
	refused("a file in the place of the directory itself", ".", "itself");
}

/* Links that stood before the archive came. */
static void test_planted(void)
{
	char path[256];

	fresh();
	(void)snprintf(path, sizeof(path), "%s/planted", where);
	ok(symlink("../outside", path) == 0, "a link is there");
	FILE_("planted/x", "evil");
	refused("a file through a link that was there", "planted/x", "symbolic link");

	fresh();
	(void)snprintf(path, sizeof(path), "%s/planted", where);
	ok(symlink("../outside/x", path) == 0, "a link is there");
	FILE_("planted", "good");
	eq_int(extract(), 0, "a file in the place of a link");
	ok(have("planted", "good") && outside_is_empty(), "replaces the link");

	fresh();
	(void)snprintf(path, sizeof(path), "%s/planted", where);
	ok(symlink("../outside", path) == 0, "a link is there");
	DIR_("planted");
	refused("a directory in the place of a link", "planted", "symbolic link");
}

/* --- what is kept --- */
static void test_good(void)
{
	char long_name[240];

	memset(long_name, 'n', sizeof(long_name) - 1);
	long_name[sizeof(long_name) - 1] = '\0';
	fresh();
	DIR_("./");
	DIR_("bin");
	SYMLINK_("bin/x", "../lib/x");
	SYMLINK_("dangling", "/no/where");
	add("lib/x", AE_IFREG, 04755, "deep", NULL);
	add("ro", AE_IFDIR, 0555, NULL, NULL);
	FILE_("ro/in", "inside");
	HARDLINK_("hard", "lib/x");
	FILE_("empty", NULL);
	FILE_(".dot", "dot");
	FILE_("a//b/./c", "odd");
	FILE_("bytes\xff\xfe", "raw");
	FILE_("\xc3\xbcmlaut", "utf8");
	FILE_(long_name, "long");
	add("fifo", AE_IFIFO, 0640, NULL, NULL);
	SYMLINK_("raw-link", "to\xff");
	eq_int(extract(), 0, "a good archive: %s", err.msg);
	eq_int(count.members, 16, "all of it");
	ok(S_ISLNK(mode_of("bin/x")) && S_ISLNK(mode_of("dangling")), "links are kept");
	ok(have("lib/x", "deep") && have("hard", "deep"), "files and hard links");
	eq_int(mode_of("lib/x") & 07777, 04755, "mode, with set-user-id");
	eq_int(mode_of("ro") & 07777, 0555,
	       "a directory that cannot be written gets its mode last");
	ok(have("ro/in", "inside") && have("empty", "") && have(".dot", "dot") &&
		   have("a/b/c", "odd"),
	   "contents");
	ok(have("bytes\xff\xfe", "raw"), "names are bytes");
	ok(have("\xc3\xbcmlaut", "utf8"), "UTF-8 too");
	ok(have(long_name, "long"), "and long ones");
	eq_int(mode_of("fifo"), S_IFIFO | 0640, "a FIFO");
	ok(S_ISLNK(mode_of("raw-link")), "the target of a link is bytes");

	eq_int(extract_flags(UNPACK_NO_SETID), 0, "the same again, over itself: %s", err.msg);
	eq_int(mode_of("lib/x") & 07777, 0755, "without set-user-id");
	ok(no_temporaries(), "nothing is left");
}

static void test_kinds(void)
{
	fresh();
	DIR_("x");
	FILE_("x/y", "y");
	eq_int(extract(), 0, "a directory with a file");
	begin();
	FILE_("x", "file");
	ok(extract() == -EISDIR && strstr(err.msg, "\"x\""), "a file does not replace it: %s",
	   err.msg);
	begin();
	DIR_("x/y");
	ok(extract() == -ENOTDIR && strstr(err.msg, "\"x/y/\""), "nor a directory a file: %s",
	   err.msg);
	begin();
	FILE_("x/y/z", "z");
	ok(extract() == -ENOTDIR, "a file has nothing below it: %s", err.msg);
	ok(have("x/y", "y") && no_temporaries(), "all is as it was");
}

/* The first component is replaced, and every name must have it. */
static int mapped(const char *from, const char *to, unsigned flags);

static void test_map(void)
{
	fresh();
	DIR_("src");
	FILE_("src/f", "f");
	HARDLINK_("src/h", "src/f");
	end();
	eq_int(mapped("src", "new", 0), 0, "src becomes new: %s", err.msg);
	ok(have("new/f", "f") && have("new/h", "f") && !mode_of("src"), "all of it");
	eq_int(mapped("other", "new", 0), -EIO, "what was not asked for is refused");
	ok(strstr(err.msg, "asked for") != NULL, "and named: %s", err.msg);
	eq_int(mapped(NULL, "below", 0), 0, "all below another");
	ok(have("below/src/f", "f"), "is there");
	fresh();
	FILE_("src", "file");
	end();
	eq_int(mapped("src", "new", 0), 0, "one file");
	ok(have("new", "file"), "under its new name");
}

struct feed {
	size_t at, chunk, len;
	int error;
};

static ssize_t feed(void *arg, void *p, size_t n)
{
	struct feed *f = arg;

	if (n > f->chunk)
		n = f->chunk;
	if (n > f->len - f->at)
		n = f->len - f->at;
	if (n == 0)
		return f->error;
	memcpy(p, tar.bytes + f->at, n);
	f->at += n;
	return (ssize_t)n;
}

static int mapped(const char *from, const char *to, unsigned flags)
{
	struct feed f = { 0, 4096, tar.len, 0 };
	struct unpack_spec s = {
		.dir = dir, .from = from, .to = to, .flags = flags, .read = feed, .arg = &f
	};

	err = (struct err)ERR_INIT;
	return unpack_tree(&s, &count, &err);
}

/* Cut at every block, and fed byte by byte. */
static void test_cut(void)
{
	struct feed f = { 0, 1, 0, 0 };
	struct unpack_spec s = { .read = feed, .arg = &f };
	size_t bad = 0;

	fresh();
	FILE_("a", "one");
	FILE_("b", "two");
	end();
	f.len = tar.len;
	s.dir = dir;
	eq_int(unpack_tree(&s, &count, &err), 0, "byte by byte: %s", err.msg);
	ok(have("a", "one") && have("b", "two"), "is the same");
	/* the end mark is two blocks of zeros; one is enough */
	for (size_t n = 0; n < 4 * 512 + 512; n += 64) {
		struct feed cut = { 0, 512, n, 0 };

		s.arg = &cut;
		err = (struct err)ERR_INIT;
		if (unpack_tree(&s, &count, &err) >= 0)
			bad++;
	}
	eq_int(bad, 0, "a stream that is cut is an error wherever it is");
	s.arg = &(struct feed){ 0, 512, 1024, -EPIPE };
	eq_int(unpack_tree(&s, &count, &err), -EPIPE, "an error of the reader is passed on");
	tar.len = 0;
	ok(extract_flags(0) < 0, "no bytes are no archive");
	memset(tar.bytes, 'x', 2048);
	tar.len = 2048;
	ok(extract_flags(0) < 0 && strstr(err.msg, "not a tar"), "nor are others: %s", err.msg);
	memset(tar.bytes, 0, 10240);
	tar.len = 10240;
	eq_int(extract_flags(0), 0, "an archive of nothing is one: %s", err.msg);
}

/* --- pack and unpack --- */
static int collect(void *arg, const void *p, size_t n)
{
	struct tar *t = arg;

	if (t->len + n > sizeof(t->bytes))
		return -ENOSPC;
	memcpy(t->bytes + t->len, p, n);
	t->len += n;
	return 0;
}

static void test_round_trip(void)
{
	struct pack_spec s = { .dir = AT_FDCWD, .as = "copy", .write = collect, .arg = &tar };
	struct pack_count packed;
	char path[256];
	struct stat st;
	int fd;

	fresh();
	DIR_("d");
	FILE_("d/\xff", "raw");
	SYMLINK_("d/l", "\xfe");
	HARDLINK_("d/h", "d/\xff");
	eq_int(extract(), 0, "something to pack");
	(void)snprintf(path, sizeof(path), "%s/d/sparse", where);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	ok(fd >= 0 && pwrite(fd, "end", 3, 5 << 20) == 3 && ftruncate(fd, 9 << 20) == 0,
	   "a file with holes");
	(void)close(fd);
	(void)snprintf(path, sizeof(path), "%s/d", where);
	s.name = path;
	tar.len = 0;
	eq_int(pack_tree(&s, &packed, &err), 0, "packed: %s", err.msg);
	eq_int(packed.members, 5, "all members");
	ok(tar.len < sizeof(tar.bytes), "without holes");
	eq_int(extract_flags(0), 0, "extracted: %s", err.msg);
	ok(have("copy/\xff", "raw") && have("copy/h", "raw") && S_ISLNK(mode_of("copy/l")),
	   "the same");
	(void)snprintf(path, sizeof(path), "%s/copy/sparse", where);
	ok(stat(path, &st) == 0 && st.st_size == 9 << 20 && st.st_blocks * 512 < 1 << 20,
	   "with the holes");
	(void)snprintf(path, sizeof(path), "%s/missing", where);
	eq_int(pack_tree(&s, &packed, &err), -ENOENT, "what is missing cannot be packed");
	ok(strstr(err.msg, "copy") != NULL, "and is named: %s", err.msg);
	s.write = NULL;
}

int main(void)
{
	for (beneath_no_openat2 = 0; beneath_no_openat2 < 2; beneath_no_openat2++) {
		test_hostile();
		test_planted();
		test_good();
		test_kinds();
		test_map();
		test_cut();
		test_round_trip();
	}
	fd_close(&dir);
	ok(fd_remove_tree(top) == 0, "clean");
	return tap_done();
}
