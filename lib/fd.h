/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_FD_H
#define ASB_FD_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "buf.h"
#include "compiler.h"

/* Descriptors are CLOEXEC from birth everywhere in the project. -1 means "none". */

/* Closes *FD when it is >= 0 and sets it to -1. Keeps errno. */
void fd_close(int *fd);

/* Returns *FD and sets it to -1: hands ownership on. */
int fd_take(int *fd);

#define AUTO_FD CLEANUP(fd_close) int

int fd_set_nonblock(int fd, bool on) MUST_CHECK; /* 0 or negative errno */
int fd_set_cloexec(int fd, bool on) MUST_CHECK;

/* Writes all of P; restarts on EINTR, waits by poll(2) on EAGAIN. 0 or negative errno. May block. */
int fd_write_all(int fd, const void *p, size_t n) MUST_CHECK;

/* All of P at OFFSET. 0 or negative errno. */
int fd_pwrite_all(int fd, const void *p, size_t n, off_t offset) MUST_CHECK;

/* Up to N bytes at OFFSET, less only at the end of the file. The number or negative errno. */
ssize_t fd_pread_all(int fd, void *p, size_t n, off_t offset) MUST_CHECK;

/* Reads until EOF into B (appending). -ENOSPC when the file is larger than B's cap allows. May block. */
int fd_read_all(int fd, struct buf *b) MUST_CHECK;

/* Opens PATH relative to DIRFD (or AT_FDCWD) and reads it whole. 0 or negative errno. */
int fd_read_file(int dirfd, const char *path, struct buf *b) MUST_CHECK;

/* Opens an existing PATH for writing and writes S in one write(2), as /proc, /sys and cgroup files want. */
int fd_write_str(int dirfd, const char *path, const char *s) MUST_CHECK;

/*
 * Replaces PATH by a file that holds P, atomically and durably: temporary file in the same directory with MODE,
 * fsync, rename, fsync of the directory. On failure the old file is untouched and no temporary file stays.
 */
int fd_replace_file(const char *path, const void *p, size_t n, mode_t mode) MUST_CHECK;

/* The same without any fsync(2): atomic for who reads, not durable, and fast. For files that are made anew at each boot. */
int fd_replace_file_lazy(const char *path, const void *p, size_t n, mode_t mode) MUST_CHECK;

/* Removes what killed processes left of replacing PATH; also what others are at just now, whose replacing then fails. */
void fd_replace_collect(const char *path);

/* fsync(2) of PATH, a file or folder but no symbolic link. 0 or negative errno. */
int fd_sync_at(int dirfd, const char *path) MUST_CHECK;

/*
 * As fd_replace_file_lazy, but into the file that is there when it is a regular one that is not empty: nothing is allocated and no disk waited for, where a
 * file system (ext4) starts writing out what replaces another file. Not atomic: for files that nobody reads just now.
 */
int fd_rewrite_file(const char *path, const void *p, size_t n, mode_t mode) MUST_CHECK;

/* Makes PATH and its parents with MODE; an existing directory is fine. 0 or negative errno. */
int fd_mkdirs(const char *path, mode_t mode) MUST_CHECK;

/* Removes PATH and all below it without following symbolic links; a missing PATH is fine. */
int fd_remove_tree(const char *path) MUST_CHECK;
int fd_remove_tree_at(int dirfd, const char *path) MUST_CHECK;

/* The same for all that is in the directory FD (consumed). */
int fd_remove_children(int fd) MUST_CHECK;

/* Closes every descriptor from FIRST on (close_range(2), else /proc/self/fd). */
void fd_close_from(int first);

#endif
