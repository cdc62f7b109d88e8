/* SPDX-License-Identifier: Apache-2.0 */
#ifndef AGENTD_ROUTES_FILES_HEAD_H
#define AGENTD_ROUTES_FILES_HEAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "lib/compiler.h"

/* The header fields of GET /v1/files, which are pure functions of a file and of a request. */

/*
 * A Range field for a file of SIZE bytes (RFC 9110 §14): 1 and the piece, 0 when the whole file is to be sent (no field,
 * another unit, several ranges, anything malformed), -ERANGE when nothing of it is in the file (416).
 */
int files_range(const char *field, uint64_t size, uint64_t *ret_first, uint64_t *ret_len)
	MUST_CHECK;

/* A strong validator: device, inode, size, time of change. At least 80 bytes. */
#define FILES_ETAG_MAX 80
void files_etag(const struct stat *st, char *out);

/* If-None-Match (RFC 9110 §13.1.2): is ETAG in the list FIELD? Compared weakly; "*" is any. */
bool files_etag_listed(const char *field, const char *etag);

/* RFC 9110 §5.6.7: "Sun, 06 Nov 1994 08:49:37 GMT". At least 32 bytes. */
#define FILES_DATE_MAX 32
void files_date(int64_t seconds, char *out);

/*
 * Content-Disposition for a file of that NAME (RFC 6266): a quoted ASCII form, and filename* (RFC 8187) when the name has
 * other bytes and is UTF-8. No byte of NAME below 0x20 reaches OUT. At least FILES_DISPOSITION_MAX bytes; names are cut
 * at 255 bytes.
 */
#define FILES_DISPOSITION_MAX 1100
void files_disposition(const char *name, char *out);

#endif
