/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_UNPACK_INT_H
#define ASB_UNPACK_INT_H

#include "unpack.h"

#include <time.h>

/* Shared by unpack.c (the stream), unpack_name.c (names) and unpack_put.c (files). */
struct archive;
struct archive_entry;

#define UNPACK_BLOCK (64U << 10)
#define UNPACK_TMP   40

struct unpack_attrs {
	mode_t mode;
	uid_t uid;
	gid_t gid;
	bool has_mtime;
	struct timespec mtime;
};

struct unpack_dir {
	char *path; /* owned */
	struct unpack_attrs attrs;
};

struct unpacker {
	const struct unpack_spec *spec;
	struct unpack_count *count;
	struct err *err;
	struct archive *a;
	int read_error; /* negative errno of spec->read */

	char name[UNPACK_PATH_MAX +
		  1]; /* of the member, as the archive has it, for messages; "" before the first */
	char path[UNPACK_PATH_MAX + 1]; /* where it goes, below spec->dir; "" is spec->dir itself */

	int place; /* owned: the directory of the last member; -1 = none */
	char place_path[UNPACK_PATH_MAX + 1]; /* its path */
	char tmp[UNPACK_TMP];		      /* a file in PLACE that is being made; "" = none */
	char tmp_prefix[24];
	unsigned tmp_counter;

	struct unpack_dir *dirs; /* owned */
	size_t dirs_len, dirs_size;
	size_t dirs_bytes; /* of their paths */
	char block[UNPACK_BLOCK];
};

static inline void unpack_tick(const struct unpacker *u)
{
	if (u->spec->tick)
		u->spec->tick(u->spec->arg);
}

/* Refuses the member: -EINVAL. */
int unpack_refuse(struct unpacker *u, const char *why) MUST_CHECK;
/* What libarchive says of the stream. */
int unpack_lib_failed(struct unpacker *u) MUST_CHECK;

/* Sets u->name and u->path from EN, or refuses it. */
int unpack_name(struct unpacker *u, struct archive_entry *en) MUST_CHECK;
/* A name of the archive as a path below spec->dir, in OUT (UNPACK_PATH_MAX + 1 bytes). */
int unpack_map(struct unpacker *u, const char *name, char *out) MUST_CHECK;

int unpack_put_init(struct unpacker *u, struct err *e) MUST_CHECK;
void unpack_put_done(struct unpacker *u);
int unpack_put(struct unpacker *u, struct archive_entry *en) MUST_CHECK;
int unpack_set_attrs(const struct unpacker *u, int fd, const struct unpack_attrs *at) MUST_CHECK;
int unpack_remember_dir(struct unpacker *u, const struct unpack_attrs *at) MUST_CHECK;

#endif
