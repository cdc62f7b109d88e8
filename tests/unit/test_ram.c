/* SPDX-License-Identifier: Apache-2.0 */
/* LINK: host/local/ram.c */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../host/local/ram.h"
#include "../lib/tap.h"

/* A "guest" whose memory is a mapping of our own: the same calls, and the same page map. */

#define PAGES 3000U

static size_t page;

static int file(void)
{
	char path[] = "/tmp/asb-ram.XXXXXX";
	int fd = mkstemp(path);

	(void)unlink(path);
	return fd;
}

/* PAGES pages of FD, private; FD < 0: of nothing. */
static unsigned char *map(int fd)
{
	void *p = mmap(NULL, PAGES * page, PROT_READ | PROT_WRITE,
		       fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_PRIVATE, fd, 0);

	return p == MAP_FAILED ? NULL : p;
}

static int save(enum ram_kind kind, const unsigned char *p, int fd, uint64_t *ret_stored)
{
	struct ram_job j;
	int r = ram_save(&j, kind, getpid(), (uintptr_t)p, PAGES * page, fd);

	if (r == 0)
		do
			r = ram_save_step(&j);
		while (r > 0);
	*ret_stored = j.stored;
	ram_done(&j);
	return r;
}

static int load(unsigned char *p, size_t pages, int fd)
{
	struct ram_job j;
	int r;

	(void)lseek(fd, 0, SEEK_SET);
	r = ram_load(&j, getpid(), (uintptr_t)p, pages * page, fd);
	if (r == 0)
		do
			r = ram_load_step(&j);
		while (r > 0);
	ram_done(&j);
	return r;
}

/* A template, a guest that changes some of it, its changes, and another guest that gets them. */
static void test_changes(void)
{
	int template = file(), changes = file();
	unsigned char *a = map(-1), *b, *c;
	uint64_t n;

	a[0] = 1;
	memset(a + 7 * page, 7, 600 * page);
	a[PAGES * page - 1] = 9;
	(void)memset(a + 20 * page, 0, page); /* touched, and zero */
	ok_int(save(RAM_FLAT, a, template, &n), 0, "a template");
	ok_int((long long)n, 601, "holds what is not zero");
	b = map(template);
	ok(b && !memcmp(a, b, PAGES * page), "and is the memory");
	for (size_t i = 0; i < PAGES * page; i += page)
		(void)*(volatile unsigned char *)(b + i); /* what was only read is no change */
	b[5 * page] = 5;
	memset(b + 7 * page, 0, page); /* zero above something else */
	memset(b + 1000 * page, 3, 700 * page);
	ok_int(save(RAM_CHANGES, b, changes, &n), 0, "what a guest has changed");
	ok_int((long long)n, 702, "is what it has written to");
	c = map(template);
	ok_int(load(c, PAGES, changes), 0, "put into another guest");
	ok(!memcmp(b, c, PAGES * page), "they are the same then");
	ok_int(load(c, PAGES - 1, changes), -EINVAL, "not into one of another size");
	ok_int(ftruncate(changes, 700 * (off_t)page), 0, "a list");
	ok_int(load(c, PAGES, changes), -EINVAL, "that was cut is refused");
	(void)munmap(a, PAGES * page);
	(void)munmap(b, PAGES * page);
	(void)munmap(c, PAGES * page);
	close(template);
	close(changes);
}

static void test_all(void)
{
	int fd = file();
	unsigned char *a = map(-1), *b = map(-1);
	uint64_t n;

	memset(a + page, 1, 2 * page);
	memset(a + 100 * page, 0, 100 * page);
	ok_int(save(RAM_ALL, a, fd, &n), 0, "all of a guest without a template");
	ok_int((long long)n, 2, "zeroes are left out");
	ok_int(load(b, PAGES, fd), 0, "put into another");
	ok(!memcmp(a, b, PAGES * page), "they are the same then");
	(void)munmap(a, PAGES * page);
	(void)munmap(b, PAGES * page);
	close(fd);
}

static void test_hostile(void)
{
	uint64_t word;
	int fd = file();
	unsigned char *a = map(-1);
	uint64_t n;

	ok_int(load(a, PAGES, fd), -EINVAL, "an empty file");
	memset(a + page, 1, 2 * page);
	ok_int(ftruncate(fd, 0), 0, "a list");
	(void)lseek(fd, 0, SEEK_SET);
	ok_int(save(RAM_ALL, a, fd, &n), 0, "of two pages");
	word = 1 << 20;
	ok(pwrite(fd, &word, 8, 40) == 8 && load(a, PAGES, fd) == -EINVAL, "too large a batch");
	word = 0;
	ok(pwrite(fd, &word, 8, 40) == 8 && load(a, PAGES, fd) == -EINVAL, "an empty batch");
	word = 2;
	ok(pwrite(fd, &word, 8, 40) == 8 && load(a, PAGES, fd) == 0, "the right count again");
	word = PAGES;
	ok(pwrite(fd, &word, 8, 56) == 8 && load(a, PAGES, fd) == -EINVAL, "a page outside");
	word = 1;
	ok(pwrite(fd, &word, 8, 56) == 8 && load(a, PAGES, fd) == -EINVAL, "a page twice");
	(void)munmap(a, PAGES * page);
	close(fd);
	fd = open("/dev/full", O_RDWR | O_CLOEXEC);
	ok_int(save(RAM_ALL, a = map(-1), fd, &n), -ENOSPC, "a full disk");
	(void)munmap(a, PAGES * page);
	close(fd);
}

int main(void)
{
	page = (size_t)sysconf(_SC_PAGESIZE);
	test_changes();
	test_all();
	test_hostile();
	return tap_done();
}
