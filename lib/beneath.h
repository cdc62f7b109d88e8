/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_BENEATH_H
#define ASB_BENEATH_H

#include <sys/types.h>

#include "compiler.h"

/*
 * Directories below a directory, for names that somebody hostile has chosen, in a tree that somebody hostile may be
 * changing. No symbolic link is followed, whoever made it. REL: components separated by single slashes, none of them
 * "", "." or ".."; "" stands for ROOT itself.
 */

/* Opens REL below ROOT as a place for *at calls (O_PATH). 0 with *RET_FD, which the caller owns; -ELOOP when a
 * component is a symbolic link, -ENOTDIR when one is another file, -ENOENT, … */
int beneath_open(int root, const char *rel, int *ret_fd) MUST_CHECK;

/* The same; missing directories are made with MODE (less the umask). */
int beneath_make(int root, const char *rel, mode_t mode, int *ret_fd) MUST_CHECK;

#ifdef ASB_TEST
extern int beneath_no_openat2; /* as on a kernel before 5.6 */
#endif

#endif
