/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_LOCAL_RAM_H
#define ASB_LOCAL_RAM_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "lib/compiler.h"

/*
 * A guest's memory out of and into its QEMU, which must be stopped: the pages that are the process's own. Of a
 * memory that is mapped copy-on-write from a template these are what the guest has changed since; of one without a
 * template, all that it has touched. Needs the right to trace the process (ptrace(2)); a parent has it.
 *
 * In steps, so that a loop goes on beside it. A job owns its buffers and its view of the process, FD is borrowed.
 */
struct ram_job {
	uint64_t base;	    /* address in the process */
	uint64_t total, at; /* pages */
	uint64_t stored, batches;
	uint64_t *map, *list;
	unsigned char *data;
	size_t page;
	size_t map_len, map_at;
	pid_t pid;
	int pagemap, fd;
	bool flat; /* into a file of the memory's size, each page at its place, zeroes left out */
	bool drop_zero; /* pages of zeroes need not be kept: nothing is below them */
};

#define RAM_JOB_INIT                    \
	{                               \
		.pagemap = -1, .fd = -1 \
	}

enum ram_kind {
	RAM_FLAT, /* FD becomes an image of the memory; sparse */
	RAM_CHANGES, /* FD becomes a list of pages; zeroes count, because something else is below them */
	RAM_ALL, /* the same, less the pages of zeroes */
};

/* The memory of BYTES at BASE in PID. 0 or negative errno (-EPERM, -EACCES: may not trace). ram_done in any case. */
int ram_save(struct ram_job *j, enum ram_kind kind, pid_t pid, uint64_t base, uint64_t bytes,
	     int fd) MUST_CHECK;
/* 1: there is more to do, 0: all is written, negative errno (-ENOSPC). */
int ram_save_step(struct ram_job *j) MUST_CHECK;

/* Puts a list of pages from FD into the memory. -EINVAL: it is none, or of a memory of another size, or cut. */
int ram_load(struct ram_job *j, pid_t pid, uint64_t base, uint64_t bytes, int fd) MUST_CHECK;
int ram_load_step(struct ram_job *j) MUST_CHECK;

void ram_done(struct ram_job *j);

#endif
