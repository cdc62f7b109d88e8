/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_AWS_XML_H
#define ASB_AWS_XML_H

#include <stddef.h>

#include "lib/compiler.h"
#include "lib/err.h"
#include "lib/jsn.h"

/*
 * XML answers (S3, IAM, EC2, STS) as trees of cJSON, read with expat: an element with children is an object, one without is its
 * text, and of several children with one name there are as many members with that name, in order. Attributes are dropped. The
 * result has one member, the root. Refused are document types (so entities of their own), nesting over XML_DEPTH_MAX and more
 * than XML_NODES_MAX elements.
 */
#define XML_DEPTH_MAX 32
#define XML_NODES_MAX 200000

cJSON *xml_parse(const char *p, size_t n, struct err *e)
	MUST_CHECK; /* the caller frees it; NULL with a message in E */

/* Along PATH, "a/b/c", the first of each name. NULL when there is none. */
const cJSON *xml_at(const cJSON *o, const char *path);
/* Its text; NULL when it is missing, "" when it is empty. */
const char *xml_text(const cJSON *o, const char *path);

/* Calls FN for each child of O that has NAME ("member", "item", "Version"). Non-zero from FN stops and is returned. */
int xml_each(const cJSON *o, const char *name, int (*fn)(void *arg, const cJSON *child), void *arg)
	MUST_CHECK;

/* Appends S with its &, < and > made safe for an element's text. 0 or as buf_add. */
struct buf;
int xml_escape(struct buf *b, const char *s) MUST_CHECK;

#endif
