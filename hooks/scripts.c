/* SPDX-License-Identifier: Apache-2.0 */
#include "scripts.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/log.h"
#include "lib/str.h"

bool scripts_name_ok(const char *name)
{
	static const char good[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
	size_t n = strlen(name);

	return n > 0 && n < SCRIPTS_NAME_MAX && name[0] != '.' && strspn(name, good) == n;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(a, b);
}

static void list(struct scripts *s)
{
	DIR *d = opendir(s->dir);
	struct dirent *e;

	s->count = s->at = 0;
	if (!d)
		return;
	while (s->count < SCRIPTS_MAX && (e = readdir(d))) {
		struct stat st;

		if (!scripts_name_ok(e->d_name) || fstatat(dirfd(d), e->d_name, &st, 0) < 0 ||
		    !S_ISREG(st.st_mode) || faccessat(dirfd(d), e->d_name, X_OK, 0) < 0)
			continue;
		memcpy(s->name[s->count++], e->d_name, strlen(e->d_name) + 1);
	}
	if (s->count == SCRIPTS_MAX)
		log_warn("%s: no more than %d scripts are run", s->dir, SCRIPTS_MAX);
	(void)closedir(d);
	qsort(s->name, (size_t)s->count, sizeof(s->name[0]), by_name);
}

/* Starts the next one that can be started; false when there is none. */
static bool next(struct scripts *s)
{
	while (s->at < s->count) {
		int64_t left = s->end_ns - loop_now();
		struct err e = ERR_INIT;
		char path[sizeof(s->dir) + SCRIPTS_NAME_MAX + 1];

		if (left <= 0) {
			log_warn("%s: no time left for %s and what comes after it", s->dir,
				 s->name[s->at]);
			return false;
		}
		if (left > SCRIPTS_EACH_NS)
			left = SCRIPTS_EACH_NS;
		if (str_format(path, sizeof(path), "%s/%s", s->dir, s->name[s->at]) == 0 &&
		    child_run(&s->child, s->loop, path, s->env, left, &e) == 0)
			return true;
		log_warn("%s", e.msg);
		s->at++;
	}
	return false;
}

static void on_child(void *arg, int status)
{
	struct scripts *s = arg;
	const char *name = s->name[s->at];

	if (status < 0)
		log_warn("%s/%s took too long and was killed", s->dir, name);
	else if (WIFSIGNALED(status))
		log_warn("%s/%s ended by signal %d", s->dir, name, WTERMSIG(status));
	else if (WEXITSTATUS(status))
		log_warn("%s/%s ended with status %d", s->dir, name, WEXITSTATUS(status));
	s->at++;
	if (!next(s))
		s->done(s->arg);
}

bool scripts_run(struct scripts *s, struct loop *l, const char *dir, char *const *env,
		 int64_t limit_ns, void (*done)(void *arg), void *arg)
{
	if (str_format(s->dir, sizeof(s->dir), "%s", dir) < 0)
		return false;
	s->loop = l;
	s->env = env;
	s->end_ns = loop_now() + limit_ns;
	s->done = done;
	s->arg = arg;
	s->child.done = on_child;
	s->child.arg = s;
	list(s);
	return next(s);
}
