/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_LOCAL_TREE_H
#define ASB_LOCAL_TREE_H

#include <stdint.h>

#include "lib/compiler.h"

/* Folders with all that is in them. */

/* Bytes on the disk that removing NAME in DIRFD would give back: blocks of files that have no other name. Follows no
 * symbolic link; what cannot be read counts nothing. */
uint64_t tree_own(int dirfd, const char *name);

/* fd_remove_tree, also where the modes of our own folders forbid it: those of an image can be anything. */
int tree_remove(const char *path) MUST_CHECK;

#endif
