/* SPDX-License-Identifier: Apache-2.0 */
/* LINK: host/local/snapmeta.c host/local/snapfile.c host/local/digest.c host/local/qcow2.c host/local/vmfile.c
 * host/state/?*.c host/backend.c */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host/backend.h"
#include "host/local/qcow2.h"
#include "host/local/snapfile.h"
#include "lib/fd.h"
#include "lib/jsn.h"
#include "lib/str.h"
#include "tap.h"

const struct backend backend_local = { .name = "local" };

#define SUM "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define KEY "0123456789abcdef0123456789abcdef"

static const char good[] =
	"{\"format\":1,\"name\":\"one\",\"created\":5,\"memory\":true,\"based\":true,\"balloon\":false,"
	"\"rootfs_sha256\":\"" SUM
	"\",\"fit\":{\"qemu\":\"QEMU emulator version 7.2.22\",\"accel\":\"tcg\","
	"\"cpu\":\"x\",\"cpu_key\":\"" KEY "\",\"machine\":\"" KEY "\"},\"sandbox\":{\"id\":"
	"\"local-0123456789abcdef\",\"name\":\"app\",\"image\":\"base:1\",\"cpus\":2,\"memory_mib\":64,"
	"\"net\":\"user\",\"ephemeral\":false,\"template\":true,\"created\":4,\"env\":{\"A\":\"b\"}},"
	"\"files\":{\"devices\":{\"bytes\":3,\"sum\":\"" SUM
	"\"},\"ram\":{\"bytes\":4,\"sum\":\"" SUM
	"\"},\"base.ram\":{\"bytes\":67108864,\"sum\":\"" SUM
	"\"},\"disk.qcow2\":{\"bytes\":9,\"sum\":\"" SUM "\",\"changed\":\"1.000000002\"}}}";

static int parse(const char *s)
{
	struct snap_meta m;
	struct err e = ERR_INIT;
	int r = snap_meta_parse(s, strlen(s), &m, &e);

	if (r == 0)
		snap_meta_done(&m);
	else
		ok(e.code != ERR_NONE && e.msg[0], "and says why: %s", e.msg);
	return r;
}

/* GOOD with its only FROM made TO. */
static char *with(const char *from, const char *to)
{
	const char *at = strstr(good, from);
	char *s;

	if (!at || asprintf(&s, "%.*s%s%s", (int)(at - good), good, to, at + strlen(from)) < 0)
		abort();
	return s;
}

