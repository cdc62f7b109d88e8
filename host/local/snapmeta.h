/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_LOCAL_SNAPMETA_H
#define ASB_LOCAL_SNAPMETA_H

#include <stdbool.h>
#include <stdint.h>

#include "host/local/digest.h"
#include "host/local/fit.h"
#include "host/local/vmdir.h"
#include "lib/buf.h"
#include "lib/compiler.h"
#include "lib/err.h"

/* snapshot.json (docs/snapshots.md): what a snapshot is and what it needs, in its folder and first in its file. */
#define SNAP_META     "snapshot.json"
#define SNAP_META_MAX (256U << 10)
#define SNAP_FORMAT   1

enum snap_part { /* in the order in which a file has them */
		 SNAP_DEVICES,
		 SNAP_RAM,  /* list of pages: changes when there is a SNAP_BASE, else all of it */
		 SNAP_BASE, /* image of the memory that those are changes of */
		 SNAP_DISK,
		 SNAP_PARTS
};
extern const char *const snap_part_names[SNAP_PARTS];

struct snap_part_meta {
	bool there;
	uint64_t bytes;
	char sum[DIGEST_LEN + 1];
	char changed[40]; /* its time of change here, "<s>.<ns>"; "" = not known */
};

struct snap_meta {
	char name[SANDBOX_NAME_MAX + 1];
	int64_t created_s;
	bool memory; /* has the three parts (SNAP_BASE only if `based`), and `fit`; else the disk alone */
	bool based, balloon;	 /* of struct saved */
	struct vm_config config; /* of the sandbox; its image with the version */
	char rootfs[65];	 /* SHA-256 of the image's file system */
	struct fit fit;
	struct snap_part_meta part[SNAP_PARTS];
};
void snap_meta_done(struct snap_meta *m);

/* Every number is within its cap, every string is checked, and the parts are those that there must be. */
int snap_meta_parse(const char *p, size_t n, struct snap_meta *ret, struct err *e) MUST_CHECK;

/* The document, owned by the caller; NULL: no memory. HERE: with what is true of the files here alone. */
cJSON *snap_meta_json(const struct snap_meta *m, bool here) MUST_CHECK;
/* Appends it to OUT. 0, -ENOMEM, -ENOSPC. */
int snap_meta_print(const struct snap_meta *m, bool here, struct buf *out) MUST_CHECK;

#endif
