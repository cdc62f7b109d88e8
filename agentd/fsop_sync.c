/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fsop.h"
#include "lib/fd.h"
#include "lib/jsn.h"
#include "lib/str.h"
#include "worker.h"

/* fsync(2) of the file, and of the directory, without which its name may not survive. */
static int sync_both(char *path)
{
	char *slash = strrchr(path, '/');
	AUTO_FD fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	AUTO_FD dir = -1;

	if (fd < 0 || fsync(fd) < 0)
		return -errno;
	slash[1] = '\0';
	dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return dir < 0 || fsync(dir) < 0 ? -errno : 0;
}

int fsop_sync(int argc, char **argv)
{
	uint64_t size = 0, status = 0;
	cJSON *o;
	int r;

	if (argc != 4 || str_to_u64(argv[2], 0, UINT64_MAX, &size) < 0 ||
	    str_to_u64(argv[3], 200, 201, &status) < 0)
		return EXIT_FAILURE;
	r = sync_both(argv[0]);
	if (r < 0)
		return work_error(0, -r, "%s", argv[1]);
	o = cJSON_CreateObject();
	if (o && !(jsn_add_u64(o, "size", size) && fsop_add_bytes(o, "path", argv[1])))
		jsn_free(&o);
	return work_reply((int)status, o);
}
