/* SPDX-License-Identifier: Apache-2.0 */
#include <archive_entry.h>
#include <errno.h>
#include <string.h>

#include "unpack_int.h"

/*
 * Names of members. "./a//b/" is a/b. Whatever is absolute or has a ".." is refused, not repaired: an archive of ours
 * has none, and a repaired name would be another file than the one that its maker meant.
 */

int unpack_refuse(struct unpacker *u, const char *why)
{
	return err_set(u->err, ERR_INVALID, 0, "member \"%.400s\" %s", u->name, why);
}

struct path {
	char *out;
	size_t len;
};

/* 0, or -ENAMETOOLONG. */
static int push(struct path *p, const char *name, size_t n)
{
	if (p->len + n + 1 > UNPACK_PATH_MAX)
		return -ENAMETOOLONG;
	if (p->len)
		p->out[p->len++] = '/';
	memcpy(p->out + p->len, name, n);
	p->len += n;
	p->out[p->len] = '\0';
	return 0;
}

static bool is(const char *p, size_t n, const char *word)
{
	return strlen(word) == n && !memcmp(p, word, n);
}

int unpack_map(struct unpacker *u, const char *name, char *out)
{
	const struct unpack_spec *s = u->spec;
	bool want_from = s->from && strcmp(s->from, ".") != 0;
	struct path p = { out, 0 };
	int r = 0;

	out[0] = '\0';
	if (name[0] == '/')
		return unpack_refuse(u, "has an absolute path");
	if (s->to)
		r = push(&p, s->to, strlen(s->to));
	while (*name && r == 0) {
		size_t n = strcspn(name, "/");

		if (is(name, n, ".."))
			return unpack_refuse(u, "has a \"..\" in its path");
		if (want_from && n && !is(name, n, ".")) {
			if (!is(name, n, s->from))
				return unpack_refuse(u, "is not what was asked for");
			want_from = false;
			if (!s->to)
				r = push(&p, name, n);
		} else if (n && !is(name, n, ".")) {
			r = push(&p, name, n);
		}
		name += n + (name[n] == '/');
	}
	if (r < 0)
		return unpack_refuse(u, "has a path that is too long");
	return want_from ? unpack_refuse(u, "is not what was asked for") : 0;
}

int unpack_name(struct unpacker *u, struct archive_entry *en)
{
	const char *name = archive_entry_pathname(en);
	size_t n = name ? strlen(name) : 0;

	if (n == 0) {
		u->name[0] = '\0';
		return unpack_refuse(u, "has no name");
	}
	if (n > UNPACK_PATH_MAX) {
		memcpy(u->name, name, UNPACK_PATH_MAX);
		u->name[UNPACK_PATH_MAX] = '\0';
		return unpack_refuse(u, "has a path that is too long");
	}
	memcpy(u->name, name, n + 1);
	return unpack_map(u, name, u->path);
}
