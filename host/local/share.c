/* SPDX-License-Identifier: Apache-2.0 */
#include "host/local/share.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/fd.h"
#include "lib/jsn.h"
#include "lib/str.h"

#define IMAGE_JSON_MAX 65536

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

/* "base:2" -> "base", 2; without a version 0. Only plain names: it becomes part of a path. */
static int split_image(const char *image, char name[64], uint64_t *ret_version, struct err *e)
{
	const char *colon = strchr(image, ':');
	size_t n = colon ? (size_t)(colon - image) : strlen(image);

	*ret_version = 0;
	if (n == 0 || n >= 64 || image[0] == '.' ||
	    strspn(image, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") <
		    n ||
	    (colon && str_to_u64(colon + 1, 1, UINT32_MAX, ret_version) < 0)) {
		(void)err_set(e, ERR_INVALID, 0,
			      "'%.100s' is not the name of a local image (NAME or NAME:VERSION)",
			      image);
		return -EINVAL;
	}
	memcpy(name, image, n);
	name[n] = '\0';
	return 0;
}

static int read_image(const char *dir, const char *name, uint64_t version, struct share *s,
		      struct err *e)
{
	AUTO_BUF b;
	AUTO_JSN *j = NULL;
	const char *rootfs = "rootfs.erofs";
	char path[LOCAL_PATH_MAX];
	uint64_t have = 0;
	int r = str_format(path, sizeof(path), "%s/image.json", dir);

	buf_init(&b, IMAGE_JSON_MAX);
	if (r == 0)
		r = fd_read_file(AT_FDCWD, path, &b);
	if (r == -ENOENT)
		return err_set(e, ERR_NOT_FOUND, ENOENT, "there is no local image named '%s' (%s)",
			       name, path);
	if (r < 0)
		return err_set(e, ERR_IO, -r, "%s", path);
	j = jsn_parse(b.p ? b.p : "", b.len, e);
	if (!j || jsn_str(j, "rootfs", &rootfs, e) < 0 ||
	    jsn_u64(j, "version", 1, UINT32_MAX, &have, e) < 0)
		return err_wrap(e, "%s", path);
	if (version && version != have)
		return err_set(e, ERR_NOT_FOUND, ENOENT,
			       "the local image '%s' is there in version %llu, not %llu", name,
			       (unsigned long long)have, (unsigned long long)version);
	if (strchr(rootfs, '/') || rootfs[0] == '.')
		return err_set(e, ERR_INVALID, EINVAL, "%s: \"rootfs\" must be a file beside it",
			       path);
	return need(s->rootfs, dir, rootfs, e);
}

int share_find(const char *image, struct share *ret, struct err *e)
{
	char name[64], dir[LOCAL_PATH_MAX];
	uint64_t version;
	int r = split_image(image, name, &version, e);

	if (r == 0)
		r = share_dir(ret->dir, e);
	if (r < 0)
		return r;
	r = str_format(dir, sizeof(dir), "%s/images/%s", ret->dir, name);
	if (r < 0)
		return err_set(e, ERR_INVALID, -r, "%s", ret->dir);
	r = need(ret->kernel, ret->dir, "vmlinux", e);
	if (r == 0)
		r = need(ret->initrd, ret->dir, "guest.cpio", e);
	if (r == 0)
		r = need(ret->upper, ret->dir, "upper.qcow2", e);
	if (r == 0)
		r = read_image(dir, name, version, ret, e);
	return r;
}
