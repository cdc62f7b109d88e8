/* SPDX-License-Identifier: Apache-2.0 */
#ifndef AGENTD_FSOP_H
#define AGENTD_FSOP_H

#include <cJSON.h>
#include <dirent.h>
#include <stdbool.h>
#include <sys/stat.h>

#include "lib/buf.h"
#include "lib/compiler.h"
#include "lib/err.h"
#include "lib/httpd.h"

/*
 * What all native file routes share: which paths they take, how a file is described, and which
 * status an errno becomes; and the work of the operations that a worker does.
 */

#define FSOP_PATH_MAX 4095 /* bytes of a path, without its NUL */

/*
 * A path of N bytes: absolute, not empty, no NUL, at most FSOP_PATH_MAX bytes; "~" has no meaning.
 * `.`, `..`, `//` and symbolic links are the kernel's business. 0, or -EINVAL with a message that
 * begins with NAME.
 */
int fsop_path_check(const char *name, const char *p, size_t n, struct err *e) MUST_CHECK;

/*
 * The path that the query (or the JSON object O) gives as NAME or, in base64, as NAME_b64; of both
 * alphabets of RFC 4648. *RET is allocated, the caller frees it. 0 or a negative errno with a
 * message that names the field.
 */
int fsop_path_query(struct httpd_req *r, const char *name, char **ret, struct err *e) MUST_CHECK;
int fsop_path_member(const cJSON *o, const char *name, char **ret, struct err *e) MUST_CHECK;
/* The same for any bytes without a NUL, of at least one (the target of a symbolic link). */
int fsop_bytes_member(const cJSON *o, const char *name, char **ret, struct err *e) MUST_CHECK;

/* "0644", as it is written in octal, 1 to 5 digits, at most 07777. 0 or -EINVAL. */
int fsop_mode(const char *s, mode_t *ret) MUST_CHECK;

/*
 * Where a write to PATH ends up: the last component's symbolic links are followed, at most 40. *RET
 * is allocated, the caller frees it. *ST is the file that is there, st_mode 0 when there is none. 0
 * or a negative errno.
 */
int fsop_resolve(const char *path, char **ret, struct stat *st) MUST_CHECK;

/* "file", "dir", "symlink", "fifo", "socket", "char", "block" */
const char *fsop_type(mode_t mode);

/*
 * One file as JSON: name, path, type, size, mode, uid, gid, mtime_ms, for a symbolic link its target
 * (borrowed; may be NULL). What is not UTF-8 is replaced, and carried beside it in name_b64, path_b64,
 * target_b64. NULL when memory runs out.
 */
cJSON *fsop_entry(const char *path, const struct stat *st, const char *target) MUST_CHECK;
/* NAME, and when S is not UTF-8 NAME_b64. False when memory runs out. */
bool fsop_add_bytes(cJSON *o, const char *name, const char *s);

/* ERRNUM (positive) as the HTTP status of the file routes, and as a word ("ENOENT"; NULL when it has none here). */
int fsop_status(int errnum);
const char *fsop_errno_name(int errnum);
/* {"detail":"<path>: <why>","errno":"ENOENT"}; NULL when memory runs out. */
cJSON *fsop_error(int errnum, const char *path) MUST_CHECK;
/* Answers with it. */
void fsop_fail(struct httpd_req *r, int errnum, const char *path);

/*
 * What fsop_list.c, fsop_remove.c, fsop_copy.c and fsop_chmod.c share, which go through trees that
 * others may change meanwhile: every step is one name below an open directory, no link is followed.
 */
#define FSOP_DEPTH_MAX 256

/* The directory NAME in DIR, for reading. A link is -ELOOP or -ENOTDIR; with ONE_FS the root of another file system is
 * -EXDEV. A descriptor or a negative errno. */
int fsop_open_dir(int dir, const char *name, bool one_fs) MUST_CHECK;
/* The path of where we are, for answers: appends "/NAME" to B and returns in *RET_OLD what fsop_pop wants. */
int fsop_push(struct buf *b, const char *name, size_t *ret_old) MUST_CHECK;
void fsop_pop(struct buf *b, size_t old);
/* The next entry of D, but for "." and "..", with its name pushed on B, which stays there when the caller does not pop it. 1, 0 at
 * the end, or a negative errno. *RET_NAME lives until the next call. */
int fsop_next(DIR *d, struct buf *b, const char **ret_name, size_t *ret_old) MUST_CHECK;

/* Verbs of the worker, see worker.h; ARGV as routes_fsop.c makes it. */
int fsop_list(int argc, char **argv);
int fsop_remove(int argc, char **argv);
int fsop_copy(int argc, char **argv);
int fsop_chmod(int argc, char **argv);
/* After a PUT with sync=1: FILE, the path it was called by, its size, the status to answer. */
int fsop_sync(int argc, char **argv);

#endif
