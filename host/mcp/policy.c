/* SPDX-License-Identifier: Apache-2.0 */
#include "host/mcp/policy.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/str.h"

/*
 * The allow-list keeps a model from files that it was not given; it is no defence against another program that changes links
 * meanwhile as the same user. Both sides are compared with all links resolved.
 */

static bool below(const char *path, const char *root)
{
	size_t n = strlen(root);

	while (n && root[n - 1] == '/')
		n--;
	return strncmp(path, root, n) == 0 && (path[n] == '\0' || path[n] == '/');
}

static int relative_to_cwd(const char *path, struct buf *b)
{
	char cwd[PATH_MAX];

	if (path[0] == '/')
		return buf_adds(b, path);
	if (!getcwd(cwd, sizeof(cwd)))
		return -errno;
	return buf_addf(b, "%s/%s", cwd, path);
}

/*
 * As realpath(3), where the last parts need not be there. A part that is not there and names a parent is refused: what
 * it would mean is only known later.
 */
static char *resolve(const char *path)
{
	char *real = realpath(path, NULL), *cut, *parent = NULL;
	const char *name;
	AUTO_BUF b;

	buf_init(&b, PATH_MAX);
	if (real || errno != ENOENT)
		return real;
	cut = strdup(path);
	while (cut && strlen(cut) > 1 && cut[strlen(cut) - 1] == '/')
		cut[strlen(cut) - 1] = '\0';
	name = cut ? strrchr(cut, '/') : NULL;
	if (name && name[1] && strcmp(name + 1, "..") != 0 && strcmp(name + 1, ".") != 0) {
		char link;

		/* a link that leads nowhere would be followed by who writes */
		if (readlink(cut, &link, 1) < 0 && name == cut)
			parent = strdup("/");
		else if (readlink(cut, &link, 1) < 0) {
			cut[name - cut] = '\0';
			parent = resolve(cut);
		}
		if (parent &&
		    buf_addf(&b, "%s/%s", strcmp(parent, "/") ? parent : "", name + 1) == 0)
			real = buf_take(&b);
	}
	free(parent);
	free(cut);
	if (!real)
		errno = ENOENT;
	return real;
}

int policy_path(struct mcp_job *j, const char *path, char **ret, struct err *e)
{
	const struct mcp_config *c = j->cfg;
	char *real = NULL;
	AUTO_BUF b;
	bool good = c->any_host_path;

	buf_init(&b, PATH_MAX);
	if (*path && relative_to_cwd(path, &b) == 0)
		real = resolve(b.p);
	if (!real) {
		j->code = "not_found";
		return err_set(e, ERR_NOT_FOUND, *path ? errno : ENOENT, "%.300s", path);
	}
	for (unsigned i = 0; i < c->roots_len && !good; i++)
		good = below(real, c->roots[i]);
	if (!good) {
		free(real);
		j->code = "policy_denied";
		return err_set(e, ERR_DENIED, EACCES,
			       "%.300s is not below a folder of AGENT_SANDBOX_MCP_HOST_PATHS",
			       path);
	}
	*ret = real;
	return 0;
}

int policy_network(struct mcp_job *j, bool has_one, const char *thing, struct err *e)
{
	if (!j->cfg->no_network || !has_one)
		return 0;
	return job_fail(j, e, "policy_denied",
			"this server was started with --no-network, and %s has a network", thing);
}

int policy_resume(struct mcp_job *j, const struct core_named *n, struct err *e)
{
	struct sandbox_info i;
	int r;

	if (!j->cfg->read_only)
		return 0;
	r = n->backend->info(n->record.microvm_id, &i, NULL);
	if (r == -ENOENT) /* nothing is there that could be resumed */
		return 0;
	if (r < 0 || i.state == SANDBOX_UNKNOWN) /* what cannot be read is not trusted */
		return job_fail(
			j, e, "policy_denied",
			"it cannot be read whether '%s' is suspended, and this server was started with --read-only: it "
			"resumes nothing (asb inspect %s)",
			n->record.name, n->record.name);
	if (i.state != SANDBOX_SUSPENDED && i.state != SANDBOX_SUSPENDING)
		return 0;
	return job_fail(
		j, e, "policy_denied",
		"'%s' is suspended, and this server was started with --read-only: it resumes nothing (asb start %s)",
		n->record.name, n->record.name);
}