static void test_parse(void)
{
	static const struct {
		const char *from, *to;
	} bad[] = {
		{ "\"format\":1", "\"format\":2" },
		{ "\"format\":1", "\"format\":\"1\"" },
		{ "\"format\":1,", "" },
		{ "\"name\":\"one\"", "\"name\":\"../one\"" },
		{ "\"name\":\"one\"", "\"name\":\"\"" },
		{ "\"name\":\"one\",", "" },
		{ "\"name\":\"app\"", "\"name\":\"\\u001b[2J\"" },
		{ "local-0123456789abcdef", "../../0123456789abcdef" },
		{ "\"created\":5", "\"created\":-5" },
		{ "\"memory\":true", "\"memory\":false" },
		{ "\"memory\":true", "\"memory\":1" },
		{ "\"based\":true", "\"based\":false" },
		{ "\"rootfs_sha256\":\"0", "\"rootfs_sha256\":\"" },
		{ "\"rootfs_sha256\":\"0", "\"rootfs_sha256\":\"G" },
		{ "\"accel\":\"tcg\"", "\"accel\":\"hvf\"" },
		{ "\"cpu_key\":\"0", "\"cpu_key\":\"" },
		{ "\"fit\":", "\"fut\":" },
		{ "\"memory_mib\":64", "\"memory_mib\":65" },
		{ "\"memory_mib\":64,", "" },
		{ "\"memory_mib\":64", "\"memory_mib\":18446744073709551615" },
		{ "\"cpus\":2", "\"cpus\":4096" },
		{ "{\"A\":\"b\"}", "{\"A\":1}" },
		{ "{\"A\":\"b\"}", "[]" },
		{ "\"devices\":{\"bytes\":3", "\"devices\":{\"bytes\":67108865" },
		{ "\"devices\":{\"bytes\":3", "\"devices\":{\"bytes\":0" },
		{ "\"ram\":{\"bytes\":4", "\"ram\":{\"bytes\":80000000" },
		{ "\"bytes\":67108864", "\"bytes\":67108863" },
		{ "\"disk.qcow2\":{\"bytes\":9", "\"disk.qcow2\":{\"bytes\":18446744073709551615" },
		{ "\"disk.qcow2\":", "\"disk\":" },
		{ "\"changed\":\"1.000000002\"",
		  "\"changed\":\"11111111111111111111111111111111111111111\"" },
		{ "}}}", "}}" },
		{ "}}}", "}}}x" },
	};
	char *s;

	ok_int(parse(good), 0, "a good one");
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		s = with(bad[i].from, bad[i].to);
		ok(parse(s) < 0, "%s as %s is refused", bad[i].from, bad[i].to);
		free(s);
	}
	s = with("\"format\":1", "\"more\":{\"a\":[1]},\"format\":1");
	ok_int(parse(s), 0, "what is not known is not read");
	free(s);
	for (size_t n = 0; n < sizeof(good) - 1; n += 7) {
		s = strndup(good, n);
		if (!s || parse(s) == 0)
			ok(0, "cut after %zu bytes", n);
		free(s);
	}
}

static void test_print(void)
{
	struct snap_meta m, n;
	struct err e = ERR_INIT;
	AUTO_BUF a;
	AUTO_BUF b;

	buf_init(&a, SNAP_META_MAX);
	buf_init(&b, SNAP_META_MAX);
	ok_int(snap_meta_parse(good, strlen(good), &m, &e), 0, "a good one");
	ok_int(snap_meta_print(&m, true, &a), 0, "is printed");
	ok_int(snap_meta_parse(a.p, a.len, &n, &e), 0, "and read again");
	ok_int(snap_meta_print(&n, true, &b), 0, "and printed again");
	ok_str(a.p, b.p, "to the same text");
	ok(strstr(a.p, "1.000000002") != NULL, "with the time of change");
	buf_clear(&b);
	ok_int(snap_meta_print(&n, false, &b), 0, "for elsewhere");
	ok(strstr(b.p, "changed") == NULL, "without it");
	ok(n.part[SNAP_BASE].there && n.part[SNAP_BASE].bytes == 64U << 20 && n.config.cpus == 2,
	   "nothing is lost");
	snap_meta_done(&m);
	snap_meta_done(&n);
}

/* --- a whole one through a file --- */
static unsigned char qcow2[QCOW2_HEAD] = { 'Q', 'F', 'I', 0xfb, 0, 0, 0, 3 };

