/* SPDX-License-Identifier: Apache-2.0 */
#include "host/local/ram.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "lib/fd.h"
#include "lib/str.h"

/*
 * Which pages are the process's own: /proc/PID/pagemap (Linux: Documentation/admin-guide/mm/pagemap.rst). A page of
 * a private file mapping that was never written is the file's (bit 61), or is not there at all; one that was written
 * is anonymous, in memory (bit 63) or in swap (bit 62). The bits can be read without any privilege, unlike the frame
 * numbers. So the kernel has kept the list of changes for us, at the grain of a page and at no cost to the guest.
 *
 * A list of pages is a head, and batches of: a count, the numbers of the pages in ascending order, their bytes. The
 * head is written last and says how much there must be, so a file that was cut is none. Integers are the machine's
 * own: a saved guest fits no other kind of CPU anyway.
 */

#define PM_PRESENT (1ULL << 63)
#define PM_SWAPPED (1ULL << 62)
#define PM_FILE	   (1ULL << 61)

#define MAGIC	    "ASBRAM1\n"
#define BATCH_BYTES (1U << 20)
#define BATCH_PAGES 256
#define MAP_ENTRIES 4096
#define STEP	    16 /* batches */

struct head {
	char magic[8];
	uint64_t page, total, stored, batches;
};

static size_t batch_most(const struct ram_job *j)
{
	size_t n = BATCH_BYTES / j->page;

	return n < BATCH_PAGES ? n : BATCH_PAGES;
}

static int begin(struct ram_job *j, pid_t pid, uint64_t base, uint64_t bytes, int fd)
{
	long page = sysconf(_SC_PAGESIZE);

	*j = (struct ram_job)RAM_JOB_INIT;
	if (page <= 0 || (size_t)page > BATCH_BYTES || base % (uint64_t)page ||
	    bytes % (uint64_t)page)
		return -EINVAL;
	j->page = (size_t)page;
	j->pid = pid;
	j->base = base;
	j->total = bytes / j->page;
	j->fd = fd;
	j->list = malloc(BATCH_PAGES * sizeof(*j->list));
	j->data = malloc(BATCH_BYTES);
	j->map = malloc(MAP_ENTRIES * sizeof(*j->map));
	return j->list && j->data && j->map ? 0 : -ENOMEM;
}

void ram_done(struct ram_job *j)
{
	free(j->list);
	free(j->data);
	free(j->map);
	fd_close(&j->pagemap);
	*j = (struct ram_job)RAM_JOB_INIT;
}

/* --- between the process and the buffer --- */
/* Adds page NO at the end of the N parts of V, or to the last of them. */
static size_t add_part(const struct ram_job *j, struct iovec *v, size_t n, uint64_t no)
{
	uintptr_t at = (uintptr_t)(j->base + no * j->page);

	if (n && (uintptr_t)v[n - 1].iov_base + v[n - 1].iov_len == at) {
		v[n - 1].iov_len += j->page;
		return n;
	}
	v[n].iov_base = (void *)at; /* NOLINT(performance-no-int-to-ptr): in another process */
	v[n].iov_len = j->page;
	return n + 1;
}

static int transfer(const struct ram_job *j, size_t pages, bool into)
{
	struct iovec far[BATCH_PAGES], near = { j->data, pages * j->page };
	size_t parts = 0;
	ssize_t n;

	for (size_t i = 0; i < pages; i++)
		parts = add_part(j, far, parts, j->list[i]);
	n = into ? process_vm_writev(j->pid, &near, 1, far, parts, 0)
		 : process_vm_readv(j->pid, &near, 1, far, parts, 0);
	if (n < 0)
		return -errno;
	return (size_t)n == near.iov_len ? 0 : -EFAULT;
}

/* --- saving --- */
int ram_save(struct ram_job *j, enum ram_kind kind, pid_t pid, uint64_t base, uint64_t bytes,
	     int fd)
{
	const struct head none = { .total = 0 };
	char path[64];
	int r = begin(j, pid, base, bytes, fd);

	if (r < 0)
		return r;
	j->flat = kind == RAM_FLAT;
	j->drop_zero = kind != RAM_CHANGES;
	r = str_format(path, sizeof(path), "/proc/%d/pagemap", pid);
	if (r < 0)
		return r;
	j->pagemap = open(path, O_RDONLY | O_CLOEXEC);
	if (j->pagemap < 0)
		return -errno;
	if (j->flat)
		return ftruncate(fd, (off_t)bytes) < 0 ? -errno : 0;
	return fd_write_all(fd, &none, sizeof(none));
}

static int read_map(struct ram_job *j)
{
	uint64_t first = j->base / j->page + j->at, left = j->total - j->at;
	size_t want = left < MAP_ENTRIES ? (size_t)left : MAP_ENTRIES;
	ssize_t n =
		pread(j->pagemap, j->map, want * sizeof(*j->map), (off_t)(first * sizeof(*j->map)));

	if (n < 0)
		return -errno;
	if (n < (ssize_t)sizeof(*j->map))
		return -ESRCH; /* it has ended */
	j->map_len = (size_t)n / sizeof(*j->map);
	j->map_at = 0;
	return 0;
}

