/* SPDX-License-Identifier: Apache-2.0 */
#include "host/aws/dockertext.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "lib/str.h"

/*
 * A line ends with the escape character to be continued, which is a backslash unless "# escape=`" stands at the top; two of them are no
 * continuation. Comments and empty lines within an instruction do not end it. A word "<<NAME" of RUN, COPY or ADD, outside quotes, begins a
 * here-document; several may stand on a line, and follow in that order. What only looks like one ("<<<", "$((1<<3))") does not.
 */

#define BLANK	  " \t"
#define DOCS_MAX  8
#define NAME_CAP  96
#define DIRECTIVE "escape"

struct doc {
	char name[NAME_CAP];
	bool tabs; /* "<<-": tabs before the end's name do not count */
};

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

/* As it is, but for the end of the line. */
static char *raw_line(struct dockertext *t)
{
	char *s = strsep(&t->rest, "\n");
	size_t n = s ? strlen(s) : 0;

	t->n += s != NULL;
	if (n && s[n - 1] == '\r')
		s[n - 1] = '\0';
	return s;
}

/* "# NAME=VALUE" lines at the top; the first other line ends them. */
static void read_directives(struct dockertext *t)
{
	for (const char *s = t->all; *s == '#';) {
		const char *end = s + strcspn(s, "\n"), *p = s + 1 + strspn(s + 1, BLANK);
		size_t n = strspn(p, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ");
		const char *eq = p + n + strspn(p + n, BLANK);

		if (!n || eq >= end || *eq != '=')
			return;
		eq += 1 + strspn(eq + 1, BLANK);
		if (n == strlen(DIRECTIVE) && strncasecmp(p, DIRECTIVE, n) == 0 &&
		    (*eq == '`' || *eq == '\\'))
			t->escape = *eq;
		s = *end ? end + 1 : end;
	}
}

int dockertext_init(struct dockertext *t, const char *text, size_t n)
{
	const char mark[] = "\xef\xbb\xbf"; /* of UTF-8 */

	*t = (struct dockertext){ .line = 1, .escape = '\\' };
	if (n >= strlen(mark) && memcmp(text, mark, strlen(mark)) == 0) {
		text += strlen(mark);
		n -= strlen(mark);
	}
	t->all = t->rest = strndup(text, n);
	if (!t->all)
		return -ENOMEM;
	read_directives(t);
	return 0;
}

void dockertext_done(struct dockertext *t)
{
	free(t->all);
	t->all = t->rest = NULL;
}

/* --- here-documents --- */

/* The end of the word at P: blanks within quotes do not end it. */
static const char *word_end(const struct dockertext *t, const char *p)
{
	char quote = 0;

	for (; *p && (quote || !is_blank(*p)); p++) {
		if (*p == t->escape && quote != '\'' && p[1])
			p++;
		else if (quote ? *p == quote : *p == '"' || *p == '\'')
			quote = quote ? 0 : *p;
	}
	return p;
}

/* "<<NAME", "<<-NAME", the name perhaps in quotes. */
static bool is_doc(const char *word, size_t n, struct doc *ret)
{
	const char *p = word + strspn(word, "0123456789"), *end = word + n;
	size_t len = 0;

	if (p >= end || !str_starts(p, "<<"))
		return false;
	p += 2;
	ret->tabs = p < end && *p == '-';
	p += ret->tabs;
	for (; p < end; p++) {
		if (*p == '<' || len + 1 >= sizeof(ret->name))
			return false;
		if (*p != '"' && *p != '\'')
			ret->name[len++] = *p;
	}
	ret->name[len] = '\0';
	return len > 0;
}

static size_t find_docs(const struct dockertext *t, const char *line, struct doc docs[DOCS_MAX])
{
	size_t n = 0;

	while (*(line += strspn(line, BLANK)) && n < DOCS_MAX) {
		const char *end = word_end(t, line);

		n += is_doc(line, (size_t)(end - line), &docs[n]);
		line = end;
	}
	return n;
}

static bool takes_docs(const char *line)
{
	static const char *const words[] = { "RUN", "COPY", "ADD", "ONBUILD" };
	size_t n = strcspn(line, BLANK);

	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (n == strlen(words[i]) && strncasecmp(line, words[i], n) == 0)
			return true;
	return false;
}

/* False when the text ends before the documents of LINE do. */
static bool skip_docs(struct dockertext *t, const char *line)
{
	struct doc docs[DOCS_MAX];
	size_t n = takes_docs(line) ? find_docs(t, line, docs) : 0;

	for (size_t i = 0; i < n; i++) {
		const char *s;

		do {
			s = raw_line(t);
			if (!s)
				return false;
			s += docs[i].tabs ? strspn(s, "\t") : 0;
		} while (strcmp(s, docs[i].name) != 0);
	}
	return true;
}

/* --- instructions --- */

/* Cuts the escape off the end of S when the line is continued. */
static bool is_continued(const struct dockertext *t, char *s)
{
	size_t n = strlen(s);

	if (!n || s[n - 1] != t->escape || (n > 1 && s[n - 2] == t->escape))
		return false;
	s[n - 1] = '\0';
	return true;
}

int dockertext_next(struct dockertext *t, struct buf *ret)
{
	bool more = true;
	char *s;

	buf_clear(ret);
	while (more && (s = raw_line(t))) {
		size_t n;

		s += strspn(s, BLANK);
		n = strlen(s);
		while (n && is_blank(s[n - 1]))
			s[--n] = '\0';
		if (!n || *s == '#')
			continue;
		if (!ret->len)
			t->line = t->n;
		more = is_continued(t, s);
		if (buf_adds(ret, s) < 0 || buf_adds(ret, more ? " " : "") < 0)
			return -ENOSPC;
	}
	if (!ret->len)
		return 0;
	t->unsure =
		!skip_docs(t, ret->p); /* it may be no document, and then those were instructions */
	return 1;
}
