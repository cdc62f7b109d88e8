/* SPDX-License-Identifier: Apache-2.0 */
#ifndef AGENTD_PYVAL_H
#define AGENTD_PYVAL_H

#include <cJSON.h>
#include <stddef.h>

#include "lib/compiler.h"
#include "lib/httpd.h"

/*
 * What clients of the Python agent see when something is wrong: FastAPI's 422 with pydantic's list
 * of errors, and the text of an OSError. Only the compatible routes use it.
 */
enum py_type { PY_STRING, PY_STRING_OR_NULL, PY_STRINGS, PY_STRING_MAP_OR_NULL, PY_NUMBER_OR_NULL };

struct py_field {
	const char *name;
	enum py_type type;
	bool required;
};

/*
 * The body of R as an object whose FIELDS (terminated by a NULL name) have the right types; the
 * caller frees it. NULL when R has been answered.
 */
cJSON *py_body(struct httpd_req *r, const struct py_field *fields) MUST_CHECK;

/* Answers STATUS {"detail": "[Errno 21] Is a directory: '/tmp'"}. */
void py_os_error(struct httpd_req *r, int status, int errnum, const char *path);

#endif
