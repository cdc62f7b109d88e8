/* SPDX-License-Identifier: Apache-2.0 */
#include "parts.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "lib/b64.h"
#include "lib/fd.h"
#include "lib/httpd.h"

/* Base64 goes out in whole groups of three bytes, so that nothing is carried from one call to the
 * next; only the last group of a part may be shorter. */

#define RAW_MAX \
	49152 /* of a file, in one go: a multiple of 3, and bounded so that others get their turn */

static void add(struct parts *b, struct part part)
{
	if (b->count < PARTS_MAX)
		b->part[b->count++] = part;
}

void parts_text(struct parts *b, const char *p, size_t n)
{
	add(b, (struct part){ PART_TEXT, p, n, -1 });
}

void parts_base64(struct parts *b, const char *p, size_t n)
{
	add(b, (struct part){ PART_BASE64, p, n, -1 });
}

void parts_file(struct parts *b, int fd, uint64_t n)
{
	add(b, (struct part){ PART_FILE, NULL, n, fd });
}

int64_t parts_length(const struct parts *b)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < b->count; i++)
		n += b->part[i].kind == PART_TEXT ? b->part[i].n : B64_LEN(b->part[i].n);
	return (int64_t)n;
}

static ssize_t encode(struct parts *b, const struct part *t, char *p, size_t max)
{
	static char raw[RAW_MAX];
	char four[B64_LEN(3) + 1]; /* b64_encode wants room for a NUL, which P may not have */
	char *out = max > B64_LEN(3) ? p : four;
	uint64_t left = t->n - b->done;
	size_t n = max > B64_LEN(3) ? (max - 1) / 4 * 3 : max / 4 * 3;
	const char *from = t->p ? t->p + b->done : raw;

	if (n > RAW_MAX)
		n = RAW_MAX;
	if (n > left)
		n = (size_t)left;
	if (n == 0)
		return 0;
	if (t->kind == PART_FILE && fd_pread_all(t->fd, raw, n, (off_t)b->done) != (ssize_t)n)
		return HTTPD_PULL_ABORT;
	b64_encode(from, n, out);
	if (out != p)
		memcpy(p, out, B64_LEN(n));
	b->done += n;
	return (ssize_t)B64_LEN(n);
}

static ssize_t take(struct parts *b, char *p, size_t max)
{
	const struct part *t = &b->part[b->at];
	uint64_t left = t->n - b->done;
	size_t n = max < left ? max : (size_t)left;

	if (t->kind != PART_TEXT)
		return encode(b, t, p, max);
	memcpy(p, t->p + b->done, n);
	b->done += n;
	return (ssize_t)n;
}

ssize_t parts_pull(struct parts *b, char *p, size_t max)
{
	size_t w = 0;

	while (b->at < b->count) {
		ssize_t k = take(b, p + w, max - w);

		if (k < 0)
			return w ? (ssize_t)w : k; /* the next call meets it again */
		w += (size_t)k;
		if (b->done < b->part[b->at].n) {
			if (k == 0 || w == max)
				break;
			continue;
		}
		b->at++;
		b->done = 0;
	}
	return w ? (ssize_t)w : HTTPD_PULL_END;
}
