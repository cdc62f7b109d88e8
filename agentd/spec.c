/* SPDX-License-Identifier: Apache-2.0 */
#include "spec.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "envbase.h"
#include "lib/b64.h"
#include "lib/buf.h"
#include "lib/jsn.h"
#include "limits.h"

/*
 * A request is taken as it is written or refused: members that are not known are errors in the
 * native form, where a misspelt "timeout_ms" would otherwise run for ever, and are ignored in the
 * compatible form, as the original does.
 */

#define NS_PER_S       1000000000.0
#define TIMEOUT_MS_MAX (10ULL * 366 * 86400 * 1000)
#define COMPAT_S_MAX   (10.0 * 366 * 86400)
#define USER_VARS      4

void spec_done(struct spec *s)
{
	cJSON_Delete(s->root);
	free(s->argv);
	free(s->envp);
	free(s->env_own);
	free(s->env_user);
	free(s->cwd);
	free(s->user);
	*s = (struct spec)SPEC_INIT;
}

/* --- argv --- */
static size_t count(const cJSON *list)
{
	const cJSON *m;
	size_t n = 0;

	cJSON_ArrayForEach(m, list) n++;
	return n;
}

/* FIRST (if any), then the strings of REST. */
static int make_argv(struct spec *s, char *first, const cJSON *rest, struct err *e)
{
	size_t n = count(rest), at = 0;
	const cJSON *m;

	if (n > LIMIT_ARGV)
		return err_set(e, ERR_INVALID, E2BIG, "too many arguments");
	s->argv = calloc(n + 2, sizeof(*s->argv));
	if (!s->argv)
		return err_set(e, ERR_IO, ENOMEM, "command");
	if (first)
		s->argv[at++] = first;
	cJSON_ArrayForEach(m, rest) s->argv[at++] = m->valuestring;
	if (at == 0 || !s->argv[0][0])
		return err_set(e, ERR_INVALID, 0, "the command is empty");
	return 0;
}

static int make_shell(struct spec *s, char *script, struct err *e)
{
	static char sh[] = "/bin/sh", dash_c[] = "-c";

	s->argv = calloc(4, sizeof(*s->argv));
	if (!s->argv)
		return err_set(e, ERR_IO, ENOMEM, "command");
	s->argv[0] = sh;
	s->argv[1] = dash_c;
	s->argv[2] = script;
	return 0;
}

/* --- environment --- */
struct var {
	char *text;
	size_t name_len, at;
};

static int by_name(const void *a, const void *b)
{
	const struct var *x = a, *y = b;
	int c = strncmp(x->text, y->text, x->name_len < y->name_len ? x->name_len : y->name_len);

	if (c == 0 && x->name_len != y->name_len)
		c = x->name_len < y->name_len ? -1 : 1;
	return c ? c : x->at < y->at ? -1 : 1;
}

/* Of the N variables of ENVP that have one name only the last stays. Sorted for that: a caller may give thousands. */
static int keep_last(char **envp, size_t n)
{
	struct var *v = calloc(n + 1, sizeof(*v));
	size_t kept = 0;

	if (!v)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		v[i] = (struct var){ envp[i], strcspn(envp[i], "="), i };
	qsort(v, n, sizeof(*v), by_name);
	for (size_t i = 1; i < n; i++)
		if (v[i - 1].name_len == v[i].name_len &&
		    !memcmp(v[i - 1].text, v[i].text, v[i].name_len))
			envp[v[i - 1].at] = NULL;
	for (size_t i = 0; i < n; i++)
		if (envp[i])
			envp[kept++] = envp[i];
	envp[kept] = NULL;
	free(v);
	return 0;
}

/* The caller's variables as "NAME=value" in one block; keep_last() takes the last of a name. */
static int own_vars(struct spec *s, const cJSON *env, struct err *e)
{
	size_t bytes = 0;
	const cJSON *m;
	char *w;

	cJSON_ArrayForEach(m, env)
	{
		if (!m->string[0] || strchr(m->string, '='))
			return err_set(e, ERR_INVALID, 0,
				       "\"%.100s\" cannot be the name of a variable", m->string);
		bytes += strlen(m->string) + strlen(m->valuestring) + 2;
	}
	w = s->env_own = malloc(bytes + 1);
	if (!w)
		return err_set(e, ERR_IO, ENOMEM, "environment");
	cJSON_ArrayForEach(m, env)
	{
		size_t n = strlen(m->string), k = strlen(m->valuestring);

		memcpy(w, m->string, n);
		w[n] = '=';
		memcpy(w + n + 1, m->valuestring, k + 1);
		w += n + k + 2;
	}
	return 0;
}

