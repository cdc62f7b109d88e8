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
 * wrong with a stage matters only when the last one is made of it, for BuildKit builds no other; what a stage has set, ports as well as
 * what it runs, goes on in those that are FROM it. Of an image from elsewhere nothing is known here.
 */

#define STAGES_MAX 64
#define WORD_CAP   96
#define DETAIL_CAP 200
#define BLANK	   " \t"

/* Variables that move what is called from outside. */
static const struct {
	const char *name, *what;
	uint64_t port;
} ports[] = {
	{ "AGENTD_HOOK_PORT", "the hooks are called on port 9000: ", PROTO_HOOK_PORT },
	{ "AGENT_SANDBOX_HOOK_PORT", "the hooks are called on port 9000: ", PROTO_HOOK_PORT },
	{ "AGENTD_PORT", "agentd is called on port 8080: ", PROTO_AGENT_PORT },
};

struct fault {
	unsigned line; /* 0 = none */
	const char *what;
	char detail[DETAIL_CAP];
};

enum answer { NO, YES, PERHAPS };

struct stage {
	char name[WORD_CAP];	     /* "" = none */
	char base[WORD_CAP];	     /* the image from elsewhere that it begins with */
	unsigned base_line;	     /* 0 = it begins with nothing */
	enum answer entrypoint, cmd; /* its own, or what it has from where it begins */
	bool own_cmd, triggers;	     /* ONBUILD: what comes of it in another stage */
	bool runs;		     /* something of it, so that its platform matters */
	uint64_t from;		     /* the bit of the stage that it begins at */
	uint64_t uses;		     /* a bit for each stage that it is made of */
	struct fault arch, missing;  /* the first of each */
	struct fault port[ARRAY_LEN(ports)];
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

static void blame(const struct check *c, struct fault *f, const char *what, const char *detail)
{
	f->line = c->text.line;
	f->what = what;
	ignore_result(str_format(f->detail, sizeof(f->detail), "%.*s", DETAIL_CAP - 1,
				 detail)); /* fits */
}

/* --- stages --- */

static struct stage *present(const struct check *c)
{
	return c->stages_len ? &c->stages[c->stages_len - 1] : NULL;
}

/* Of the first N: the last that has this name. -1: none. */
static int by_name(const struct check *c, size_t n, const char *name)
{
	while (n-- > 0)
		if (*name && strcasecmp(c->stages[n].name, name) == 0)
			return (int)n;
	return -1;
}

/* NAME is one of the stages above, by its name or its number: the present one is made of it. */
static void uses(void *arg, const char *name)
{
	struct check *c = arg;
	uint64_t number;
	size_t n = c->stages_len ? c->stages_len - 1 : 0;

	if (str_to_u64(name, 0, STAGES_MAX - 1, &number) < 0)
		number = (uint64_t)by_name(c, n, name);
	if (number < n)
		c->stages[n].uses |= 1ULL << number;
}

/* --- one instruction --- */

#define ONLY_ARM "MicroVMs are arm64, and so are their builds: "

static bool is_x86(const char *s)
{
	static const char *const words[] = { "amd64", "x86_64", "x86-64", "i386", "linux/386" };

	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (strcasestr(s, words[i]))
			return true;
	return false;
}

static void begin_at_stage(struct stage *s, const struct stage *from, unsigned number)
{
	*s = *from;
	s->name[0] = '\0';
	s->own_cmd = s->triggers = s->runs = false;
	s->uses = s->from = 1ULL << number;
	s->arch.line = s->missing.line = 0; /* they are of a stage that counts as well */
	if (from->triggers)
		s->entrypoint = s->cmd = PERHAPS;
}

static void begin_at_image(struct check *c, struct stage *s, const char *image)
{
	const bool empty = strcmp(image, "scratch") == 0;

	*s = (struct stage){ .entrypoint = empty ? NO : PERHAPS, .cmd = empty ? NO : PERHAPS };
	if (is_x86(image))
		blame(c, &s->arch, ONLY_ARM, image);
	if (empty)
		return;
	s->base_line = c->text.line;
	ignore_result(str_format(s->base, sizeof(s->base), "%.*s", WORD_CAP - 1, image)); /* fits */
}

/* FROM [--platform=P] IMAGE [AS NAME] */
static int on_from(struct check *c, char *args)
{
	struct stage *s = &c->stages[c->stages_len];
	char *save = NULL, *word = strtok_r(args, BLANK, &save), *platform = NULL, *as;
	int from;

	if (c->stages_len == STAGES_MAX)
		return bad(c, "there are too many stages", "");
	for (; word && str_starts(word, "--"); word = strtok_r(NULL, BLANK, &save))
		platform = is_x86(word) ? word : platform;
	if (!word)
		return bad(c, "FROM without an image", "");
	from = by_name(c, c->stages_len, word);
	if (from >= 0)
		begin_at_stage(s, &c->stages[from], (unsigned)from);
	else
		begin_at_image(c, s, word);
	if (platform)
		blame(c, &s->arch, ONLY_ARM, platform);
	as = strtok_r(NULL, BLANK, &save);
	word = as && strcasecmp(as, "AS") == 0 ? strtok_r(NULL, BLANK, &save) : NULL;
	if (word && str_format(s->name, sizeof(s->name), "%s", word) < 0)
		s->name[0] = '\0';
	c->stages_len++;
	return 0;
}

/* What is no number is the builder's to know. */
static void set_variable(const struct check *c, const char *name, const char *value)
{
	struct stage *s = present(c);
	char text[DETAIL_CAP];
	uint64_t v;

	for (size_t i = 0; s && i < ARRAY_LEN(ports); i++) {
		if (strcmp(name, ports[i].name) != 0)
			continue;
		s->port[i].line = 0;
		if (str_to_u64(value, 0, UINT64_MAX, &v) < 0 || v == ports[i].port)
			continue;
		ignore_result(str_format(text, sizeof(text), "%s=%s", name, value)); /* fits */
		blame(c, &s->port[i], ports[i].what, text);
	}
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
static void on_env(const struct check *c, char *args)
{
	char *save = NULL, *word = strtok_r(args, BLANK, &save), *eq;

	if (word && !strchr(word, '=')) {
		char *value = strtok_r(NULL, BLANK, &save);

		if (value)
			set_variable(c, word, value);
		return;
	}
	for (; word; word = strtok_r(NULL, BLANK, &save)) {
		eq = strchr(word, '=');
		if (!eq)
			continue;
		*eq = '\0';
		set_variable(c, word, unquoted(eq + 1));
	}
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
	struct stage *s = present(c);

	if (s->missing.line || !c->context || c->context->has(c->context->arg, path))
		return true;
	blame(c, &s->missing,
	      "what it copies is not in the folder, or left out of the zip: ", path);
	return false;
}

static void on_copy(struct check *c, bool add, char *args)
{
	const struct dockercopy d = { .add = add, .fn = on_source, .from = uses, .arg = c };

	if (present(c))
		dockercopy_each(&d, args);
}

static bool is_empty_list(const char *s)
{
	return *s == '[' && s[1 + strspn(s + 1, BLANK)] == ']';
}

/* ENTRYPOINT takes the CMD away that the stage has not set itself; an empty list takes away what there was. */
static void on_program(struct stage *s, bool entrypoint, const char *args)
{
	const enum answer is = is_empty_list(args) ? NO : YES;

	if (entrypoint) {
		s->entrypoint = is;
		s->cmd = s->own_cmd ? s->cmd : NO;
	} else {
		s->cmd = is;
		s->own_cmd = true;
	}
}

static int on_instruction(struct check *c, char *text)
{
	char *args = text + strcspn(text, BLANK);
	struct stage *s = present(c);

	if (*args)
		*args++ = '\0';
	args += strspn(args, BLANK);
	if (strcasecmp(text, "FROM") == 0)
		return on_from(c, args);
	if (strcasecmp(text, "ENV") == 0)
		on_env(c, args);
	if (strcasecmp(text, "RUN") == 0)
		on_run(c, args);
	if (strcasecmp(text, "COPY") == 0 || strcasecmp(text, "ADD") == 0)
		on_copy(c, *text == 'A' || *text == 'a', args);
	if (s && (strcasecmp(text, "CMD") == 0 || strcasecmp(text, "ENTRYPOINT") == 0))
		on_program(s, *text == 'E' || *text == 'e', args);
	if (s && strcasecmp(text, "RUN") == 0)
		s->runs = true;
	if (s && strcasecmp(text, "ONBUILD") == 0)
		s->triggers = true;
	return 0;
}

/* --- all of it --- */

static const struct fault *earlier(const struct fault *a, const struct fault *b)
{
	return b->line && (!a || b->line < a->line) ? b : a;
}

/*
 * Of what is built: the last stage, and what it is made of. The platform matters where something is run, here or in the end: a
 * stage that is only copied from may be of any. NULL: nothing is wrong.
 */
static const struct fault *first_fault(const struct check *c)
{
	const struct stage *last = present(c);
	const struct fault *ret = NULL;
	uint64_t made = 1ULL << (c->stages_len - 1), run = made;

	for (size_t i = c->stages_len; i-- > 0;) {
		const struct stage *s = &c->stages[i];
		const uint64_t bit = 1ULL << i;

		if (!(made & bit))
			continue;
		made |= s->uses; /* stages above it */
		if (s->runs || (run & bit)) {
			run |= s->from;
			ret = earlier(ret, &s->arch);
		}
		ret = earlier(ret, &s->missing);
	}
	for (size_t i = 0; i < ARRAY_LEN(ports); i++)
		ret = earlier(ret, &last->port[i]);
	return ret;
}

static int check_all(struct check *c, struct err *note)
{
	static const char none[] = "the last stage has neither ENTRYPOINT nor CMD";
	const struct stage *last = present(c);
	const struct fault *f;

	if (!last)
		return bad(c, "there is no FROM", "");
	f = first_fault(c);
	if (f)
		return err_set(c->e, ERR_INVALID, 0, "Dockerfile:%u: %s%s", f->line, f->what,
			       f->detail);
	if (last->entrypoint == YES || last->cmd == YES)
		return 0;
	if (last->entrypoint == NO && last->cmd == NO)
		return err_set(c->e, ERR_INVALID, 0,
			       "Dockerfile:%u: %s, so that nothing would answer the ready hook",
			       c->text.line, none);
	(void)err_set(note, ERR_INVALID, 0,
		      "Dockerfile:%u: %s: unless %s has one, nothing will answer the ready hook",
		      last->base_line ? last->base_line : c->text.line, none,
		      last->base_line ? last->base : "what it is from");
	return 0;
}

int dockerfile_check(const char *text, size_t n, const struct dockerfile_context *context,
		     struct err *note, struct err *e)
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
		r = check_all(&c, note);
	dockertext_done(&c.text);
	free(c.stages);
	return r;
}
