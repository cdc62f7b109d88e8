/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_AWS_INI_H
#define ASB_AWS_INI_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/buf.h"
#include "lib/compiler.h"
#include "lib/err.h"

/*
 * AWS's shared configuration files, as botocore reads them (AWS SDKs and Tools Reference, "config and credentials file
 * format"; docs/decisions/0010-aws-configuration-files.md): "[section]" lines, "key = value" or "key: value", keys in
 * any case, whole-line comments, values that go on in indented lines, and, under a key without a value, an indented block
 * of "key = value" lines. Lenient: later duplicates win, a line that is none of this is left out.
 */
#define INI_FILE_MAX (1U << 20)

enum ini_section { INI_OTHER, INI_PROFILE, INI_SSO_SESSION, INI_SERVICES };

struct ini_name { /* of a section */
	enum ini_section what;
	const char *name; /* points into ini.text */
};

struct ini_entry { /* points into ini.text */
	struct ini_name section;
	const char *key;
	const char *sub; /* of a nested block, else NULL */
	char *value;	 /* "" before a block */
};

struct ini {
	struct buf text; /* owned */
	struct ini_entry *all;
	size_t len, room;
	struct ini_name *sections; /* those that exist, empty ones too */
	size_t sections_len, sections_room;
};

enum ini_kind {
	INI_CONFIG, /* sections are "default", "profile NAME", "sso-session NAME", "services NAME" */
	INI_CREDENTIALS, /* sections are names of profiles */
};

/*
 * Reads N bytes of TEXT. 0, -ENOMEM, -ENOSPC, -EINVAL (a NUL byte). RET is to be released in any case.
 */
int ini_parse(struct ini *ret, enum ini_kind kind, const char *text, size_t n) MUST_CHECK;
/* The same for a file; a missing one is empty. */
int ini_load(struct ini *ret, enum ini_kind kind, const char *path, struct err *e) MUST_CHECK;
void ini_done(struct ini *i);

/* The value, NULL when there is none. SUB as in the entry. Borrowed. */
const char *ini_get(const struct ini *i, enum ini_section what, const char *name, const char *key,
		    const char *sub);
bool ini_has(const struct ini *i, enum ini_section what, const char *name);

#endif
