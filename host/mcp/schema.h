/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_MCP_SCHEMA_H
#define ASB_MCP_SCHEMA_H

#include "lib/compiler.h"
#include "lib/jsn.h"

/*
 * What results look like: a short form, the JSON Schema that it stands for, and whether a value is like that. Parts of an answer
 * are a guest's or a file's own, so what is answered is held against what was promised.
 *
 * A shape is an object's members, "NAME:TYPE,…". TYPE is s text, i integer, n number, b truth value, o an object of any members,
 * {NAME:TYPE,…} one of these, aTYPE an array, * anything; T text that may have been cut (job_add_capped), C that or a string.
 * Behind a member's type, '?': it may be null or missing; '~': it may be missing.
 */

/* The schema of SHAPE; NULL: memory, or a shape that is none. The caller frees it. */
cJSON *schema_of(const char *shape) MUST_CHECK;
/* V is what SCHEMA, of schema_of, says. Members that are not described may be there. */
bool schema_fits(const cJSON *schema, const cJSON *v) MUST_CHECK;

#endif
