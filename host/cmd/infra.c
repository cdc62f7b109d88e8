/* SPDX-License-Identifier: Apache-2.0 */
#include <cJSON.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "host/cli/out.h"
#include "host/cmd/cmd.h"
#include "host/cmd/common.h"
#include "host/infra/config.h"
#include "lib/fd.h"
#include "lib/jsn.h"

/* A file that is there already is never touched, not even by two of us at once. */
static int write_new(const char *path, struct err *e)
{
	AUTO_FD fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	int r;

	if (fd < 0 && errno == EEXIST)
		return err_set(e, ERR_EXISTS, 0, "%s is there already", path);
	if (fd < 0)
		return err_set(e, ERR_IO, errno, "cannot write %s", path);
	r = fd_write_all(fd, infra_template, strlen(infra_template));
	if (r < 0)
		(void)unlink(path);
	return r < 0 ? err_set(e, ERR_IO, -r, "cannot write %s", path) : 0;
}

int cmd_infra_init(const struct cli *c)
{
	const char *path = c->val[OPT_NEW_FILE].text;
	struct err e = ERR_INIT;
	cJSON *j;
	int r;

	if (c->val[OPT_OVERWRITE].set) {
		r = fd_replace_file(path, infra_template, strlen(infra_template), 0644);
		if (r < 0)
			r = err_set(&e, ERR_IO, -r, "cannot write %s", path);
	} else {
		r = write_new(path, &e);
	}
	if (r < 0)
		return cmd_fail(c, &e, e.code == ERR_EXISTS ? "--force replaces it" : NULL);
	if (!out_json_wanted())
		return out_line("wrote %s", path) < 0;
	j = cJSON_CreateObject();
	if (j && !jsn_add_str(j, "file", path)) {
		cJSON_Delete(j);
		j = NULL;
	}
	return out_doc(j) < 0;
}
