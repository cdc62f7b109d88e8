/* SPDX-License-Identifier: Apache-2.0 */
#include "host/aws/dockerfile.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "host/aws/dockercopy.h"
#include "host/aws/dockertext.h"
#include "lib/buf.h"
#include "lib/proto.h"
#include "lib/str.h"

/*
 * No parser of Dockerfiles: it looks at FROM, ENV, COPY, ADD, CMD and ENTRYPOINT, and BuildKit says what is wrong with the rest. What is
 * missing for a stage matters only when the last one is made of it, for BuildKit builds no other.
 */

#define STAGES_MAX  64
#define WORD_CAP    96
#define MISSING_CAP 200
#define BLANK	    " \t"

struct stage {
	char name[WORD_CAP]; /* "" = none */
	bool entry;	     /* CMD or ENTRYPOINT, its own or of the stage that it is from */
	uint64_t uses;	     /* a bit for each stage that it is made of */
	unsigned missing_line;
	char missing[MISSING_CAP]; /* what its first COPY that fails wants; "" = none does */
};

struct check {
	struct stage *stages; /* owned; STAGES_MAX */
	size_t stages_len;
	struct dockertext text;
	const struct dockerfile_context *context; /* NULL = nobody knows */
	struct err *e;
};

static int bad(const struct check *c, const char *what, const char *detail)
{
	return err_set(c->e, ERR_INVALID, 0, "Dockerfile:%u: %s%.100s", c->text.line, what, detail);
}

/* --- stages --- */

/* NAME is one of the stages above, by its name or its number: the present one is made of it. */
static void uses(void *arg, const char *name)
{
	struct check *c = arg;
	uint64_t number = STAGES_MAX;
	size_t n = c->stages_len ? c->stages_len - 1 : 0;

	if (str_to_u64(name, 0, STAGES_MAX - 1, &number) < 0)
		for (size_t i = 0; i < n; i++)
			if (strcasecmp(c->stages[i].name, name) == 0 && *name)
				number = i;
	if (number < n)
		c->stages[n].uses |= 1ULL << number;
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
		if (c->stages[i].name[0] && strcasecmp(c->stages[i].name, word) == 0) {
			s->entry = c->stages[i].entry;
			s->uses = 1ULL << i;
		}
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

/* RUN --mount=type=…,from=STAGE,… */
static void on_run(struct check *c, char *args)
{
	char *save = NULL;

	for (char *w = strtok_r(args, BLANK, &save); w && str_starts(w, "--");
	     w = strtok_r(NULL, BLANK, &save))
		for (char *rest = w, *part; (part = strsep(&rest, ",="));)
			if (strcmp(part, "from") == 0 && rest)
				uses(c, strsep(&rest, ","));
}

static bool on_source(void *arg, const char *path)
{
	struct check *c = arg;
	struct stage *s = &c->stages[c->stages_len - 1];

	if (c->context->has(c->context->arg, path))
		return true;
	s->missing_line = c->text.line;
	ignore_result(str_format(s->missing, sizeof(s->missing), "%.*s", MISSING_CAP - 1,
				 path)); /* fits */
	return false;
}

static void on_copy(struct check *c, bool add, char *args)
{
	const struct dockercopy d = { .add = add, .fn = on_source, .from = uses, .arg = c };

	if (c->stages_len && c->context && !c->stages[c->stages_len - 1].missing[0])
		dockercopy_each(&d, args);
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
	if (strcasecmp(text, "RUN") == 0)
		on_run(c, args);
	if (strcasecmp(text, "COPY") == 0 || strcasecmp(text, "ADD") == 0)
		on_copy(c, *text == 'A' || *text == 'a', args);
	if (c->stages_len && (strcasecmp(text, "CMD") == 0 || strcasecmp(text, "ENTRYPOINT") == 0))
		c->stages[c->stages_len - 1].entry = true;
	return 0;
}

/* --- all of it --- */

static int check_all(struct check *c)
{
	uint64_t made = c->stages_len ? 1ULL << (c->stages_len - 1) : 0;

	if (!c->stages_len)
		return bad(c, "there is no FROM", "");
	for (size_t i = c->stages_len; i-- > 0;)
		if (made & (1ULL << i))
			made |= c->stages[i].uses; /* stages above it */
	for (size_t i = 0; i < c->stages_len; i++)
		if ((made & (1ULL << i)) && c->stages[i].missing[0]) {
			c->text.line = c->stages[i].missing_line;
			return bad(c,
				   "what it copies is not in the folder, or left out of the zip: ",
				   c->stages[i].missing);
		}
	if (!c->stages[c->stages_len - 1].entry)
		return bad(
			c,
			"the last stage has neither ENTRYPOINT nor CMD, so that nothing would answer the ready hook",
			"");
	return 0;
}

int dockerfile_check(const char *text, size_t n, const struct dockerfile_context *context,
		     struct err *e)
{
	struct check c = { .stages = calloc(STAGES_MAX, sizeof(*c.stages)),
			   .context = context,
			   .e = e };
	AUTO_BUF b;
	int r = c.stages ? dockertext_init(&c.text, text, n) : -ENOMEM;

	buf_init(&b, DOCKERFILE_MAX);
	r = r < 0 ? err_set(e, ERR_INTERNAL, -r, "the Dockerfile") : 1;
	while (r == 1) {
		r = dockertext_next(&c.text, &b);
		if (r < 0)
			r = bad(&c, "the instruction is too long", "");
		else if (r == 1)
			r = on_instruction(&c, b.p) < 0 ? -EINVAL : 1;
	}
	if (r == 0 && !c.text.unsure)
		r = check_all(&c);
	dockertext_done(&c.text);
	free(c.stages);
	return r;
}