static void write_file(int dirfd, const char *name, const void *p, size_t n, off_t size)
{
	AUTO_FD fd = openat(dirfd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	if (fd < 0 || fd_write_all(fd, p, n) < 0 || (size && ftruncate(fd, size) < 0))
		abort();
}

static void note(struct snap_meta *m, int dirfd, enum snap_part p)
{
	AUTO_FD fd = openat(dirfd, snap_part_names[p], O_RDONLY | O_CLOEXEC);

	if (digest_file(fd, NULL, &m->part[p].bytes, m->part[p].sum) < 0)
		abort();
}

static void make(struct snap_meta *m, int dirfd)
{
	struct err e = ERR_INIT;
	AUTO_FD fd = -1;

	if (snap_meta_parse(good, strlen(good), m, &e) < 0)
		abort();
	write_file(dirfd, "devices", "abc", 3, 0);
	write_file(dirfd, "ram", "page", 4, 0);
	write_file(dirfd, "disk.qcow2", qcow2, sizeof(qcow2), 300000);
	write_file(dirfd, "base.ram", "begin", 5, 64 << 20);
	fd = openat(dirfd, "base.ram", O_WRONLY | O_CLOEXEC);
	if (pwrite(fd, "middle", 6, 33 << 20) != 6)
		abort();
	for (int p = 0; p < SNAP_PARTS; p++)
		note(m, dirfd, (enum snap_part)p);
}

static ssize_t read_fd(void *arg, void *p, size_t n)
{
	ssize_t k = read(*(int *)arg, p, n);

	return k < 0 ? -errno : k;
}

static int load(int fd, int dirfd, bool disk_only, struct err *e)
{
	struct snap_in *in;
	struct snap_meta m;
	int r;

	if (lseek(fd, 0, SEEK_SET) < 0)
		abort();
	r = snapfile_open(read_fd, &fd, &in, &m, e);
	if (r < 0)
		return r;
	r = snapfile_take(in, &m, dirfd, disk_only, NULL, e);
	snap_meta_done(&m);
	snapfile_close(in);
	return r;
}

#define TEMP "/tmp/test-snap.XXXXXX"
static int temp_dir(char name[sizeof(TEMP)])
{
	memcpy(name, TEMP, sizeof(TEMP));
	return mkdtemp(name) ? open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
}

/* A file in memory that ends after N bytes of FD. */
static int cut(int fd, off_t n)
{
	int out = memfd_create("cut", MFD_CLOEXEC);
	off_t from = 0;

	for (char p[4096]; from < n;) {
		ssize_t k = pread(fd, p,
				  (size_t)(n - from) < sizeof(p) ? (size_t)(n - from) : sizeof(p),
				  from);

		if (k <= 0 || fd_write_all(out, p, (size_t)k) < 0)
			abort();
		from += k;
	}
	return out;
}

static void test_cut(int file, off_t size)
{
	char name[sizeof(TEMP)];
	int bad = 0, cases = 0;

	for (off_t n = 0; n < size; n += n + 30 < size ? 29 : 1) {
		AUTO_FD dir = -1;
		AUTO_FD part = cut(file, n);
		struct err e = ERR_INIT;

		dir = temp_dir(name);
		bad += load(part, dir, false, &e) == 0 || !e.msg[0];
		cases++;
		ignore_result(fd_remove_tree(name));
	}
	ok(bad == 0 && cases > 20, "cut anywhere (%d places) it is refused", cases);
}

/* In a process of its own: after a failure libarchive forgets a block of memory. */
static int save_fails(int dirfd, const struct snap_meta *m, const char *why)
{
	pid_t pid = fork();
	int status = -1;

	if (pid == 0) {
		struct err e = ERR_INIT;
		int fd = memfd_create("file", MFD_CLOEXEC);

		_exit(snapfile_write(dirfd, m, fd, NULL, &e) < 0 && strstr(e.msg, why) ? 0 : 1);
	}
	return waitpid(pid, &status, 0) == pid ? status : -1;
}

static void test_file(void)
{
	char from[sizeof(TEMP)], to[sizeof(TEMP)];
	AUTO_FD a = temp_dir(from);
	AUTO_FD b = temp_dir(to);
	AUTO_FD file = memfd_create("file", MFD_CLOEXEC);
	struct snap_meta m;
	struct stat st;
	struct err e = ERR_INIT;

	make(&m, a);
	ok_int(snapfile_write(a, &m, file, NULL, &e), 0, "saved");
	if (fstat(file, &st) < 0)
		abort();
	ok(st.st_size < 20000, "small: holes cost nothing (%lld bytes)", (long long)st.st_size);
	ok_int(load(file, b, false, &e), 0, "and loaded");
	for (int p = 0; p < SNAP_PARTS; p++) {
		struct snap_meta n = m;

		note(&n, b, (enum snap_part)p);
		ok(n.part[p].bytes == m.part[p].bytes && !strcmp(n.part[p].sum, m.part[p].sum),
		   "%s is the same", snap_part_names[p]);
	}
	ok(fstatat(b, "base.ram", &st, 0) == 0 && st.st_blocks < 2000, "its holes are holes");
	ok(load(file, b, false, &e) < 0, "not over files that are there");
	ignore_result(fd_remove_tree(to));
	fd_close(&b);
	b = temp_dir(to);
	ok_int(load(file, b, true, &e), 0, "the disk alone");
	ok(faccessat(b, "disk.qcow2", F_OK, 0) == 0 && faccessat(b, "ram", F_OK, 0) < 0,
	   "and nothing else");
	test_cut(file, lseek(file, 0, SEEK_END));
	write_file(a, "ram", "pagE", 4, 0);
	ok_int(save_fails(a, &m, "ram of the snapshot is damaged"), 0,
	       "a part that changed is not saved");
	write_file(a, "ram", "pages", 5, 0);
	ok_int(save_fails(a, &m, "another length"), 0, "nor one that grew");
	snap_meta_done(&m);
	ignore_result(fd_remove_tree(from));
	ignore_result(fd_remove_tree(to));
}

static void test_qcow2(void)
{
	static const struct {
		size_t at;
		const char *what;
	} bad[] = {
		{ 0, "magic" },	      { 7, "version" },	   { 15, "backing file" },
		{ 19, "its length" }, { 24, "size" },	   { 35, "encryption" },
		{ 63, "snapshots" },  { 79, "data file" }, { 72, "a feature" },
	};
	unsigned char h[QCOW2_HEAD];

	ok_int(qcow2_check(qcow2, sizeof(qcow2), NULL), 0, "a plain head");
	ok(qcow2_check(qcow2, 72, NULL) < 0, "a short one");
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		memcpy(h, qcow2, sizeof(h));
		h[bad[i].at] ^= 4;
		ok(qcow2_check(h, sizeof(h), NULL) < 0, "%s is refused", bad[i].what);
	}
	memcpy(h, qcow2, sizeof(h));
	h[79] = 1;
	ok_int(qcow2_check(h, sizeof(h), NULL), 0, "one that was not closed is fine");
}

