/* SPDX-License-Identifier: Apache-2.0 */
#include "host/aws/dockercopy.h"

#include <cJSON.h>
#include <string.h>

#include "lib/jsn.h"
#include "lib/str.h"

#define BLANK	  " \t"
#define WORDS_MAX 256

/* "/a/./b/../c/" becomes "a/c"; what would go above the context stays in it, as it does for BuildKit. False: too long, or the context. */
static bool clean(const char *s, char ret[static DOCKERCOPY_PATH_MAX])
{
	size_t len = 0;

	for (; *s; s += strspn(s, "/")) {
		size_t n = strcspn(s, "/");

		if (n == 2 && strncmp(s, "..", n) == 0) {
			while (len && ret[--len] != '/')
				;
		} else if (n && !(n == 1 && *s == '.')) {
			if (len + n + 2 > DOCKERCOPY_PATH_MAX)
				return false;
			if (len)
				ret[len++] = '/';
			memcpy(ret + len, s, n);
			len += n;
		}
		s += n;
	}
	ret[len] = '\0';
	return len > 0;
}

/* Variables are the builder's to know; globs may match nothing for some; escapes and quotes are the shell's. */
static bool is_plain(const struct dockercopy *c, const char *s)
{
	if (strpbrk(s, "$*?[]\\`\"'") || str_starts(s, "<<"))
		return false;
	return !c->add || !(strstr(s, "://") || str_starts(s, "git@"));
}

static bool tell(const struct dockercopy *c, const char *source)
{
	char path[DOCKERCOPY_PATH_MAX];

	return !is_plain(c, source) || !clean(source, path) || c->fn(c->arg, path);
}

/* Past the flags. NULL: the sources are of another stage. */
static char *skip_flags(const struct dockercopy *c, char *p)
{
	bool elsewhere = false;

	for (p += strspn(p, BLANK); str_starts(p, "--"); p += strspn(p, BLANK)) {
		size_t n = strcspn(p, BLANK);
		char *end = p + n;

		if (str_starts(p, "--from=")) {
			const bool last = *end == '\0';

			*end = '\0';
			if (c->from)
				c->from(c->arg, p + strlen("--from="));
			elsewhere = true;
			end += !last;
		}
		p = end;
	}
	return elsewhere ? NULL : p;
}

/* ["source", …, "destination"]. False: it is no such list, and so it is words. */
static bool tell_list(const struct dockercopy *c, const char *p)
{
	AUTO_JSN *list = *p == '[' ? jsn_parse(p, strlen(p), NULL) : NULL;
	const cJSON *i;

	if (!cJSON_IsArray(list))
		return false;
	cJSON_ArrayForEach(i, list) if (!cJSON_IsString(i)) return false;
	cJSON_ArrayForEach(i, list) if (i->next && !tell(c, i->valuestring)) break;
	return true;
}

void dockercopy_each(const struct dockercopy *c, char *args)
{
	char *p = skip_flags(c, args), *save = NULL, *words[WORDS_MAX];
	size_t n = 0;

	if (!p || tell_list(c, p))
		return;
	if (strpbrk(p, "\"'\\`")) /* a blank that is quoted may not end a word */
		return;
	for (char *w = strtok_r(p, BLANK, &save); w && n < WORDS_MAX;
	     w = strtok_r(NULL, BLANK, &save))
		words[n++] = w;
	for (size_t i = 0; i + 1 < n; i++)
		if (!tell(c, words[i]))
			return;
}
