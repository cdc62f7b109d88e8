/* SPDX-License-Identifier: Apache-2.0 */
#include <cJSON.h>
#include <errno.h>
#include <unistd.h>

#include "host/cli/out.h"
#include "host/cmd/cmd.h"
#include "host/cmd/common.h"
#include "lib/fd.h"
#include "lib/jsn.h"

#define LOG_MAX (64U << 20)

static int copy(int fd, struct err *e)
{
	char buf[4096];

	for (;;) {
		ssize_t k = read(fd, buf, sizeof(buf));

		if (k < 0 && errno == EINTR)
			continue;
		if (k < 0)
			return err_set(e, ERR_IO, errno, "reading the log");
		if (k == 0)
			return 0;
		if (out_bytes(buf, (size_t)k) < 0)
			return -EIO;
	}
}

static int document(const char *name, int fd, struct err *e)
{
	cJSON *j = cJSON_CreateObject();
	AUTO_BUF b;
	int r;

	buf_init(&b, LOG_MAX);
	r = fd_read_all(fd, &b);
	if (r < 0 && r != -ENOSPC) {
		cJSON_Delete(j);
		return err_set(e, ERR_IO, -r, "reading the log");
	}
	if (j &&
	    (!jsn_add_str(j, "name", name) || !jsn_add_text(j, "log", b.p ? b.p : "", b.len))) {
		cJSON_Delete(j);
		j = NULL;
	}
	return out_doc(j);
}

int cmd_logs(const struct cli *c)
{
	struct core_named n;
	struct err e = ERR_INIT;
	AUTO_FD fd = -1;
	int r = core_find(c->names[0], &n, &e);

	if (r < 0)
		return cmd_fail(c, &e, cmd_hint(&e, NULL));
	r = n.backend->open_log ? n.backend->open_log(n.record.microvm_id, &fd, &e)
				: cmd_unsupported(n.backend, "show logs", &e);
	core_named_done(&n);
	if (r == -ENOENT)
		(void)err_set(&e, ERR_NOT_FOUND, 0, "there is no log of '%s'", c->names[0]);
	if (r == 0)
		r = out_json_wanted() ? document(c->names[0], fd, &e) : copy(fd, &e);
	if (r < 0 && !e.code)
		return c->cmd->failure; /* told already: standard output */
	return r < 0 ? cmd_fail(c, &e, cmd_hint(&e, c->names[0])) : 0;
}
