/* SPDX-License-Identifier: Apache-2.0 */
#include "host/aws/dockerfile.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "lib/buf.h"
#include "lib/proto.h"
#include "lib/str.h"

/*
 * No parser of Dockerfiles: it cuts the text into instructions (comments, continued lines, here-documents) and looks at FROM, ENV, CMD and
 * ENTRYPOINT. BuildKit says what is wrong with the rest.
 */

#define STAGES_MAX 64
#define WORD_CAP   96
#define BLANK	   " \t"

struct stage {
	char name[WORD_CAP]; /* "" = none */
	bool entry;	     /* CMD or ENTRYPOINT, its own or of the stage that it is from */
};

struct check {
	struct stage stages[STAGES_MAX];
	size_t stages_len;
	unsigned line; /* of the instruction */
	struct err *e;
};

static int bad(const struct check *c, const char *what, const char *detail)
{
	return err_set(c->e, ERR_INVALID, 0, "Dockerfile:%u: %s%.100s", c->line, what, detail);
}

/* --- one instruction --- */

static bool is_x86(const char *s)
{
	static const char *const words[] = { "amd64", "x86_64", "x86-64", "i386", "linux/386" };

	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (strcasestr(s, words[i]))
			return true;
	return false;
}

/* FROM [--platform=P] IMAGE [AS NAME] */
static int on_from(struct check *c, char *args)
{
	struct stage *s = &c->stages[c->stages_len];
	char *save = NULL, *word = strtok_r(args, BLANK, &save), *as;

	if (c->stages_len == STAGES_MAX)
		return bad(c, "there are too many stages", "");
	*s = (struct stage){ .entry = false };
	while (word && str_starts(word, "--")) {
		if (is_x86(word))
			return bad(c, "MicroVMs are arm64, and so are their builds: ", word);
		word = strtok_r(NULL, BLANK, &save);
	}
	if (!word)
		return bad(c, "FROM without an image", "");
	if (is_x86(word))
		return bad(c, "MicroVMs are arm64, and so are their builds: ", word);
	for (size_t i = 0; i < c->stages_len; i++)
		if (c->stages[i].name[0] && strcasecmp(c->stages[i].name, word) == 0)
			s->entry = c->stages[i].entry;
	as = strtok_r(NULL, BLANK, &save);
	word = as && strcasecmp(as, "AS") == 0 ? strtok_r(NULL, BLANK, &save) : NULL;
	if (word && str_format(s->name, sizeof(s->name), "%s", word) < 0)
		s->name[0] = '\0';
	c->stages_len++;
	return 0;
}

static int check_port(const struct check *c, const char *name, const char *value)
{
	static const struct {
		const char *name, *what;
		uint64_t port;
	} ports[] = {
		{ "AGENTD_HOOK_PORT", "the hooks are called on port 9000: ", PROTO_HOOK_PORT },
		{ "AGENT_SANDBOX_HOOK_PORT",
		  "the hooks are called on port 9000: ", PROTO_HOOK_PORT },
		{ "AGENTD_PORT", "agentd is called on port 8080: ", PROTO_AGENT_PORT },
	};
	char text[64];
	uint64_t v;

	for (size_t i = 0; i < ARRAY_LEN(ports); i++)
		if (strcmp(name, ports[i].name) == 0 && str_to_u64(value, 0, UINT64_MAX, &v) == 0 &&
		    v != ports[i].port) {
			ignore_result(str_format(text, sizeof(text), "%s=%s", name, value));
			return bad(c, ports[i].what, text);
		}
	return 0;
}

static char *unquoted(char *s)
{
	size_t n = strlen(s);

	if (n < 2 || (*s != '"' && *s != '\'') || s[n - 1] != *s)
		return s;
	s[n - 1] = '\0';
	return s + 1;
}

