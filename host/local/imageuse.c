/* SPDX-License-Identifier: Apache-2.0 */
#include "host/local/imageuse.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "host/local/vmdir.h"
#include "lib/fd.h"
#include "lib/jsn.h"
#include "lib/str.h"

/*
 * A sandbox says in its vm.json what it was made from, a snapshot in its snapshot.json; neither has a link to the
 * files, so this is what keeps an image from being removed under them. A snapshot that is being made names an image
 * that its sandbox names, too.
 */

#define USES_MAX     131072
#define SNAPSHOT_MAX (1U << 20)

void image_uses_done(struct image_uses *u)
{
	for (size_t i = 0; i < u->len; i++)
		free(u->all[i].name);
	free(u->all);
	*u = (struct image_uses){ .all = NULL };
}

static int add(struct image_uses *u, const char *what, const char *name, const char *image)
{
	struct image_use *all;
	struct image_ref ref;
	char text[SANDBOX_NAME_MAX + 32];

	if (image_ref_parse(image, &ref, NULL) < 0)
		return 0; /* of a build, which has a hold of its own */
	if (u->len >= USES_MAX)
		return -E2BIG;
	if (str_format(text, sizeof(text), "%s%s", what, name) < 0)
		return -EINVAL;
	all = realloc(u->all, (u->len + 1) * sizeof(*all));
	if (!all)
		return -ENOMEM;
	u->all = all;
	all[u->len] = (struct image_use){ .name = strdup(text), .ref = ref };
	if (!all[u->len].name)
		return -ENOMEM;
	u->len++;
	return 0;
}

static int add_sandbox(void *arg, const char *id)
{
	struct vm_config c = { .env = NULL };
	AUTO_FD dirfd = -1;
	int r;

	if (vmdir_open(id, &dirfd, NULL) < 0 || vmdir_read_config(dirfd, &c, NULL) < 0)
		return 0;
	r = add(arg, "", c.name, c.image);
	vm_config_done(&c);
	return r;
}

static int add_snapshot(struct image_uses *u, int rootfd, const char *name)
{
	char path[SANDBOX_NAME_MAX + 32];
	const char *image = NULL;
	AUTO_JSN *j = NULL;
	AUTO_BUF b;

	buf_init(&b, SNAPSHOT_MAX);
	if (name[0] == '.' || str_format(path, sizeof(path), "%s/snapshot.json", name) < 0 ||
	    fd_read_file(rootfd, path, &b) < 0)
		return 0;
	j = jsn_parse(b.p ? b.p : "", b.len, NULL);
	if (!j || jsn_str(j, "image", &image, NULL) <= 0)
		return 0;
	return add(u, "snapshot ", name, image);
}

static int add_snapshots(struct image_uses *u, struct err *e)
{
	char base[LOCAL_PATH_MAX], root[LOCAL_PATH_MAX];
	struct dirent *d;
	DIR *dir;
	int r = vmdir_base(base, e);

	if (r == 0)
		r = str_format(root, sizeof(root), "%s/snapshots", base);
	dir = r < 0 ? NULL : opendir(root);
	while (dir && r == 0 && (d = readdir(dir)))
		r = add_snapshot(u, dirfd(dir), d->d_name);
	if (dir)
		(void)closedir(dir);
	return r;
}

int image_uses_find(struct image_uses *ret, struct err *e)
{
	struct image_uses u = { .all = NULL };
	int r = vmdir_each(add_sandbox, &u, e);

	if (r == 0)
		r = add_snapshots(&u, e);
	if (r < 0) {
		image_uses_done(&u);
		return e && e->code ? r : err_set(e, ERR_INTERNAL, -r, "who uses which image");
	}
	*ret = u;
	return 0;
}

bool image_use_means(const struct image_use *u, const char *name, uint64_t version, bool newest)
{
	return strcmp(u->ref.name, name) == 0 &&
	       (u->ref.version ? u->ref.version == version : newest);
}
