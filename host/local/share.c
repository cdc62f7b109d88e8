/* SPDX-License-Identifier: Apache-2.0 */
#include "host/local/share.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host/local/images.h"
#include "lib/str.h"

int share_dir(char ret[LOCAL_PATH_MAX], struct err *e)
{
	const char *env = getenv("ASB_SHARE");
	char exe[LOCAL_PATH_MAX];
	struct stat st;
	ssize_t n;
	int r;

	if (env && *env) {
		r = str_format(ret, LOCAL_PATH_MAX, "%s", env);
		if (r == 0 && env[0] != '/')
			r = -EINVAL; /* the supervisor has another working directory */
		if (r == 0 && stat(env, &st) < 0)
			r = -errno;
		return r < 0 ? err_set(e, ERR_NOT_FOUND, -r, "ASB_SHARE is %s", env) : 0;
	}
	n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
	if (n < 0)
		return err_set(e, ERR_IO, errno, "/proc/self/exe");
	exe[n] = '\0';
	for (int i = 0; i < 2; i++) { /* the file, then its folder */
		char *slash = strrchr(exe, '/');

		if (slash)
			*slash = '\0';
	}
	r = str_format(ret, LOCAL_PATH_MAX, "%s/share/asb", exe);
	if (r == 0 && (stat(ret, &st) < 0 || !S_ISDIR(st.st_mode)))
		r = -ENOENT;
	if (r < 0)
		return err_set(e, ERR_NOT_FOUND, -r,
			       "there is no folder %s/share/asb with the kernel and the "
			       "images: run `make image`, or set ASB_SHARE",
			       exe);
	return 0;
}

static int need(char ret[LOCAL_PATH_MAX], const char *dir, const char *file, struct err *e)
{
	int r = str_format(ret, LOCAL_PATH_MAX, "%s/%s", dir, file);

	if (r == 0 && access(ret, R_OK) < 0)
		r = -errno;
	if (r < 0)
		return err_set(e, r == -ENOENT ? ERR_NOT_FOUND : ERR_DENIED, -r,
			       "%s/%s (made by `make image`)", dir, file);
	return 0;
}

static int find_blob(const char *image, struct share *s, struct err *e)
{
	int r = images_blob(image + sizeof(SHARE_BLOB) - 1, s->rootfs, e);

	if (r == 0 && access(s->rootfs, R_OK) < 0)
		r = err_set(e, ERR_NOT_FOUND, errno, "%s", s->rootfs);
	return r == 0 ? str_format(s->image, sizeof(s->image), "%s", image) : r;
}

static int find_image(const char *image, struct share *s, struct err *e)
{
	struct image *i = malloc(sizeof(*i));
	struct image_ref ref;
	int r = i ? image_ref_parse(image, &ref, e) : err_set(e, ERR_INTERNAL, ENOMEM, "the image");

	if (r == 0)
		r = images_find(&ref, i, e);
	if (r == 0) {
		memcpy(s->rootfs, i->rootfs, sizeof(s->rootfs));
		r = str_format(s->image, sizeof(s->image), "%s:%llu", i->name,
			       (unsigned long long)i->version);
	}
	free(i);
	return r;
}

int share_find(const char *image, struct share *ret, struct err *e)
{
	int r = share_dir(ret->dir, e);

	if (r < 0)
		return r;
	r = need(ret->kernel, ret->dir, "vmlinux", e);
	if (r == 0)
		r = need(ret->initrd, ret->dir, "guest.cpio", e);
	if (r == 0)
		r = need(ret->upper, ret->dir, "upper.qcow2", e);
	if (r == 0)
		r = str_starts(image, SHARE_BLOB) ? find_blob(image, ret, e)
						  : find_image(image, ret, e);
	return r;
}
