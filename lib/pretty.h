/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_PRETTY_H
#define ASB_PRETTY_H

#include "buf.h"
#include "compiler.h"

struct cJSON;

/*
 * Appends J to OUT as Python's json.dumps(indent=2) would, less its escaping of non-ASCII text, and
 * a line feed. This is the form of state.json and of every document that asb prints. 0, -ENOSPC,
 * -ENOMEM.
 */
int pretty_json(const struct cJSON *j, struct buf *out) MUST_CHECK;

#endif
