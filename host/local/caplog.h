/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_LOCAL_CAPLOG_H
#define ASB_LOCAL_CAPLOG_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "lib/compiler.h"

/* A log file that cannot fill the disk: above its cap the oldest half goes, cut at a line. */
struct caplog {
	int fd;	       /* owned; -1: what is written is lost */
	bool mid_line; /* of caplog_lines: the next byte continues a line */
	bool cr;       /* ... and a CR before it waits: for LF it is dropped */
	off_t size, cap;
};

#define CAPLOG_INIT      \
	{                \
		.fd = -1 \
	}

/* Opens NAME in DIRFD for appending, mode 0600. 0 or negative errno (L then loses what it is
 * given). */
int caplog_open(struct caplog *l, int dirfd, const char *name, off_t cap) MUST_CHECK;
void caplog_close(struct caplog *l);
void caplog_write(struct caplog *l, const char *p, size_t n);
/* The same for text that comes split anyhow, a time before each of its lines:
 * "YYYY-MM-DDTHH:MM:SS.uuuuuuZ ". */
void caplog_lines(struct caplog *l, const char *p,
		  size_t n); /* a full disk loses bytes, nothing else */

#endif
