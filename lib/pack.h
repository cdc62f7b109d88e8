/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_PACK_H
#define ASB_PACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "compiler.h"
#include "err.h"

/*
 * A file or a directory with all below it as a tar stream (pax where ustar cannot hold it; POSIX.1-2001 pax, libarchive's
 * "restricted" form). Names are bytes. Symbolic links below are kept as they are. Hard links among the files are kept, holes too.
 * Sockets are left out; extended attributes are not carried.
 */
#define PACK_DEPTH_MAX 512 /* directories within each other; each costs a descriptor */
#define PACK_PATH_MAX  4095

struct pack_spec {
	int dir;	  /* borrowed: the directory that holds NAME, or AT_FDCWD */
	const char *name; /* one entry of DIR, or "." */
	const char *
		as; /* how member names begin instead of NAME; "." for names like "./a"; NULL = NAME */
	bool follow; /* NAME may be a symbolic link to what is meant */
	/* Takes all N bytes: 0, or a negative errno, which ends the work and is returned. */
	int (*write)(void *arg, const void *p, size_t n);
	void (*tick)(void *arg); /* called for every member and block; NULL = not needed */
	/* Whether the entry PATH, as its member would be named, is left out with all below it. NULL = none is. */
	bool (*skip)(void *arg, const char *path, mode_t mode);
	void *arg;
};

struct pack_count {
	uint64_t members; /* with directories */
	uint64_t bytes;	  /* of files */
	uint64_t skipped; /* sockets */
};

/*
 * Blocks. 0, or a negative errno with a message that names the file: what has been written is then not a whole archive, and has
 * no end mark. A file that shrinks or vanishes meanwhile is an error; of one that grows, the length it had is taken.
 */
int pack_tree(const struct pack_spec *s, struct pack_count *ret, struct err *e) MUST_CHECK;

/* Tells the entry of libarchive that is to hold FD where that has holes. A file system that does not know has none. */
struct archive_entry;
struct stat;
void pack_holes(struct archive_entry *en, int fd, const struct stat *st);

#endif
