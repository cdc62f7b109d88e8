/* SPDX-License-Identifier: Apache-2.0 */
#include "envbase.h"

#include <cJSON.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/buf.h"
#include "lib/fd.h"
#include "lib/str.h"
#include "limits.h"
#include "passwd.h"

#define DEFAULT_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

/* Settings of agentd and its starter, and what a shell that started it has left: no business of a
 * command. */
static bool is_ours(const char *var)
{
	static const char names[][15] = {
		"AGENTD_", "ASB_NOTIFY_FD=", "ASB_INIT_ID=", "PWD=", "OLDPWD=", "SHLVL=", "_="
	};

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (str_starts(var, names[i]))
			return true;
	return false;
}

static size_t name_len(const char *var)
{
	return strcspn(var, "=");
}

/* Takes VAR ("NAME=value", malloc). Replaces an older one of that name. */
static int put_owned(struct envbase *e, char *var)
{
	size_t n = name_len(var);
	char **vars;

	for (size_t i = 0; i < e->n; i++)
		if (name_len(e->vars[i]) == n && !memcmp(e->vars[i], var, n)) {
			free(e->vars[i]);
			e->vars[i] = var;
			return 0;
		}
	if (e->n >= LIMIT_ENV) {
		free(var);
		return -E2BIG;
	}
	vars = realloc(e->vars, (e->n + 2) * sizeof(*vars));
	if (!vars) {
		free(var);
		return -ENOMEM;
	}
	e->vars = vars;
	e->vars[e->n++] = var;
	e->vars[e->n] = NULL;
	return 0;
}

static int put(struct envbase *e, const char *name, const char *value)
{
	AUTO_BUF b = { .cap = 1UL << 20 };
	char *s;
	int r = buf_addf(&b, "%s=%s", name, value);

	if (r < 0)
		return r;
	s = buf_take(&b);
	return s ? put_owned(e, s) : -ENOMEM;
}

/* The N-th field (from 0) of a passwd(5) line, cut out in place. NULL when the line has fewer. */
static char *field(char *line, int n)
{
	while (n-- > 0) {
		line = strchr(line, ':');
		if (!line)
			return NULL;
		line++;
	}
	return line;
}

static int put_field(struct envbase *e, const char *name, const char *f, const char *fallback)
{
	size_t n = f ? strcspn(f, ":") : 0;
	char value[4096];

	if (n == 0 || n >= sizeof(value))
		return put(e, name, fallback);
	memcpy(value, f, n);
	value[n] = '\0';
	return put(e, name, value);
}

/* HOME, USER, LOGNAME and SHELL of the first entry with our uid: without NSS, by the image's file
 * alone. */
static int put_passwd(struct envbase *e, const char *path)
{
	AUTO_BUF b = { .cap = LIMIT_PASSWD };
	char *line, *next, *found = NULL;
	char uid[16];
	int r;

	(void)snprintf(uid, sizeof(uid), "%u:", (unsigned)getuid());
	if (passwd_read(path, &b) == 0)
		for (line = b.p; line && !found; line = next) {
			char *f = field(line, 2);

			next = strchr(line, '\n');
			if (next)
				*next++ = '\0';
			if (f && str_starts(f, uid))
				found = line;
		}
	r = put_field(e, "HOME", found ? field(found, 5) : NULL, getuid() == 0 ? "/root" : "/");
	if (r == 0)
		r = put_field(e, "USER", found, getuid() == 0 ? "root" : "nobody");
	if (r == 0)
		r = put_field(e, "LOGNAME", found, getuid() == 0 ? "root" : "nobody");
	if (r == 0)
		r = put_field(e, "SHELL", found ? field(found, 6) : NULL, "/bin/sh");
	return r;
}

static int fill(struct envbase *e, char *const *environment, const char *passwd_path,
		const cJSON *identity)
{
	const cJSON *v;
	int r = put_passwd(e, passwd_path);

	if (r == 0)
		r = put(e, "PATH", DEFAULT_PATH);
	if (r == 0)
		r = put(e, "LANG", "C.UTF-8");
	if (r == 0)
		r = put(e, "TERM", "xterm-256color");
	for (; r == 0 && *environment; environment++) {
		char *s;

		/* the kernel starts PID 1 with HOME=/ and TERM=linux, which no image has declared
		 */
		if (is_ours(*environment) || !strchr(*environment, '=') ||
		    !strcmp(*environment, "HOME=/") || !strcmp(*environment, "TERM=linux"))
			continue;
		s = strdup(*environment);
		r = s ? put_owned(e, s) : -ENOMEM;
	}
	cJSON_ArrayForEach(v, identity) if (r == 0) r = put(e, v->string, v->valuestring);
	return r;
}

int envbase_build(struct envbase *e, char *const *environment, const char *passwd_path,
		  const struct cJSON *identity_env)
{
	struct envbase fresh = { NULL, 0 };
	int r = fill(&fresh, environment, passwd_path, identity_env);

	if (r < 0) {
		envbase_done(&fresh);
		return r;
	}
	envbase_done(e);
	*e = fresh;
	return 0;
}

void envbase_done(struct envbase *e)
{
	for (size_t i = 0; i < e->n; i++)
		free(e->vars[i]);
	free(e->vars);
	*e = (struct envbase){ NULL, 0 };
}

const char *envbase_get(char *const *vars, const char *name)
{
	size_t n = strlen(name);

	for (; *vars; vars++)
		if (!strncmp(*vars, name, n) && (*vars)[n] == '=')
			return *vars + n + 1;
	return NULL;
}

const char *envbase_home(char *const *vars)
{
	const char *home = envbase_get(vars, "HOME");
	struct stat st;

	if (home && home[0] == '/' && access(home, X_OK) == 0 && stat(home, &st) == 0 &&
	    S_ISDIR(st.st_mode))
		return home;
	return "/";
}
