/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_AGENT_COPY_H
#define ASB_AGENT_COPY_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/compiler.h"
#include "lib/err.h"

/*
 * Files into a sandbox and out of it, by the rules of `docker cp`:
 *
 *	SRC a file		DST missing: it becomes DST, whose parent must exist; an error when DST ends in '/'
 *				DST a file: is replaced; a directory: the file goes into it
 *	SRC a directory		DST missing: it becomes DST, whose parent must exist; DST a file: an error
 *				DST a directory: SRC goes into it, or, when SRC ends in "/.", what is in SRC does
 *
 * What a guest sends is extracted by lib/unpack.c: never outside DST, no link followed, no set-id bits.
 */
struct backend;

enum copy_flags {
	COPY_OWNER = 1 << 0,  /* uid and gid come along, by number */
	COPY_FOLLOW = 1 << 1, /* SRC may be a symbolic link to what is meant */
};

struct copy_spec { /* all borrowed */
	const struct backend *backend;
	const char *id;	   /* of the sandbox */
	const char *guest; /* absolute path in it */
	const char *local; /* path here; "-" = a tar on standard input or output */
	unsigned flags;
	void (*progress)(void *arg,
			 uint64_t bytes); /* of the archive so far; often; NULL = not wanted */
	void *arg;
	const volatile sig_atomic_t *cancel; /* as stream_spec */
};

struct copy_count { /* what stands; not known for a tar on standard output */
	uint64_t members, bytes;
};

/* Block. 0, or a negative errno with E; *RET then says what was copied nevertheless. */
int copy_in(const struct copy_spec *s, struct copy_count *ret, struct err *e) MUST_CHECK;
int copy_out(const struct copy_spec *s, struct copy_count *ret, struct err *e) MUST_CHECK;

#endif
