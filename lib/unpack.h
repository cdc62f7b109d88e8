/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_UNPACK_H
#define ASB_UNPACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "compiler.h"
#include "err.h"

/*
 * Extracts a tar stream (ustar, pax, GNU) from somebody hostile below a directory, and never outside it.
 *
 * Refused, with the member's name: an absolute name, a ".." in one, a name that leads through a symbolic link (of the
 * archive or not: the workload may make one between two members), a device, a hard link to something outside. Symbolic links are
 * made as they are, wherever they point, and never followed. A file replaces a file or a link, whole and at
 * once; a directory is merged into one that is there; neither takes the other's place.
 *
 * Mode and mtime are the archive's. Names are bytes. Extended attributes and ACLs are ignored.
 */
#define UNPACK_PATH_MAX	   4095	   /* bytes of a name, and of a link's target */
#define UNPACK_MEMBERS_MAX 1000000 /* of one archive */
#define UNPACK_DIRS_MAX \
	(64U << 20) /* bytes of the paths of its directories, which are kept to the end */

enum unpack_flags {
	UNPACK_OWNER =
		1 << 0, /* uid and gid of the archive (by number), else those of the process */
	UNPACK_NO_SETID = 1 << 1, /* set-user-id, set-group-id and sticky bits are dropped */
};

struct archive;

struct unpack_spec {
	int dir; /* borrowed: everything lands below; open for reading or as O_PATH */
	/* The first component that every name must have (NULL = any), and what takes its place (NULL = nothing is replaced). "."
	 * for FROM: names like "./a" and "a", below TO. */
	const char *from, *to;
	unsigned flags;
	/* Up to N bytes of the stream: > 0, 0 at its end, or a negative errno, which is returned. */
	ssize_t (*read)(void *arg, void *p, size_t n);
	void (*tick)(void *arg); /* called for every member and block; NULL = not needed */
	void *arg;
	/* Lets A read compressed streams too, before it is opened: ARCHIVE_OK. NULL = plain tar only. A pointer, so that who
	 * does not want them does not link them. */
	int (*filters)(struct archive *a);
	/* Whether the member that lands at PATH, of this type (S_IFMT), is left out. NULL = none is. */
	bool (*skip)(void *arg, const char *path, mode_t type);
};

struct unpack_count {
	uint64_t members; /* that are complete, with directories */
	uint64_t bytes;	  /* of files */
};

/*
 * Blocks. 0, or a negative errno with a message that names the member; what *RET counts stands then, and nothing of the
 * member that failed. A stream without the end mark of tar is an error: it was cut.
 */
int unpack_tree(const struct unpack_spec *s, struct unpack_count *ret, struct err *e) MUST_CHECK;

/* The same for N bytes in memory, below DIR. */
int unpack_bytes(int dir, const void *p, size_t n, unsigned flags, struct unpack_count *ret,
		 struct err *e) MUST_CHECK;

/* For a handler of a signal after which the process ends: removes the temporary file of the member that is being
 * written. Async-signal-safe. */
void unpack_abandon(void);

#endif
