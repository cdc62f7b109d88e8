/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_JSN_H
#define ASB_JSN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cJSON.h>

#include "compiler.h"
#include "err.h"

/* Typed access to cJSON, with the caps and checks that it lacks. */

static inline void jsn_free(cJSON **j)
{
	cJSON_Delete(*j);
	*j = NULL;
}
#define AUTO_JSN CLEANUP(jsn_free) cJSON

#define JSN_DEPTH_MAX 32

/*
 * Parses exactly one document of N bytes: refuses trailing bytes, nesting over JSN_DEPTH_MAX, invalid UTF-8, and
 * "\u0000" (a C string cannot hold it). NULL with a message in E that gives the offset.
 */
cJSON *jsn_parse(const char *p, size_t n, struct err *e) MUST_CHECK;

/*
 * Members by exact name. Each returns 0 and leaves *RET alone when the member is absent or null, 1 when it was read, and a
 * negative errno with a message that names the member when the type or the range is wrong. Strings are borrowed from O.
 */
int jsn_str(const cJSON *o, const char *name, const char **ret, struct err *e) MUST_CHECK;
int jsn_u64(const cJSON *o, const char *name, uint64_t min, uint64_t max, uint64_t *ret,
	    struct err *e) MUST_CHECK;
int jsn_double(const cJSON *o, const char *name, double *ret, struct err *e)
	MUST_CHECK; /* finite only */
int jsn_bool(const cJSON *o, const char *name, bool *ret, struct err *e) MUST_CHECK;
int jsn_object(const cJSON *o, const char *name, const cJSON **ret, struct err *e) MUST_CHECK;
int jsn_array(const cJSON *o, const char *name, const cJSON **ret, struct err *e)
	MUST_CHECK; /* of anything */
int jsn_str_array(const cJSON *o, const char *name, const cJSON **ret, struct err *e)
	MUST_CHECK; /* of strings only */

/* The member itself, null included; NULL when absent. Of several with one name the last, here and above. */
cJSON *jsn_get(const cJSON *o, const char *name);

/* Builders: add NAME to O; false when memory runs out (O stays valid). */
bool jsn_add_str(cJSON *o, const char *name, const char *s); /* NULL adds null */
bool jsn_add_u64(cJSON *o, const char *name, uint64_t v);    /* as an exact integer up to 2^53 */
bool jsn_add_i64(cJSON *o, const char *name, int64_t v);
bool jsn_add_bool(cJSON *o, const char *name, bool v);
/* Bytes of a guest as text: invalid UTF-8 becomes U+FFFD. */
bool jsn_add_text(cJSON *o, const char *name, const char *p, size_t n);

#endif
