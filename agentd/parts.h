/* SPDX-License-Identifier: Apache-2.0 */
#ifndef AGENTD_PARTS_H
#define AGENTD_PARTS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "lib/compiler.h"

/*
 * A body that is made while it is sent: pieces of text, and bytes that become base64, from memory
 * or from a file. So that an answer with 64 MiB in it needs no memory for its encoded form, and a
 * big file none at all.
 */
enum part_kind { PART_TEXT, PART_BASE64, PART_FILE };

struct part {
	enum part_kind kind;
	const char *p; /* borrowed; TEXT, BASE64 */
	uint64_t n;    /* bytes before encoding */
	int fd;	       /* borrowed; FILE, from its start */
};

#define PARTS_MAX 8

struct parts {
	struct part part[PARTS_MAX];
	unsigned count, at;
	uint64_t done; /* bytes of the current part */
};

void parts_text(struct parts *b, const char *p, size_t n);
void parts_base64(struct parts *b, const char *p, size_t n);
void parts_file(struct parts *b, int fd, uint64_t n);

int64_t parts_length(const struct parts *b);

/* As httpd_reply_stream's pull, MAX at least 4. HTTPD_PULL_ABORT when a file has become shorter or
 * cannot be read. */
ssize_t parts_pull(struct parts *b, char *p, size_t max);

#endif