/* The vectors are of the rule in digest.h, by Python's hashlib. */
static void test_digest(void)
{
	char sum[DIGEST_LEN + 1], name[sizeof(TEMP)];
	AUTO_FD dir = temp_dir(name);
	uint64_t n;
	AUTO_FD fd = -1;
	AUTO_FD zeros = -1;

	write_file(dir, "f", "x", 1, 200000);
	fd = openat(dir, "f", O_RDWR | O_CLOEXEC);
	if (pwrite(fd, "y", 1, 199999) != 1)
		abort();
	ok_int(digest_file(fd, NULL, &n, sum), 0, "a sparse file");
	ok_str(sum, "281a732aca29bde288d84fb35db7b76b282df8fa99ee9655620733ab92f14bb2",
	       "its checksum");
	if (pwrite(fd, "\0\0\0\0", 4, 70000) != 4)
		abort();
	ok_int(digest_file(fd, NULL, &n, sum), 0, "with zeros written into a hole");
	ok_str(sum, "281a732aca29bde288d84fb35db7b76b282df8fa99ee9655620733ab92f14bb2", "the same");
	write_file(dir, "z", "", 0, 65537);
	zeros = openat(dir, "z", O_RDONLY | O_CLOEXEC);
	ok(digest_file(zeros, NULL, &n, sum) == 0 && n == 65537, "zeros only");
	ok_str(sum, "578ce22e73619f9dfc119e4e56196a02155da6d446d7f185567d49884f58724f",
	       "their length counts");
	ignore_result(fd_remove_tree(name));
}

int main(void)
{
	test_parse();
	test_print();
	test_digest();
	test_qcow2();
	test_file();
	return tap_done();
}
