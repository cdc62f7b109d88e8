/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_AGENT_COPY_INT_H
#define ASB_AGENT_COPY_INT_H

#include <stdbool.h>
#include <stddef.h>

#include "host/agent/copy.h"
#include "host/agent/stream.h"
#include "lib/buf.h"

/* Shared by copy_in.c, copy_out.c and copy_path.c (names and what they are). */

#define COPY_PATH_MAX 4095

enum copy_kind { COPY_MISSING, COPY_FILE, COPY_DIR }; /* FILE: all that is no directory */

/* A path as its directory and its last component; see copy_split. */
struct copy_path {
	size_t dir;	/* so many bytes of the path are the directory; 0 for "x" */
	char base[256]; /* "." when the path ends in "/.", or is "." or "/" */
	bool slash;	/* it ends in a slash, or in "/.": it names a directory */
};

/* 0 or -ENAMETOOLONG with E. */
int copy_split(const char *path, struct copy_path *ret, struct err *e) MUST_CHECK;

struct copy_plan {
	char base[256];		      /* last component of SRC; "." for its content */
	enum copy_kind from, to;      /* what SRC and DST are */
	char path[COPY_PATH_MAX + 1]; /* DST */
	char dir[COPY_PATH_MAX + 1];
	struct copy_path dst;
	const char *into,
		*as; /* out: the directory that is extracted into, and the name of SRC there; point into this */
};

/* A plan for DST PATH; the caller frees it. */
int copy_plan(const char *path, struct copy_plan **ret, struct err *e) MUST_CHECK;
/* The table of copy.h. 0, or a negative errno with E. */
int copy_table(struct copy_plan *p, struct err *e) MUST_CHECK;

/* What PATH here is. LINKS: symbolic links are followed. */
int copy_local_kind(const char *path, bool links, enum copy_kind *ret, struct err *e) MUST_CHECK;
/* What PATH in the guest is, -ENOSYS when the agent cannot tell; with LINKS, a symbolic link to something that is no directory is replaced in PATH (COPY_PATH_MAX + 1
 * bytes) by what it names. */
int copy_guest_kind(const struct copy_spec *s, char *path, bool links, enum copy_kind *ret,
		    struct err *e) MUST_CHECK;

/* "/v1/archive?path=<encoded>" into B. */
int copy_request(struct buf *b, const char *path, const char *more, struct err *e) MUST_CHECK;
int copy_open(const struct copy_spec *s, const char *method, const char *path, const char *more,
	      struct stream **ret, struct err *e) MUST_CHECK;

/* compat_copy.c: one file to P->path, and out of the sandbox to P->into/P->as, by an agent that has no archives. */
int copy_compat_in(const struct copy_spec *s, const struct copy_plan *p, struct copy_count *ret,
		   struct err *e) MUST_CHECK;
int copy_compat_out(const struct copy_spec *s, const struct copy_plan *p, struct copy_count *ret,
		    struct err *e) MUST_CHECK;

/* A stream that is counted for progress. */
struct copy_flow {
	const struct copy_spec *spec;
	struct stream *stream;
	uint64_t bytes;
};
int copy_flow_write(void *flow, const void *p, size_t n) MUST_CHECK;
ssize_t copy_flow_read(void *flow, void *p, size_t n) MUST_CHECK;

#endif