/* ENV NAME=VALUE …, or the older ENV NAME VALUE */
static int on_env(const struct check *c, char *args)
{
	char *save = NULL, *word = strtok_r(args, BLANK, &save),
	     *eq = word ? strchr(word, '=') : NULL;
	int r = 0;

	if (word && !eq) {
		char *value = strtok_r(NULL, BLANK, &save);

		return value ? check_port(c, word, value) : 0;
	}
	for (; word && r == 0; word = strtok_r(NULL, BLANK, &save)) {
		eq = strchr(word, '=');
		if (!eq)
			continue;
		*eq = '\0';
		r = check_port(c, word, unquoted(eq + 1));
	}
	return r;
}

static int on_instruction(struct check *c, char *text)
{
	char *args = text + strcspn(text, BLANK);

	if (*args)
		*args++ = '\0';
	args += strspn(args, BLANK);
	if (strcasecmp(text, "FROM") == 0)
		return on_from(c, args);
	if (strcasecmp(text, "ENV") == 0)
		return on_env(c, args);
	if (c->stages_len && (strcasecmp(text, "CMD") == 0 || strcasecmp(text, "ENTRYPOINT") == 0))
		c->stages[c->stages_len - 1].entry = true;
	return 0;
}

/* --- the text as instructions --- */

struct lines {
	char *rest;
	unsigned n; /* of the last one */
};

static char *next_line(struct lines *l)
{
	char *s = strsep(&l->rest, "\n");
	size_t n = s ? strlen(s) : 0;

	l->n += s != NULL;
	while (n && (s[n - 1] == '\r' || s[n - 1] == ' ' || s[n - 1] == '\t'))
		s[--n] = '\0';
	return s;
}

/* Passes over the text of a here-document that LINE begins: <<WORD, <<-WORD, <<"WORD". */
static void skip_document(struct lines *l, const char *line)
{
	const char *p = strstr(line, "<<");
	char word[WORD_CAP];
	size_t n;

	if (!p)
		return;
	p += strspn(p, "<-\"'");
	n = strspn(p, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");
	if (!n || str_format(word, sizeof(word), "%.*s", (int)n, p) < 0)
		return;
	for (char *s = next_line(l); s; s = next_line(l))
		if (strcmp(s + strspn(s, "\t"), word) == 0)
			return;
}

/* The next instruction into RET, its continued lines joined. 0: none is left. */
static int next(struct check *c, struct lines *l, struct buf *ret)
{
	char *s;

	buf_clear(ret);
	while ((s = next_line(l))) {
		size_t n;
		bool more;

		s += strspn(s, BLANK);
		n = strlen(s);
		if (!n || *s == '#')
			continue; /* also in the middle of an instruction */
		if (!ret->len)
			c->line = l->n;
		more = s[n - 1] == '\\' || s[n - 1] == '`';
		if (buf_add(ret, s, n - more) < 0 || buf_adds(ret, more ? " " : "") < 0)
			return bad(c, "the instruction is too long", "");
		if (!more)
			break;
	}
	if (!ret->len)
		return 0;
	if (strncasecmp(ret->p, "RUN", 3) == 0 || strncasecmp(ret->p, "COPY", 4) == 0 ||
	    strncasecmp(ret->p, "ADD", 3) == 0)
		skip_document(l, ret->p);
	return 1;
}

int dockerfile_check(const char *text, size_t n, struct err *e)
{
	struct check c = { .e = e, .line = 1 };
	struct lines l = { .rest = strndup(text, n) };
	char *all = l.rest;
	AUTO_BUF b;
	int r = all ? 1 : err_set(e, ERR_INTERNAL, ENOMEM, "the Dockerfile");

	buf_init(&b, DOCKERFILE_MAX);
	while (r == 1) {
		r = next(&c, &l, &b);
		if (r == 1)
			r = on_instruction(&c, b.p) < 0 ? -EINVAL : 1;
	}
	free(all);
	if (r < 0)
		return r;
	if (!c.stages_len)
		return bad(&c, "there is no FROM", "");
	if (!c.stages[c.stages_len - 1].entry)
		return bad(
			&c,
			"the last stage has neither ENTRYPOINT nor CMD, so that nothing would answer the ready hook",
			"");
	return 0;
}
