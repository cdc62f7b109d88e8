/* SPDX-License-Identifier: Apache-2.0 */
#include "find.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/str.h"

static int try_dir(const char *dir, size_t n, const char *name, char *out, size_t size)
{
	int r = str_format(out, size, "%.*s/%s", (int)n, n ? dir : ".", name);

	if (r < 0)
		return r;
	return access(out, X_OK) < 0 ? -ENOENT : 0;
}

/* DIRS: separated by colons. */
static int try_dirs(const char *dirs, const char *name, char *out, size_t size)
{
	int r = -ENOENT;

	while (r < 0 && *dirs) {
		size_t n = strcspn(dirs, ":");

		r = try_dir(dirs, n, name, out, size);
		dirs += n + (dirs[n] == ':');
	}
	return r;
}

int find_program(const char *name, char *out, size_t size)
{
	char self[PATH_MAX];
	ssize_t k = readlink("/proc/self/exe", self, sizeof(self) - 1);
	const char *path = getenv("PATH");
	char *slash;

	if (k > 0) {
		self[k] = '\0';
		slash = strrchr(self, '/');
		if (slash && try_dir(self, (size_t)(slash - self), name, out, size) == 0)
			return 0;
	}
	if (try_dirs("/usr/local/bin:/opt/asb/bin", name, out, size) == 0)
		return 0;
	return try_dirs(path ? path : "", name, out, size);
}
