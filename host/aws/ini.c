/* SPDX-License-Identifier: Apache-2.0 */
#include "host/aws/ini.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "lib/fd.h"
#include "lib/str.h"

/*
 * The text is copied once and cut up in place; entries point into it. What a line is depends on its first byte and on the key
 * before it: an indented line belongs to that key, as one more line of its value, or as an entry of its block when the
 * value on the key's own line is empty.
 */

#define ENTRIES_MAX 16384

struct reading {
	struct ini *ini;
	enum ini_kind kind;
	struct ini_name section; /* name NULL before the first */
	size_t last; /* index of the key that indented lines belong to, plus 1; 0 = none */
	bool block;  /* that key has a block */
};

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

static char *trim(char *s)
{
	size_t n;

	while (is_blank(*s))
		s++;
	n = strlen(s);
	while (n && is_blank(s[n - 1]))
		s[--n] = '\0';
	return s;
}

static void to_lower(char *s)
{
	for (; *s; s++)
		if (*s >= 'A' && *s <= 'Z')
			*s = (char)(*s | 0x20);
}

/* Room for one more in an array of SIZE-byte things. */
static int grow(void *array, size_t len, size_t *room, size_t size)
{
	void **a = array, *p;
	size_t more = *room ? *room * 2 : 32;

	if (len < *room)
		return 0;
	if (more > ENTRIES_MAX)
		return -ENOSPC;
	p = realloc(*a, more * size);
	if (!p)
		return -ENOMEM;
	*a = p;
	*room = more;
	return 0;
}

/* Which section "[S]" begins; S is cut up. */
static struct ini_name section_name(enum ini_kind kind, char *s)
{
	static const struct {
		const char *word;
		enum ini_section what;
	} words[] = { { "profile", INI_PROFILE },
		      { "sso-session", INI_SSO_SESSION },
		      { "services", INI_SERVICES } };
	struct ini_name ret = { kind == INI_CREDENTIALS || strcmp(s, "default") == 0 ? INI_PROFILE
										     : INI_OTHER,
				s };
	size_t n;

	for (size_t i = 0; kind == INI_CONFIG && i < ARRAY_LEN(words); i++) {
		n = strlen(words[i].word);
		if (strncmp(s, words[i].word, n) == 0 && is_blank(s[n])) {
			ret.what = words[i].what;
			s = trim(s + n);
		}
	}
	n = strlen(s);
	if (n >= 2 && (s[0] == '"' || s[0] == '\'') && s[n - 1] == s[0]) {
		s[n - 1] = '\0';
		s++;
	}
	ret.name = s;
	return ret;
}

static int add_section(struct reading *g, char *line)
{
	struct ini *i = g->ini;
	char *end = strchr(line, ']');
	int r;

	g->section.name = NULL;
	g->last = 0;
	if (!end)
		return 0;
	*end = '\0';
	r = grow(&i->sections, i->sections_len, &i->sections_room, sizeof(i->sections[0]));
	if (r < 0)
		return r;
	g->section = section_name(g->kind, trim(line + 1));
	i->sections[i->sections_len++] = g->section;
	return 0;
}

static int add_entry(struct reading *g, char *line, const char *parent)
{
	struct ini *i = g->ini;
	char *eq = line + strcspn(line, "=:");
	struct ini_entry n = { .section = g->section };
	int r;

	if (!*eq || eq == line)
		return 0;
	*eq = '\0';
	n.value = trim(eq + 1);
	line = trim(line);
	to_lower(line);
	n.key = parent ? parent : line;
	n.sub = parent ? line : NULL;
	r = grow(&i->all, i->len, &i->room, sizeof(i->all[0]));
	if (r < 0)
		return r;
	i->all[i->len++] = n;
	return 0;
}

/* One more line of a value: moved down to where the value ends. */
static void go_on(struct ini_entry *n, char *line)
{
	size_t have = strlen(n->value), more = strlen(line);

	n->value[have] = '\n';
	memmove(n->value + have + 1, line, more + 1);
}

static int add_indented(struct reading *g, char *line)
{
	struct ini_entry *n = g->last ? &g->ini->all[g->last - 1] : NULL;

	if (!n)
		return 0;
	if (!g->block) {
		go_on(n, line);
		return 0;
	}
	return add_entry(g, line, n->key);
}

static int add_line(struct reading *g, char *line)
{
	bool indented = is_blank(*line);
	size_t before = g->ini->len;
	int r;

	line = trim(line);
	if (*line == '\0' || *line == '#' || *line == ';')
		return 0;
	if (indented)
		return add_indented(g, line);
	if (*line == '[')
		return add_section(g, line);
	if (!g->section.name)
		return 0;
	r = add_entry(g, line, NULL);
	g->last = g->ini->len > before ? g->ini->len : 0;
	g->block = g->last && g->ini->all[g->last - 1].value[0] == '\0';
	return r;
}

int ini_parse(struct ini *ret, enum ini_kind kind, const char *text, size_t n)
{
	struct reading g = { .ini = ret, .kind = kind };
	char *next;
	int r;

	*ret = (struct ini){ .len = 0 };
	buf_init(&ret->text, INI_FILE_MAX + 1);
	if (n && memchr(text, '\0', n))
		return -EINVAL;
	r = buf_add(&ret->text, text, n);
	for (char *p = ret->text.p; p && *p && r == 0; p = next) {
		next = p + strcspn(p, "\n");
		if (*next)
			*next++ = '\0';
		r = add_line(&g, p);
	}
	return r;
}

int ini_load(struct ini *ret, enum ini_kind kind, const char *path, struct err *e)
{
	AUTO_BUF b;
	int r;

	*ret = (struct ini){ .len = 0 };
	buf_init(&b, INI_FILE_MAX);
	r = fd_read_file(AT_FDCWD, path, &b);
	if (r == -ENOENT || r == -ENOTDIR)
		return 0;
	if (r == 0)
		r = ini_parse(ret, kind, b.p ? b.p : "", b.len);
	if (b.p)
		explicit_bzero(b.p, b.len);
	return r < 0 ? err_set(e, ERR_IO, -r, "cannot read %.300s", path) : 0;
}

void ini_done(struct ini *i)
{
	if (i->text.p)
		explicit_bzero(i->text.p, i->text.len);
	buf_done(&i->text);
	free(i->all);
	free(i->sections);
	*i = (struct ini){ .len = 0 };
}

static bool same(const struct ini_name *a, enum ini_section what, const char *name)
{
	return a->what == what && strcmp(a->name, name) == 0;
}

const char *ini_get(const struct ini *i, enum ini_section what, const char *name, const char *key,
		    const char *sub)
{
	for (size_t k = i->len; k > 0; k--) {
		const struct ini_entry *n = &i->all[k - 1];

		if (same(&n->section, what, name) && strcmp(n->key, key) == 0 &&
		    (sub ? n->sub && strcmp(n->sub, sub) == 0 : !n->sub))
			return n->value;
	}
	return NULL;
}

bool ini_has(const struct ini *i, enum ini_section what, const char *name)
{
	for (size_t k = 0; k < i->sections_len; k++)
		if (same(&i->sections[k], what, name))
			return true;
	return false;
}
