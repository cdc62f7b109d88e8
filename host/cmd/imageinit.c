/* SPDX-License-Identifier: Apache-2.0 */
#include <cJSON.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host/aws/dockerfile.h"
#include "host/cli/out.h"
#include "host/cmd/cmd.h"
#include "host/cmd/common.h"
#include "host/local/share.h"
#include "lib/fd.h"
#include "lib/jsn.h"
#include "lib/str.h"

/*
 * asb image init: the folder of a guest for AWS, copied from <share>/aws, where asb's programs for aarch64 are, too. Nothing that is there is
 * replaced; when a file cannot be written, none of them stays.
 */

#define PROGRAM_MAX (16U << 20)
#define BASE_MAX    500

static const struct part {
	const char *name;
	mode_t mode;
} parts[] = {
	{ "Dockerfile", 0644 }, { ".dockerignore", 0644 }, { "README.md", 0644 },
	{ "asb-init", 0755 },	{ "agentd", 0755 },	   { "asb-hooks", 0755 },
};

struct init {
	const char *dir, *base;
	int from, to;	  /* owned */
	bool made;	  /* the folder is ours */
	unsigned written; /* so many of parts */
};

static int check_base(const char *s, struct err *e)
{
	static const char good[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
				   "._-/:@";
	size_t n = strlen(s);

	if (n && n <= BASE_MAX && strspn(s, good) == n && *s != '-')
		return 0;
	return err_set(e, ERR_USAGE, 0, "--from: '%.100s' is no image's name", s);
}

/* Both folders; the new one is made when its parent is there. */
static int open_both(struct init *i, struct err *e)
{
	char share[LOCAL_PATH_MAX];
	int r = share_dir(share, e), fd = -1;

	if (r < 0)
		return r;
	fd = open(share, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	i->from = fd < 0 ? -1 : openat(fd, "aws", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	r = i->from < 0
		    ? err_set(e, ERR_NOT_FOUND, errno, "%.200s/aws, where asb has the guest", share)
		    : 0;
	fd_close(&fd);
	if (r < 0)
		return r;
	i->made = mkdir(i->dir, 0755) == 0;
	if (!i->made && errno != EEXIST)
		return err_set(e, ERR_IO, errno, "cannot make %.200s", i->dir);
	i->to = open(i->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return i->to < 0 ? err_set(e, ERR_IO, errno, "%.200s", i->dir) : 0;
}

/* So that a refusal comes before anything is written. */
static int check_free(const struct init *i, struct err *e)
{
	struct stat st;

	for (size_t k = 0; k < ARRAY_LEN(parts); k++)
		if (fstatat(i->to, parts[k].name, &st, AT_SYMLINK_NOFOLLOW) == 0)
			return err_set(e, ERR_EXISTS, 0, "%.200s/%s is there already", i->dir,
				       parts[k].name);
	return 0;
}

/* B with the image of its first FROM line replaced. */
static int put_base(const struct init *i, struct buf *b, struct err *e)
{
	const char *from = b->p ? strstr(b->p, "\nFROM ") : NULL, *rest;
	AUTO_BUF text;
	int r = from ? 0 : -EINVAL;

	buf_init(&text, DOCKERFILE_MAX);
	if (r == 0) {
		from += strlen("\nFROM ");
		rest = from + strcspn(from, " \n");
		r = buf_add(&text, b->p, (size_t)(from - b->p));
		if (r == 0)
			r = buf_adds(&text, i->base);
		if (r == 0)
			r = buf_adds(&text, rest);
	}
	if (r < 0)
		return err_set(e, ERR_INTERNAL, -r, "the Dockerfile of asb");
	buf_done(b);
	*b = text;
	buf_init(&text, 1);
	return dockerfile_check(b->p, b->len, NULL, NULL, e);
}

static int write_part(struct init *i, const struct part *p, struct err *e)
{
	AUTO_FD fd = -1;
	AUTO_BUF b;
	int r;

	buf_init(&b, PROGRAM_MAX);
	r = fd_read_file(i->from, p->name, &b);
	if (r < 0)
		return err_set(e, ERR_NOT_FOUND, -r, "the guest's %s is not installed with asb",
			       p->name);
	if (i->base && strcmp(p->name, "Dockerfile") == 0)
		r = put_base(i, &b, e);
	if (r < 0)
		return r;
	fd = openat(i->to, p->name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, p->mode);
	if (fd < 0)
		return err_set(e, errno == EEXIST ? ERR_EXISTS : ERR_IO, errno,
			       "cannot write %.200s/%s", i->dir, p->name);
	i->written++;
	r = fd_write_all(fd, b.p, b.len);
	return r < 0 ? err_set(e, ERR_IO, -r, "cannot write %.200s/%s", i->dir, p->name) : 0;
}

static void undo(struct init *i)
{
	while (i->written--)
		(void)unlinkat(i->to, parts[i->written].name, 0); /* the first failure is told */
	if (i->made)
		(void)rmdir(i->dir);
}

static int scaffold(struct init *i, struct err *e)
{
	int r = i->base ? check_base(i->base, e) : 0;

	if (r == 0)
		r = open_both(i, e);
	if (r == 0)
		r = check_free(i, e);
	for (size_t k = 0; k < ARRAY_LEN(parts) && r == 0; k++)
		r = write_part(i, &parts[k], e);
	if (r < 0)
		undo(i);
	return r;
}

static cJSON *told(const struct init *i)
{
	cJSON *j = cJSON_CreateObject(), *files = NULL;
	bool good = j && jsn_add_str(j, "folder", i->dir) &&
		    (files = cJSON_AddArrayToObject(j, "files"));

	for (size_t k = 0; k < ARRAY_LEN(parts) && good; k++)
		good = cJSON_AddItemToArray(files, cJSON_CreateString(parts[k].name));
	if (good)
		return j;
	cJSON_Delete(j);
	return NULL;
}

int cmd_image_init(const struct cli *c)
{
	struct init i = { .dir = c->names[0],
			  .base = c->val[OPT_FROM].set ? c->val[OPT_FROM].text : NULL,
			  .from = -1,
			  .to = -1 };
	struct err e = ERR_INIT;
	int r = scaffold(&i, &e);

	fd_close(&i.from);
	fd_close(&i.to);
	if (r < 0)
		return cmd_fail(c, &e,
				e.code == ERR_EXISTS
					? "choose another folder, or move that file away"
					: NULL);
	if (out_json_wanted())
		return out_doc(told(&i)) < 0 ? c->cmd->failure : 0;
	out_note("asb image build %s --name NAME --backend aws builds it", i.dir);
	return out_line("wrote %s", i.dir) < 0 ? c->cmd->failure : 0;
}
