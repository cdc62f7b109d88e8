/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "app.h"
#include "exec.h"
#include "lib/fd.h"
#include "lib/jsn.h"
#include "lib/log.h"
#include "lib/str.h"

/* Who this sandbox is, and who may talk to it. */

#define TOKEN_MAX    4096
#define IDENTITY_MAX (4U << 20)

extern char **environ;

/* --- the token --- */
int app_read_token(struct app *a, struct err *e)
{
	AUTO_BUF b = { .cap = TOKEN_MAX };
	int r;

	if (!a->token_file)
		return 0;
	r = fd_read_file(AT_FDCWD, a->token_file, &b);
	if (r < 0)
		return err_set(e, ERR_INVALID, -r, "AGENTD_TOKEN_FILE %s", a->token_file);
	while (b.len && (b.p[b.len - 1] == '\n' || b.p[b.len - 1] == '\r'))
		b.p[--b.len] = '\0';
	if (b.len == 0 || strlen(b.p) != b.len)
		return err_set(e, ERR_INVALID, EINVAL, "AGENTD_TOKEN_FILE %s holds no token",
			       a->token_file);
	a->token = buf_take(&b);
	return a->token ? 0 : err_set(e, ERR_IO, ENOMEM, "token");
}

/* The time depends on the length of what was sent, which its sender knows, and on nothing else. */
static bool same_token(const char *given, const char *token)
{
	size_t n = strlen(given), m = strlen(token);
	unsigned diff = n != m;

	for (size_t i = 0; i < n; i++)
		diff |= (unsigned char)given[i] ^ (unsigned)(unsigned char)token[i < m ? i : 0];
	return diff == 0;
}

bool app_authorized(struct httpd_req *r, const struct httpd_route *route)
{
	struct app *a = httpd_server_arg(r);
	const char *h = httpd_header(r, "Authorization");

	a->requests++;
	if (!a->token || (route->flags & HTTPD_OPEN))
		return true;
	if (h && !strncasecmp(h, "Bearer ", 7) && same_token(h + 7, a->token))
		return true;
	ignore_result(httpd_add_header(r, "WWW-Authenticate", "Bearer"));
	ignore_result(httpd_add_header(r, "Connection", "close"));
	httpd_reply_error(r, 401, "Unauthorized");
	return false;
}

/* --- the identity --- */
/* asb-init starts agentd again when it dies, and a guest that was given a token must not come back without one: so what was
 * told is kept beside the private socket, below /run, for root alone. */
static int kept_path(const struct app *a, char *out, size_t size)
{
	return str_format(out, size, "%s.identity", a->socket_path);
}

static int keep_identity(const struct app *a)
{
	AUTO_JSN *j = cJSON_CreateObject();
	cJSON *env = a->identity_env ? cJSON_Duplicate(a->identity_env, 1) : cJSON_CreateNull();
	char path[PATH_MAX], *text;
	int r;

	if (!j || !env || !cJSON_AddItemToObject(j, "env", env)) {
		cJSON_Delete(env);
		return -ENOMEM;
	}
	if (!jsn_add_str(j, "generation", a->generation) ||
	    !jsn_add_str(j, "agent_token", a->token))
		return -ENOMEM;
	text = cJSON_PrintUnformatted(j);
	if (!text)
		return -ENOMEM;
	r = kept_path(a, path, sizeof(path));
	if (r == 0)
		r = fd_replace_file_lazy(path, text, strlen(text), 0600);
	free(text);
	return r;
}

static int apply_identity(struct app *a, const struct private_identity *id, struct err *e)
{
	cJSON *env = id->env ? cJSON_Duplicate(id->env, 1) : NULL;
	char *token = id->agent_token ? strdup(id->agent_token) : NULL;
	int r;

	if ((id->env && !env) || (id->agent_token && !token)) {
		cJSON_Delete(env);
		free(token);
		return err_set(e, ERR_IO, ENOMEM, "identity");
	}
	r = envbase_build(&a->env, environ, a->passwd_path, env ? env : a->identity_env);
	if (r < 0) {
		cJSON_Delete(env);
		free(token);
		return err_set(e, ERR_INVALID, -r, "environment");
	}
	if (env) {
		cJSON_Delete(a->identity_env);
		a->identity_env = env;
	}
	if (token) {
		free(a->token);
		a->token = token;
	}
	memcpy(a->generation, id->generation, sizeof(a->generation) - 1);
	return 0;
}

int app_identity(void *app, const struct private_identity *id, struct err *e)
{
	int r = apply_identity(app, id, e), kept;

	if (r < 0)
		return r;
	kept = keep_identity(app);
	if (kept < 0)
		log_warn("the identity is lost when agentd is restarted: %s", strerror(-kept));
	return 0;
}

int app_restore_identity(struct app *a, struct err *e)
{
	struct private_identity id = { NULL, NULL, NULL };
	AUTO_BUF b = { .cap = IDENTITY_MAX };
	char path[PATH_MAX];
	int r = kept_path(a, path, sizeof(path));

	if (r == 0)
		r = fd_read_file(AT_FDCWD, path, &b);
	if (r == -ENOENT)
		return 0;
	if (r < 0)
		return err_set(e, ERR_IO, -r, "%s", path);
	AUTO_JSN *j = jsn_parse(b.p ? b.p : "", b.len, e);

	if (!j || private_read_identity(j, &id, e) < 0 || apply_identity(a, &id, e) < 0) {
		ignore_result(err_wrap(e, "%s", path));
		return -EINVAL;
	}
	return 0;
}

/* --- the check program --- */
static void on_checked(struct exec *e, void *arg)
{
	struct app *a = arg;
	int result = 0;

	if (e->timed_out)
		result = -ETIMEDOUT;
	else if (e->signal || e->exit_code)
		result = -EIO;
	if (a->priv)
		private_exec_checked(a->priv, result);
}

/* agentd itself, printing its version: the one program that is certain to be in the image. */
int app_exec_check(void *app, struct err *e)
{
	static char self[] = "/proc/self/exe", arg[] = "--version";
	char *argv[] = { self, arg, NULL };
	struct app *a = app;
	struct spec s = SPEC_INIT;
	enum proc_step step;
	struct exec *x;
	int r;

	s.argv = argv;
	s.envp = a->env.vars;
	s.timed = true;
	s.timeout_ns = 8 * 1000000000LL;
	r = exec_start(&s, NULL, &x, &step, e);
	if (r < 0)
		return r;
	x->on_done = on_checked;
	x->done_arg = a;
	return 0;
}