/* Appends the N strings that follow one another at W. Returns the new length. */
static size_t append(char **envp, size_t at, char *w, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		envp[at++] = w;
		w += strlen(w) + 1;
	}
	return at;
}

/* HOME and so on of another user, as one block. */
static int user_vars(struct spec *s, struct err *e)
{
	AUTO_BUF b = { .cap = 4 * (PASSWD_TEXT_MAX + 16) };
	const struct passwd_user *u = s->user;

	if (buf_addf(&b, "HOME=%s%cUSER=%s%cLOGNAME=%s%cSHELL=%s", u->home, 0, u->name, 0, u->name,
		     0, u->shell) < 0)
		return err_set(e, ERR_IO, ENOMEM, "environment");
	s->env_user = buf_take(&b);
	return s->env_user ? 0 : err_set(e, ERR_IO, ENOMEM, "environment");
}

static int make_env(struct spec *s, const cJSON *env, char *const *base, struct err *e)
{
	static char *const nothing[] = { NULL };
	size_t n = 0, own = count(env), at = 0;
	bool of_user = base && s->user;

	if (!base)
		base = nothing;
	while (base[n])
		n++;
	if (own > LIMIT_ENV)
		return err_set(e, ERR_INVALID, E2BIG, "too many variables");
	if (own_vars(s, env, e) < 0 || (of_user && user_vars(s, e) < 0))
		return -EINVAL;
	s->envp = calloc(n + USER_VARS + own + 1, sizeof(*s->envp));
	if (!s->envp)
		return err_set(e, ERR_IO, ENOMEM, "environment");
	for (; at < n; at++)
		s->envp[at] = base[at];
	if (of_user)
		at = append(s->envp, at, s->env_user, USER_VARS);
	at = append(s->envp, at, s->env_own, own);
	return keep_last(s->envp, at) < 0 ? err_set(e, ERR_IO, ENOMEM, "environment") : 0;
}

/* --- working directory --- */
static int make_cwd(struct spec *s, const char *cwd, struct err *e)
{
	AUTO_BUF b = { .cap = 8192 };
	const char *home = cwd ? NULL : envbase_get(s->envp, "HOME");
	int r;

	/* the default may be one that cannot be entered: that shows when its user tries */
	if (!home || home[0] != '/')
		home = envbase_home(s->envp);

	s->cwd_given = cwd != NULL;
	if (!cwd)
		r = buf_adds(&b, home);
	else if (cwd[0] == '/')
		r = buf_adds(&b, cwd);
	else
		r = buf_addf(&b, "%s/%s", home, cwd);
	if (r == 0)
		s->cwd = buf_take(&b);
	return s->cwd ? 0 : err_set(e, ERR_INVALID, ENAMETOOLONG, "working directory");
}

/* Member NAME, if it is there: all of the input, in base64. */
static int read_input(struct spec *s, const char *name, struct err *e)
{
	cJSON *m = jsn_get(s->root, name);

	if (!cJSON_IsString(m))
		return 0;
	/* decoded in place: four characters become three bytes */
	if (b64_decode(m->valuestring, strlen(m->valuestring), m->valuestring, &s->input_len) < 0)
		return err_set(e, ERR_INVALID, 0, "invalid base64 %s", name);
	s->input = m->valuestring;
	s->want_stdin = true;
	return 0;
}

/* --- the native body --- */
static int check_members(const cJSON *root, struct err *e)
{
	static const char known[][11] = { "argv",      "shell",	 "cwd",	       "env",
					  "clear_env", "stdin",	 "timeout_ms", "pty",
					  "user",      "limits", "seccomp",    "input" };
	const cJSON *m;

	cJSON_ArrayForEach(m, root)
	{
		bool found = false;

		for (size_t i = 0; i < ARRAY_LEN(known); i++)
			found |= !strcmp(m->string, known[i]);
		if (!found)
			return err_set(e, ERR_INVALID, 0, "this agent does not know \"%.100s\"",
				       m->string);
	}
	return 0;
}

