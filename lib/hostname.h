/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_HOSTNAME_H
#define ASB_HOSTNAME_H

#include <stdbool.h>
#include <stddef.h>

#include "buf.h"
#include "compiler.h"

/* The name of the machine: in the kernel, in /etc/hostname and in /etc/hosts. */

#define HOSTNAME_LEN_MAX 63

/* One label of RFC 1123: 1 to 63 letters, digits and hyphens, none at the ends. */
bool hostname_valid(const char *name);

/*
 * Pure: copies the hosts(5) file TEXT into OUT with exactly one line for NAME at 127.0.1.1, as
 * Debian writes it: its first line of that address is replaced, else one is added. A localhost line
 * is added when TEXT is empty. 0 or negative errno.
 */
int hostname_edit_hosts(const char *text, const char *name, struct buf *out) MUST_CHECK;

/*
 * Sets NAME everywhere. Files that hold it already are not written; they are replaced atomically,
 * but not synced; IN_PLACE: written into, which is faster for files that were replaced before (fd_rewrite_file). 0, or the negative errno of the first thing that failed (-EPERM without the
 * capability); the rest is done all the same.
 */
int hostname_apply(const char *name, bool in_place) MUST_CHECK;

#endif
