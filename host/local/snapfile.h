/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_LOCAL_SNAPFILE_H
#define ASB_LOCAL_SNAPFILE_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "host/local/snapmeta.h"
#include "lib/compiler.h"
#include "lib/err.h"

/*
 * A snapshot as one stream: a tar (pax, with holes) packed by zstd, of snapshot.json and then the parts that it lists, in
 * the order of enum snap_part and under their names, and nothing else.
 */
struct progress;

/* Writes that of M, whose parts are in DIRFD, to OUT; each part must still have its checksum. On failure what was
 * written has no end, and no reader takes it for whole. */
int snapfile_write(int dirfd, const struct snap_meta *m, int out, const struct progress *p,
		   struct err *e) MUST_CHECK;

struct snap_in; /* a stream that is being read; from anybody */

/* READ gives up to N bytes: > 0, 0 at the end, or a negative errno. On success *META is what the stream says of itself,
 * for snap_meta_done, and *RET for snapfile_close. */
int snapfile_open(ssize_t (*read)(void *arg, void *p, size_t n), void *arg, struct snap_in **ret,
		  struct snap_meta *meta, struct err *e) MUST_CHECK;

/* For READ: from a descriptor; ARG is a struct snap_fd. -EINTR when *CANCEL (may be NULL) is set. */
struct snap_fd {
	int fd;
	const volatile sig_atomic_t *cancel;
};
ssize_t snapfile_read_fd(void *arg, void *p, size_t n) MUST_CHECK;

/*
 * Writes the parts of META into the empty DIRFD, with the checksums that it says; with DISK_ONLY no more than the disk.
 * The disk is an image that names no other file. On failure DIRFD may hold some of it.
 */
int snapfile_take(struct snap_in *in, const struct snap_meta *meta, int dirfd, bool disk_only,
		  const struct progress *p, struct err *e) MUST_CHECK;

void snapfile_close(struct snap_in *in); /* fine for NULL */

#endif
