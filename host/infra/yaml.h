/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_INFRA_YAML_H
#define ASB_INFRA_YAML_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/compiler.h"
#include "lib/err.h"

/*
 * A YAML file as a tree that knows its lines, read with libyaml and within caps. Refused besides what is no YAML: keys that come
 * twice or are no plain text, aliases into themselves, tags, NUL bytes.
 */
#define YAML_FILE_MAX	 (256U << 10)
#define YAML_DEPTH_MAX	 16
#define YAML_NODES_MAX	 20000
#define YAML_ANCHORS_MAX 64
#define YAML_ALIASES_MAX 256
#define YAML_DOCS_MAX	 256

enum yaml_kind { YAML_NULL, YAML_TEXT, YAML_OTHER, YAML_LIST, YAML_MAP };

struct yaml_node {
	enum yaml_kind kind;   /* YAML_OTHER: a number, boolean or date, written without quotes */
	unsigned line, column; /* from 1 */
	char *text;	       /* owned by the file; of a scalar */
	char *anchor;	       /* owned by the file; NULL = none */
	/* Of a list or a map; owned by the file. An alias is the node that it stands for, so nodes may be shared. */
	struct yaml_node **items;
	struct yaml_node **keys; /* of a map: as many as items */
	size_t len;
};

struct yaml_file {		  /* yaml_done */
	struct yaml_node **nodes; /* all of them, owned */
	size_t nodes_len;
	struct yaml_node **docs; /* one root for each document; an empty one is YAML_NULL */
	size_t docs_len;
};

/* Reads N bytes; NAME is the file's, for messages ("NAME:LINE:COLUMN: …"). ERR_INVALID, -EINVAL. RET is to be released in any case. */
int yaml_read(const char *name, const char *p, size_t n, struct yaml_file *ret, struct err *e)
	MUST_CHECK;
void yaml_done(struct yaml_file *f);

/* "a number or boolean", "a list", …: what N is, for messages. */
const char *yaml_kind_name(const struct yaml_node *n);

#endif
