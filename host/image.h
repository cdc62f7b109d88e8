/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_IMAGE_H
#define ASB_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/err.h"

/* Images as commands see them: the part of a backend (backend.h) that makes, lists and removes them. */

#define IMAGE_NAME_LEN	128
#define IMAGE_REF_MAX	(IMAGE_NAME_LEN + 12) /* NAME:VERSION */
#define IMAGE_NOTES_MAX 4

struct progress;
struct cJSON;

struct image_spec {	    /* what a build makes; strings borrowed */
	const char *source; /* a directory, a tar file, or "-" for a tar on standard input */
	const char *name;
	uint32_t cpus; /* of the sandbox that boots to make the template */
	uint64_t memory_mib;
	int64_t start_ns; /* what that start may take */
	bool cold;	  /* no template, nothing boots */
	/* Of a platform. */
	const char *bucket;		/* where it finds the source */
	const char *role;		/* what the build may do */
	bool rebuild;			/* also what has not changed */
	bool unchecked;			/* also what is known to fail */
	void (*warn)(const char *text); /* at once, and the build goes on; NULL = nobody is told */
};

struct image_built {		       /* what came of it, also when it failed; image_built_done */
	char image[IMAGE_REF_MAX + 1]; /* NAME:VERSION */
	bool unchanged;		       /* there was one with the same content already */
	const char *step;	       /* that failed: "unpack", "mkfs", "boot", "ready", … */
	char *log;		       /* owned: the last lines of what the step wrote; or NULL */
	char notes[IMAGE_NOTES_MAX][200]; /* what the user should know */
	unsigned notes_len;
};
void image_built_done(struct image_built *b);

struct image_info { /* one version; strings borrowed */
	const char *name;
	uint64_t version;
	bool newest;				      /* NAME alone means this one */
	bool installed;				      /* not the user's: it can only be used */
	const char *sha256, *created, *source, *path; /* "" where unknown */
	const char *broken;			      /* why it cannot be used, or "" */
	uint64_t bytes, unique_bytes; /* unique: on the disk for this version alone */
	uint64_t templates, template_bytes;
	const char *const *used_by; /* names of sandboxes and snapshots; NULL-terminated */
	/* Of a platform, which has no paths, sizes and templates; NULL = it is on this machine. VERSION is the active one, 0 = none. */
	const char *arn, *state;
};

/* Who uses an image, for a message: IMAGE_USERS_TOLD by name, the others counted. All zero to begin with. */
#define IMAGE_USERS_TOLD 5
struct image_users {
	size_t len, at;
	char text[IMAGE_USERS_TOLD * 102 + 32]; /* names over 100 bytes are cut */
};
void image_users_add(struct image_users *u, const char *name);
/* "a, b and 3 more", in U; once, at the end. */
const char *image_users_text(struct image_users *u);

/* Told of each thing that goes, or would go: KIND "image", "template", "sandbox", "snapshot", "build",
 * "content", "artefact" (of a platform's build, NAME is its URI). BYTES may be PRUNE_NO_SIZE. */
#define PRUNE_NO_SIZE UINT64_MAX
typedef void prune_fn(void *arg, const char *kind, const char *name, uint64_t bytes);

enum prune_flags {
	PRUNE_STALE =
		1 << 0, /* what crashed processes left behind, and what nothing can use any more */
	PRUNE_IMAGES =
		1 << 1, /* versions that are not the newest of their name and that nothing uses */
	PRUNE_TEMPLATES = 1 << 2, /* all: they are made anew */
	PRUNE_DRY = 1 << 3,	  /* only tell */
};

struct image_ops {
	/* Blocks. 0, or a negative errno; then there is no new version and nothing half-made. */
	int (*build)(const struct image_spec *s, const struct progress *p, struct image_built *ret,
		     struct err *e);
	/* By name, the newest version first. Non-zero from FN stops. */
	int (*list)(int (*fn)(void *arg, const struct image_info *i), void *arg, struct err *e);
	/* Those of the platform itself, on which one's own are built. NULL: it has none. */
	int (*list_managed)(int (*fn)(void *arg, const struct image_info *i), void *arg,
			    struct err *e);
	/* The platform's own description (caller frees). NULL: what list() tells is all. */
	int (*inspect)(const char *image, struct cJSON **ret, struct err *e);
	/* NAME:VERSION, or all versions of NAME. ERR_CONFLICT when a sandbox or a snapshot names one, unless FORCE. FN is
	 * told of each that was removed. */
	int (*remove)(const char *image, bool force, void (*fn)(void *arg, const char *image),
		      void *arg, struct err *e);
};

#endif