/* Fills the list. The number of pages, 0 at the end. */
static int collect(struct ram_job *j)
{
	size_t n = 0, most = batch_most(j);

	for (; j->at < j->total && n < most; j->at++) {
		uint64_t m;

		if (j->map_at == j->map_len) {
			int r = read_map(j);

			if (r < 0)
				return r;
		}
		m = j->map[j->map_at++];
		if ((m & PM_SWAPPED) || ((m & PM_PRESENT) && !(m & PM_FILE)))
			j->list[n++] = j->at;
	}
	return (int)n;
}

static bool is_zero(const unsigned char *p, size_t n)
{
	return p[0] == 0 && memcmp(p, p + 1, n - 1) == 0;
}

static size_t without_zeroes(struct ram_job *j, size_t n)
{
	size_t kept = 0;

	for (size_t i = 0; i < n; i++) {
		if (is_zero(j->data + i * j->page, j->page))
			continue;
		if (kept != i)
			memcpy(j->data + kept * j->page, j->data + i * j->page, j->page);
		j->list[kept++] = j->list[i];
	}
	return kept;
}

static int write_flat(const struct ram_job *j, size_t n)
{
	for (size_t i = 0, run; i < n; i += run) {
		int r;

		for (run = 1; i + run < n && j->list[i + run] == j->list[i] + run; run++)
			;
		r = fd_pwrite_all(j->fd, j->data + i * j->page, run * j->page,
				  (off_t)(j->list[i] * j->page));
		if (r < 0)
			return r;
	}
	return 0;
}

static int write_batch(const struct ram_job *j, size_t n)
{
	const uint64_t count = n;
	int r = fd_write_all(j->fd, &count, sizeof(count));

	if (r == 0)
		r = fd_write_all(j->fd, j->list, n * sizeof(*j->list));
	return r < 0 ? r : fd_write_all(j->fd, j->data, n * j->page);
}

static int write_head(const struct ram_job *j)
{
	struct head h = {
		.page = j->page, .total = j->total, .stored = j->stored, .batches = j->batches
	};

	memcpy(h.magic, MAGIC, sizeof(h.magic));
	return pwrite(j->fd, &h, sizeof(h), 0) == (ssize_t)sizeof(h) ? 0 : -EIO;
}

static int save_batch(struct ram_job *j)
{
	int r = collect(j);
	size_t n = r > 0 ? (size_t)r : 0;

	if (r <= 0)
		return r;
	r = transfer(j, n, false);
	if (r == 0 && j->drop_zero)
		n = without_zeroes(j, n);
	if (r < 0 || n == 0)
		return r < 0 ? r : 1;
	r = j->flat ? write_flat(j, n) : write_batch(j, n);
	j->stored += n;
	j->batches++;
	return r < 0 ? r : 1;
}

int ram_save_step(struct ram_job *j)
{
	int r = 1;

	for (int i = 0; i < STEP && r > 0; i++)
		r = save_batch(j);
	return r == 0 && !j->flat ? write_head(j) : r;
}

/* --- loading --- */
static int read_exact(int fd, void *p, size_t n)
{
	char *to = p;

	while (n) {
		ssize_t k = read(fd, to, n);

		if (k < 0 && errno == EINTR)
			continue;
		if (k <= 0)
			return k < 0 ? -errno : -EINVAL;
		to += k;
		n -= (size_t)k;
	}
	return 0;
}

int ram_load(struct ram_job *j, pid_t pid, uint64_t base, uint64_t bytes, int fd)
{
	struct head h;
	int r = begin(j, pid, base, bytes, fd);

	if (r == 0)
		r = read_exact(fd, &h, sizeof(h));
	if (r < 0)
		return r;
	if (memcmp(h.magic, MAGIC, sizeof(h.magic)) || h.page != j->page || h.total != j->total ||
	    h.stored > h.total || h.batches > h.stored)
		return -EINVAL;
	j->stored = h.stored;
	j->batches = h.batches;
	return 0;
}

static int load_batch(struct ram_job *j)
{
	uint64_t n;
	int r = read_exact(j->fd, &n, sizeof(n));

	if (r < 0)
		return r;
	if (n == 0 || n > batch_most(j) || n > j->stored)
		return -EINVAL;
	r = read_exact(j->fd, j->list, n * sizeof(*j->list));
	if (r < 0)
		return r;
	for (uint64_t i = 0; i < n; i++) { /* at: the first page that may still come */
		if (j->list[i] < j->at || j->list[i] >= j->total)
			return -EINVAL;
		j->at = j->list[i] + 1;
	}
	r = read_exact(j->fd, j->data, n * j->page);
	if (r == 0)
		r = transfer(j, n, true);
	j->stored -= n;
	j->batches--;
	return r;
}

int ram_load_step(struct ram_job *j)
{
	int r = 0;

	for (int i = 0; i < STEP && r == 0 && j->batches; i++)
		r = load_batch(j);
	if (r < 0)
		return r;
	if (j->batches)
		return 1;
	return j->stored ? -EINVAL : 0;
}
