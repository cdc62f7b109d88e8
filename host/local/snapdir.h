/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_LOCAL_SNAPDIR_H
#define ASB_LOCAL_SNAPDIR_H

#include "host/local/local.h"
#include "host/local/snapmeta.h"
#include "lib/compiler.h"
#include "lib/err.h"

/*
 * The folders of snapshots, <state>/local/snapshots/<name>/ with snapshot.json and the parts that it lists. One is made
 * as ".new-<16 hex digits>", brought to the disk, and given its name in one step; nothing in it changes afterwards.
 * It is removed by giving it such a name again.
 */

/* Opens the folder of NAME and reads its snapshot.json. PATH: of the folder. -ENOENT + ERR_NOT_FOUND. */
int snapdir_open(const char *name, char path[LOCAL_PATH_MAX], int *ret_fd, struct snap_meta *ret,
		 struct err *e) MUST_CHECK;

/* Whether all parts have the length and the time of change that M says. -ESTALE + ERR_CONFLICT: not so. */
int snapdir_check(int dirfd, const struct snap_meta *m, struct err *e) MUST_CHECK;

/* One that is being made. */
struct snap_new {
	int dirfd, lock;
	char path[LOCAL_PATH_MAX];
};
/* -EEXIST + ERR_EXISTS: NAME is taken. Followed by publish or abort; abort is fine after either. */
int snapdir_begin(const char *name, struct snap_new *ret, struct err *e) MUST_CHECK;
/* The parts of M are there: brings them to the disk, notes their times of change in M, writes snapshot.json, and gives
 * the folder the name M->name. */
int snapdir_publish(struct snap_new *n, struct snap_meta *m, struct err *e) MUST_CHECK;
void snapdir_abort(struct snap_new *n);

int snapdir_remove(const char *name, struct err *e) MUST_CHECK;

/* Calls FN with the name of each, in their order. Non-zero from FN stops and is returned. */
int snapdir_each(int (*fn)(void *arg, const char *name), void *arg, struct err *e) MUST_CHECK;

/*
 * Removes what killed processes left half made or half removed; with FN, it is told the name of each and the bytes that
 * are freed. DRY: only tells.
 */
void snapdir_collect(bool dry, void (*fn)(void *arg, const char *name, uint64_t bytes), void *arg);

/* Bytes that the files of DIRFD have on the disk, also where they share them with others. */
uint64_t snapdir_bytes(int dirfd);

#endif
