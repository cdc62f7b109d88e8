/* SPDX-License-Identifier: Apache-2.0 */
#include "host/local/accel.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host/local/vmdir.h"
#include "lib/fd.h"
#include "lib/jsn.h"
#include "lib/pretty.h"
#include "lib/str.h"

#define FILE_MAX    65536
#define VERDICT_MAX 64 /* then it begins anew */

static int file_path(char ret[LOCAL_PATH_MAX])
{
	char base[LOCAL_PATH_MAX];
	int r = vmdir_base(base, NULL);

	return r < 0 ? r : str_format(ret, LOCAL_PATH_MAX, "%s/accel.json", base);
}

static int make_key(const char *qemu, const char *kernel, struct buf *b)
{
	const char *const files[] = { qemu, kernel };
	int r = 0;

	for (size_t i = 0; i < ARRAY_LEN(files) && r == 0; i++) {
		struct stat st;

		if (stat(files[i], &st) < 0)
			return -errno;
		r = buf_addf(b, "%s%s|%lld|%lld.%09ld", i ? " " : "", files[i],
			     (long long)st.st_size, (long long)st.st_mtim.tv_sec,
			     st.st_mtim.tv_nsec);
	}
	return r;
}

/* What is remembered; an empty object when there is nothing, or nothing that can be read. */
static cJSON *load(const char *path)
{
	AUTO_BUF b;
	cJSON *j = NULL;

	buf_init(&b, FILE_MAX);
	if (fd_read_file(AT_FDCWD, path, &b) == 0 && b.p)
		j = jsn_parse(b.p, b.len, NULL);
	if (j && cJSON_IsObject(j))
		return j;
	cJSON_Delete(j);
	return cJSON_CreateObject();
}

enum accel accel_choose(const char *qemu, const char *kernel)
{
	const char *env = getenv("ASB_ACCEL"), *verdict = "";
	char path[LOCAL_PATH_MAX];
	AUTO_JSN *j = NULL;
	AUTO_FD fd = -1;
	AUTO_BUF key;

	buf_init(&key, 2 * LOCAL_PATH_MAX + 128);
	if (env && !strcmp(env, "tcg"))
		return ACCEL_TCG;
	if (env && !strcmp(env, "kvm"))
		return ACCEL_KVM;
	fd = open("/dev/kvm", O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return ACCEL_TCG;
	if (file_path(path) < 0 || make_key(qemu, kernel, &key) < 0)
		return ACCEL_KVM_UNPROVEN;
	j = load(path);
	if (!j || jsn_str(j, key.p, &verdict, NULL) <= 0)
		return ACCEL_KVM_UNPROVEN;
	return strcmp(verdict, "kvm") == 0 ? ACCEL_KVM : ACCEL_TCG;
}

void accel_remember(const char *qemu, const char *kernel, enum accel verdict)
{
	char path[LOCAL_PATH_MAX];
	AUTO_JSN *j = NULL;
	AUTO_BUF key;
	AUTO_BUF text;

	buf_init(&key, 2 * LOCAL_PATH_MAX + 128);
	buf_init(&text, FILE_MAX);
	if (file_path(path) < 0 || make_key(qemu, kernel, &key) < 0)
		return;
	j = load(path);
	if (j && cJSON_GetArraySize(j) >= VERDICT_MAX) {
		cJSON_Delete(j);
		j = cJSON_CreateObject();
	}
	if (!j)
		return;
	cJSON_DeleteItemFromObjectCaseSensitive(j, key.p);
	if (jsn_add_str(j, key.p, verdict == ACCEL_TCG ? "tcg" : "kvm") &&
	    pretty_json(j, &text) == 0) {
		fd_replace_collect(
			path); /* one that finds another at it is asked again, that is all */
		ignore_result(fd_replace_file(path, text.p, text.len, 0600));
	}
}
