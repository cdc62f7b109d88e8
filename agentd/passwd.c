/* SPDX-License-Identifier: Apache-2.0 */
#include "passwd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/fd.h"
#include "lib/str.h"
#include "limits.h"

#define ID_MAX	     (UINT32_MAX - 1) /* the last number stands for "leave it alone" in system calls */
#define FIELDS	     7
#define NAME_MAX_LEN 256 /* either half of WHO */

int passwd_read(const char *path, struct buf *b)
{
	AUTO_FD fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct stat st;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) < 0)
		return -errno;
	return S_ISREG(st.st_mode) ? fd_read_all(fd, b) : -EINVAL;
}

/* Cuts the next line off *AT, in place. NULL at the end. */
static char *next_line(char **at)
{
	char *line = *at, *end;

	if (!line || !*line)
		return NULL;
	end = strchr(line, '\n');
	if (end)
		*end = '\0';
	*at = end ? end + 1 : NULL;
	return line;
}

/* Splits LINE at its colons, in place. The number of fields, at most MAX; further ones stay in the
 * last. */
static size_t split(char *line, char **f, size_t max)
{
	size_t n = 1;

	f[0] = line;
	while (n < max && (line = strchr(line, ':'))) {
		*line++ = '\0';
		f[n++] = line;
	}
	return n;
}

static int read_id(const char *s, uint32_t *ret)
{
	uint64_t v;

	if (str_to_u64(s, 0, ID_MAX, &v) < 0)
		return -EINVAL;
	*ret = (uint32_t)v;
	return 0;
}

static int copy(char *out, const char *s)
{
	return str_format(out, PASSWD_TEXT_MAX, "%s", s);
}

/* --- passwd --- */
static bool take_entry(struct passwd_user *u, char **f)
{
	uint32_t uid, gid;

	if (read_id(f[2], &uid) < 0 || read_id(f[3], &gid) < 0 || copy(u->name, f[0]) < 0 ||
	    copy(u->home, f[5][0] == '/' ? f[5] : "/") < 0 ||
	    copy(u->shell, f[6][0] ? f[6] : "/bin/sh") < 0)
		return false;
	u->uid = uid;
	u->gid = gid;
	return true;
}

/* Looks for an entry by name or, BY_ID, by number. */
static bool find_user(const char *text, const char *who, bool by_id, struct passwd_user *u)
{
	AUTO_BUF b = { .cap = LIMIT_PASSWD };
	char *at, *line, *f[FIELDS];
	uint32_t id, want = 0;

	if (!text || buf_adds(&b, text) < 0 || (by_id && read_id(who, &want) < 0))
		return false;
	at = b.p;
	while ((line = next_line(&at))) {
		if (split(line, f, FIELDS) < FIELDS || !f[0][0])
			continue;
		if (by_id ? read_id(f[2], &id) == 0 && id == want : !strcmp(f[0], who))
			if (take_entry(u, f))
				return true;
	}
	return false;
}

/* WHO has no entry: a number will do. */
static bool bare_user(const char *who, struct passwd_user *u)
{
	uint32_t id;

	if (read_id(who, &id) < 0)
		return false;
	u->uid = id;
	u->gid = 0;
	(void)snprintf(u->name, sizeof(u->name), "%u", (unsigned)id);
	(void)snprintf(u->home, sizeof(u->home), "/");
	(void)snprintf(u->shell, sizeof(u->shell), "/bin/sh");
	return true;
}

/* --- group --- */
static bool lists(char *members, const char *name)
{
	size_t n = strlen(name);

	while (*members) {
		size_t k = strcspn(members, ",");

		if (k == n && !memcmp(members, name, n))
			return true;
		members += k + (members[k] == ',');
	}
	return false;
}

static int add_group(struct passwd_user *u, gid_t gid)
{
	for (size_t i = 0; i < u->n_groups; i++)
		if (u->groups[i] == gid)
			return 0;
	if (u->n_groups == PASSWD_GROUPS_MAX)
		return -E2BIG;
	u->groups[u->n_groups++] = gid;
	return 0;
}

/* The groups that list U. Consumes TEXT. */
static int add_listed(struct passwd_user *u, char *text)
{
	char *line, *f[4];
	uint32_t gid;

	while ((line = next_line(&text)))
		if (split(line, f, 4) == 4 && read_id(f[2], &gid) == 0 && lists(f[3], u->name) &&
		    add_group(u, gid) < 0)
			return -E2BIG;
	return 0;
}

/* Consumes TEXT. */
static bool find_group(char *text, const char *who, gid_t *ret)
{
	char *line, *f[4];
	uint32_t gid;

	while ((line = next_line(&text)))
		if (split(line, f, 4) >= 3 && !strcmp(f[0], who) && read_id(f[2], &gid) == 0) {
			*ret = gid;
			return true;
		}
	if (read_id(who, &gid) < 0)
		return false;
	*ret = gid;
	return true;
}

/* --- both --- */
/* A file that is missing is an empty one. */
static int load(const char *path, struct buf *b, struct err *e)
{
	int r = passwd_read(path, b);

	return r < 0 && r != -ENOENT ? err_set(e, ERR_INVALID, -r, "\"user\": %s", path) : 0;
}

static int set_groups(struct passwd_user *u, const char *wanted, const char *path, struct err *e)
{
	AUTO_BUF b = { .cap = LIMIT_PASSWD };

	if (load(path, &b, e) < 0)
		return -EINVAL;
	if (wanted && !find_group(b.p, wanted, &u->gid))
		return err_set(e, ERR_INVALID, 0, "\"user\": there is no group \"%s\" in %s",
			       wanted, path);
	if (add_group(u, u->gid) < 0 || (!wanted && add_listed(u, b.p) < 0))
		return err_set(e, ERR_INVALID, 0, "\"user\": %s is in too many groups", u->name);
	return 0;
}

int passwd_resolve(const char *who, const char *passwd, const char *group, struct passwd_user *ret,
		   struct err *e)
{
	AUTO_BUF b = { .cap = LIMIT_PASSWD };
	const char *colon = strchr(who, ':');
	char name[NAME_MAX_LEN];

	memset(ret, 0, sizeof(*ret));
	if (str_format(name, sizeof(name), "%.*s",
		       (int)(colon ? (size_t)(colon - who) : strnlen(who, sizeof(name))),
		       who) < 0 ||
	    !name[0] || (colon && (!colon[1] || strlen(colon) > NAME_MAX_LEN)))
		return err_set(
			e, ERR_INVALID, 0,
			"\"user\" must be a name or a number, and may have :group behind it");
	if (load(passwd, &b, e) < 0)
		return -EINVAL;
	if (!find_user(b.p, name, false, ret) && !find_user(b.p, name, true, ret) &&
	    !bare_user(name, ret))
		return err_set(e, ERR_INVALID, 0, "\"user\": there is no \"%s\" in %s", name,
			       passwd);
	return set_groups(ret, colon ? colon + 1 : NULL, group, e);
}
