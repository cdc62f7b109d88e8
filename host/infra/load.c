/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host/infra/config.h"
#include "host/infra/yaml.h"
#include "lib/buf.h"
#include "lib/fd.h"
#include "lib/str.h"

/* Which files are read: those that were named, what is in the folders that were named, or the one of the working folder. */

static int load_file(const char *path, const char *stack, struct infra_configs *ret, struct err *e)
{
	AUTO_BUF b;
	int r;

	buf_init(&b, YAML_FILE_MAX);
	r = fd_read_file(AT_FDCWD, path, &b);
	if (r == -ENOENT)
		return err_set(e, ERR_NOT_FOUND, 0, "there is no file %s", path);
	if (r == -ENOSPC)
		return err_set(e, ERR_TOO_BIG, 0, "%s: has over %u bytes", path, YAML_FILE_MAX);
	if (r < 0)
		return err_set(e, ERR_IO, -r, "cannot read %s", path);
	return infra_config_parse(path, b.p ? b.p : "", b.len, stack, ret, e);
}

static int is_yaml(const struct dirent *d)
{
	const char *dot = strrchr(d->d_name, '.');

	return dot && dot != d->d_name && (strcmp(dot, ".yaml") == 0 || strcmp(dot, ".yml") == 0);
}

static int load_folder(const char *path, const char *stack, struct infra_configs *ret,
		       struct err *e)
{
	struct dirent **list = NULL;
	int n = scandir(path, &list, is_yaml, alphasort), r = 0;

	if (n < 0)
		return err_set(e, ERR_IO, errno, "cannot read %s", path);
	if (n == 0)
		r = err_set(e, ERR_NOT_FOUND, 0, "no .yaml or .yml files are in %s", path);
	for (int i = 0; i < n; i++) {
		char file[PATH_MAX];

		if (r == 0 && str_format(file, sizeof(file), "%s/%s", path, list[i]->d_name) < 0)
			r = err_set(e, ERR_INVALID, ENAMETOOLONG, "%s", path);
		if (r == 0)
			r = load_file(file, stack, ret, e);
		free(list[i]);
	}
	free(list);
	return r;
}

static int load_path(const char *path, const char *stack, struct infra_configs *ret, struct err *e)
{
	struct stat st;

	if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
		return load_folder(path, stack, ret, e);
	return load_file(path, stack, ret, e);
}

static int check_twice(const struct infra_configs *c, struct err *e)
{
	for (size_t i = 0; i < c->len; i++)
		for (size_t j = 0; j < i; j++) {
			const struct infra_config *a = &c->all[i], *b = &c->all[j];

			if (strcmp(a->text[INFRA_PROJECT], b->text[INFRA_PROJECT]) == 0 &&
			    strcmp(a->text[INFRA_STACK], b->text[INFRA_STACK]) == 0)
				return err_set(e, ERR_INVALID, 0,
					       "%s:%u: %s/%s is described in %s:%u already",
					       a->file, a->line, a->text[INFRA_PROJECT],
					       a->text[INFRA_STACK], b->file, b->line);
		}
	return 0;
}

static const char *usual_file(void)
{
	const char *s = getenv("AGENT_SANDBOX_SETUP");

	if (s && *s)
		return s;
	return access("sandbox.yaml", F_OK) < 0 && access("setup.yaml", F_OK) == 0 ? "setup.yaml"
										   : "sandbox.yaml";
}

int infra_config_load(const char *const *paths, size_t n, const char *stack,
		      struct infra_configs *ret, struct err *e)
{
	const char *usual = n ? NULL : usual_file();
	int r = 0;

	*ret = (struct infra_configs){ NULL, 0 };
	if (usual)
		r = load_path(usual, stack, ret, e);
	for (size_t i = 0; r == 0 && i < n; i++)
		r = load_path(paths[i], stack, ret, e);
	return r < 0 ? r : check_twice(ret, e);
}

int infra_guest_dir(const struct infra_config *c, char **ret, struct err *e)
{
	const char *dir = c->text[INFRA_GUEST_DIR], *slash = strrchr(c->file, '/');
	bool alone = dir[0] == '/' || !slash;
	char path[PATH_MAX];
	int n = alone ? 0 : (int)(slash + 1 - c->file);

	if (str_format(path, sizeof(path), "%.*s%s/Dockerfile", n, c->file, dir) < 0)
		return err_set(e, ERR_INVALID, ENAMETOOLONG, "%s: image.guest_dir", c->file);
	*ret = strndup(path, strlen(path) - strlen("/Dockerfile"));
	if (!*ret)
		return err_set(e, ERR_INTERNAL, ENOMEM, "%s", path);
	if (access(*ret, F_OK) == 0 && access(path, R_OK) == 0)
		return 0;
	(void)err_set(e, ERR_NOT_FOUND, 0,
		      "%s: image.guest_dir %s: %s (that is %s; asb image init makes one)", c->file,
		      access(*ret, F_OK) < 0 ? "does not exist" : "has no Dockerfile", dir, *ret);
	free(*ret);
	*ret = NULL;
	return -ENOENT;
}