static int check_env_object(const cJSON *env, struct err *e)
{
	const cJSON *m;

	cJSON_ArrayForEach(m, env) if (!cJSON_IsString(m)) return err_set(
		e, ERR_INVALID, 0, "\"env.%.100s\" must be a string", m->string);
	return 0;
}

static int read_command(struct spec *s, struct err *e)
{
	const cJSON *argv = NULL;
	const char *shell = NULL;
	int a = jsn_str_array(s->root, "argv", &argv, e);
	int b = a < 0 ? a : jsn_str(s->root, "shell", &shell, e);

	if (a < 0 || b < 0)
		return -EINVAL;
	if (a + b != 1)
		return err_set(e, ERR_INVALID, 0, "one of \"argv\" and \"shell\" is wanted");
	if (a)
		return make_argv(s, NULL, argv, e);
	return make_shell(s, jsn_get(s->root, "shell")->valuestring, e);
}

static int read_timeout(struct spec *s, struct err *e)
{
	uint64_t ms = 0;

	if (jsn_u64(s->root, "timeout_ms", 0, TIMEOUT_MS_MAX, &ms, e) < 0)
		return -EINVAL;
	s->timed = ms > 0;
	s->timeout_ns = (int64_t)ms * 1000000;
	return 0;
}

int spec_native(struct spec *s, const char *p, size_t n, char *const *base, struct err *e)
{
	const cJSON *env = NULL;
	const char *cwd = NULL, *input = NULL;
	bool clear = false;

	s->root = jsn_parse(p, n, e);
	if (!s->root)
		return -EINVAL;
	if (!cJSON_IsObject(s->root))
		return err_set(e, ERR_INVALID, 0, "the body must be a JSON object");
	if (check_members(s->root, e) < 0 || read_command(s, e) < 0 || read_timeout(s, e) < 0 ||
	    jsn_str(s->root, "cwd", &cwd, e) < 0 || jsn_object(s->root, "env", &env, e) < 0 ||
	    jsn_bool(s->root, "clear_env", &clear, e) < 0 ||
	    jsn_bool(s->root, "stdin", &s->want_stdin, e) < 0 ||
	    jsn_str(s->root, "input", &input, e) < 0 || read_input(s, "input", e) < 0 ||
	    check_env_object(env, e) < 0 || spec_pty(s, e) < 0 || spec_user(s, e) < 0 ||
	    spec_resources(s, e) < 0 || spec_seccomp(s, e) < 0)
		return -EINVAL;
	if (make_env(s, env, clear ? NULL : base, e) < 0)
		return -EINVAL;
	return make_cwd(s, cwd, e);
}

/* --- the compatible body --- */
static void read_seconds(struct spec *s)
{
	const cJSON *m = jsn_get(s->root, "timeout");
	double v;

	if (cJSON_IsNumber(m))
		v = m->valuedouble;
	else if (cJSON_IsString(m)) /* a number, validate_exec has seen to that */
		v = strtod(m->valuestring, NULL);
	else if (cJSON_IsBool(m))
		v = cJSON_IsTrue(m) ? 1 : 0;
	else
		return;
	if (v >= COMPAT_S_MAX)
		return; /* as good as none */
	s->timed = true;
	s->timeout_ns = v > 0 ? (int64_t)(v * NS_PER_S) : 0;
}

int spec_compat(struct spec *s, cJSON *root, char *const *base, struct err *e)
{
	cJSON *cmd = jsn_get(root, "command");
	const cJSON *cwd = jsn_get(root, "cwd");
	const cJSON *env = jsn_get(root, "env");

	s->root = root;
	read_seconds(s);
	if (make_argv(s, cmd->valuestring, jsn_get(root, "args"), e) < 0 ||
	    make_env(s, cJSON_IsObject(env) ? env : NULL, base, e) < 0 ||
	    read_input(s, "stdin", e) < 0)
		return -EINVAL;
	return make_cwd(s, cJSON_IsString(cwd) ? cwd->valuestring : NULL, e);
}
