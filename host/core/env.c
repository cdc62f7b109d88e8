/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "host/core/core.h"
#include "lib/buf.h"
#include "lib/fd.h"
#include "lib/str.h"

struct list {
	char **all;
	size_t len;
};

void core_env_free(char ***env)
{
	for (char **p = *env; p && *p; p++)
		free(*p);
	free(*env);
	*env = NULL;
}

static int append(struct list *l, char *text, struct err *e)
{
	char **all;

	if (text && l->len >= CORE_ENV_MAX) {
		free(text);
		return err_set(e, ERR_TOO_BIG, E2BIG, "the variables");
	}
	all = text ? realloc(l->all, (l->len + 2) * sizeof(*all)) : NULL;
	if (!all) {
		free(text);
		return err_set(e, ERR_INTERNAL, ENOMEM, "the variables");
	}
	l->all = all;
	all[l->len++] = text;
	all[l->len] = NULL;
	return 0;
}

/* K=V as it is; K with the value that we have ourselves. */
static int add(struct list *l, const char *word, struct err *e)
{
	AUTO_BUF b;
	const char *value;

	buf_init(&b, CORE_ENV_FILE_MAX);
	if (strchr(word, '='))
		return append(l, strdup(word), e);
	value = getenv(word);
	if (!value)
		return 0;
	if (!str_is_utf8(value, strlen(value))) {
		(void)err_set(e, ERR_USAGE, 0, "--env %.100s: its value is not UTF-8 text", word);
		return -EINVAL;
	}
	if (buf_addf(&b, "%s=%s", word, value) < 0)
		return err_set(e, ERR_TOO_BIG, E2BIG, "--env %.100s", word);
	return append(l, buf_take(&b), e);
}

/* As docker's --env-file: one K=V or K on each line, '#' begins a comment line, nothing is
 * unquoted. */
static int add_file(struct list *l, const char *path, struct err *e)
{
	AUTO_BUF b;
	unsigned number = 0;
	char *line, *rest;
	int r;

	buf_init(&b, CORE_ENV_FILE_MAX);
	r = fd_read_file(AT_FDCWD, path, &b);
	if (r < 0)
		return err_set(e, ERR_USAGE, -r, "--env-file %.400s", path);
	if (memchr(b.p ? b.p : "", '\0', b.len) || !str_is_utf8(b.p ? b.p : "", b.len)) {
		(void)err_set(e, ERR_USAGE, 0, "--env-file %.400s: it is not UTF-8 text", path);
		return -EINVAL;
	}
	for (rest = b.p; rest && *rest && r == 0;) {
		size_t n = strcspn(rest, "\n");

		line = rest;
		rest += n + (rest[n] == '\n');
		line[n] = '\0';
		number++;
		if (n && line[n - 1] == '\r')
			line[n - 1] = '\0';
		line += strspn(line, " \t");
		if (*line == '\0' || *line == '#')
			continue;
		if (*line == '=' || strcspn(line, " \t") < strcspn(line, "=")) {
			(void)err_set(e, ERR_USAGE, 0, "--env-file %.400s: line %u %s", path,
				      number,
				      *line == '=' ? "has no name" : "has a blank in its name");
			return -EINVAL;
		}
		r = add(l, line, e);
	}
	return r;
}

int core_env(const struct cli *c, char ***ret, struct err *e)
{
	const struct opt_value *files = &c->val[OPT_ENV_FILE], *words = &c->val[OPT_ENV];
	struct list l = { calloc(1, sizeof(char *)), 0 };
	int r = l.all ? 0 : err_set(e, ERR_INTERNAL, ENOMEM, "the variables");

	for (unsigned i = 0; i < files->all_len && r == 0; i++)
		r = add_file(&l, files->all[i], e);
	for (unsigned i = 0; i < words->all_len && r == 0; i++)
		r = add(&l, words->all[i], e);
	if (r < 0)
		core_env_free(&l.all);
	else
		*ret = l.all;
	return r;
}
