/* SPDX-License-Identifier: Apache-2.0 */
#include "once.h"

#include <bearssl.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "lib/buf.h"
#include "lib/fd.h"
#include "lib/str.h"

#define FILE_NAME "run.sha256"

/* The file is "<sha256> <init id>\n". One that is anything else counts as none: then a second /run
 * would win, as in a fresh guest. */
void once_load(struct once *o, const char *dir, const char *init_id)
{
	AUTO_BUF b;
	size_t n = sizeof(o->done.hex) - 1;

	*o = (struct once){ 0 };
	if (str_format(o->path, sizeof(o->path), "%s/" FILE_NAME, dir) < 0 ||
	    str_format(o->init_id, sizeof(o->init_id), "%s", init_id) < 0)
		o->path[0] = '\0';
	buf_init(&b, 256);
	if (fd_read_file(AT_FDCWD, o->path, &b) < 0 || b.len < n + 2 ||
	    strspn(b.p, "0123456789abcdef") != n || b.p[n] != ' ' || b.p[b.len - 1] != '\n')
		return;
	b.p[b.len - 1] = '\0';
	if (!strcmp(b.p + n + 1, o->init_id))
		memcpy(o->done.hex, b.p, n);
}

void once_digest(const void *body, size_t n, struct once_digest *ret)
{
	unsigned char h[br_sha256_SIZE];
	br_sha256_context c;

	br_sha256_init(&c);
	br_sha256_update(&c, body, n);
	br_sha256_out(&c, h);
	str_hex(h, sizeof(h), ret->hex);
}

bool once_same(const struct once_digest *a, const struct once_digest *b)
{
	return !strcmp(a->hex, b->hex);
}

int once_commit(struct once *o, const struct once_digest *d)
{
	char s[160];
	int n;

	o->done = *d;
	n = snprintf(s, sizeof(s), "%s %s\n", d->hex, o->init_id);
	return fd_replace_file_lazy(o->path, s, (size_t)n, 0600);
}
