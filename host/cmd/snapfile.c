/* SPDX-License-Identifier: Apache-2.0 */
#include <cJSON.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host/cli/out.h"
#include "host/cmd/cmd.h"
#include "host/cmd/common.h"
#include "host/cmd/snapshot.h"
#include "lib/fd.h"
#include "lib/jsn.h"
#include "lib/str.h"

/*
 * A snapshot to a file and back. The file gets its name when all of it is on the disk; what is there under that name is
 * replaced then, and not before. A pipe or a device is written to as it is.
 */

struct target {
	const char *name; /* "-" = standard output */
	char part[PATH_MAX];
	int fd;
};

static bool is_stdio(const char *name)
{
	return strcmp(name, "-") == 0;
}

static int open_target(struct target *t, struct err *e)
{
	struct stat st;
	int r = 0;

	t->part[0] = '\0';
	if (is_stdio(t->name)) {
		t->fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
	} else if (stat(t->name, &st) == 0 && !S_ISREG(st.st_mode)) {
		t->fd = open(t->name, O_WRONLY | O_CLOEXEC);
	} else {
		r = str_format(t->part, sizeof(t->part), "%s.part-%d", t->name, (int)getpid());
		t->fd = r < 0 ? -1 : open(t->part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	}
	if (t->fd >= 0)
		return 0;
	t->part[0] = '\0'; /* it is not ours */
	return err_set(e, ERR_IO, r < 0 ? -r : errno, "%s", t->name);
}

/* R: of what was done before. */
static int close_target(struct target *t, int r, struct err *e)
{
	if (r == 0 && t->part[0] && (fsync(t->fd) < 0 || rename(t->part, t->name) < 0))
		r = err_set(e, ERR_IO, errno, "%s", t->name);
	if (r < 0 && t->part[0])
		(void)unlink(t->part);
	fd_close(&t->fd);
	return r;
}

static int told(const struct cli *c, uint64_t bytes)
{
	const char *file = c->names[1];
	char text[OUT_SIZE_LEN];
	cJSON *j;

	if (is_stdio(file))
		return 0;
	if (!out_json_wanted()) {
		out_size((double)bytes, text);
		out_note("saved %s: %s", text, file);
		return 0;
	}
	j = cJSON_CreateObject();
	if (j && (!jsn_add_str(j, "snapshot", c->names[0]) ||
		  !jsn_add_text(j, "file", file, strlen(file)) || !jsn_add_u64(j, "bytes", bytes)))
		jsn_free(&j);
	return out_doc(j) < 0 ? c->cmd->failure : 0;
}

int cmd_snapshot_save(const struct cli *c)
{
	struct target t = { .name = c->names[1], .fd = -1 };
	struct progress p;
	struct err e = ERR_INIT;
	struct stat st = { .st_size = 0 };
	int r = 0;

	if (is_stdio(t.name) && (isatty(STDOUT_FILENO) || out_json_wanted()))
		r = err_set(
			&e, ERR_USAGE, EINVAL,
			"standard output gets the file, so it can be no terminal and has no room for a document");
	if (r == 0)
		r = open_target(&t, &e);
	if (r < 0)
		return cmd_fail(c, &e, NULL);
	out_progress(&p, "saving the snapshot");
	core_cancel_begin(&p);
	r = backend_local.snapshots->save(c->names[0], t.fd, &p, &e);
	if (r == 0 && fstat(t.fd, &st) < 0)
		st.st_size = 0;
	r = close_target(&t, r, &e);
	core_cancel_end();
	out_progress_end();
	if (r < 0 && core_cancelled())
		core_die_of(core_cancelled());
	if (r < 0 && e.errnum == EPIPE && is_stdio(t.name))
		out_die_of_pipe();
	return r < 0 ? cmd_fail(c, &e, cmd_snapshot_hint(&e, NULL)) : told(c, (uint64_t)st.st_size);
}

int cmd_snapshot_load(const struct cli *c)
{
	const char *file = c->names[0], *as = c->names_len > 1 ? c->names[1] : NULL, *hint;
	char name[SANDBOX_NAME_MAX + 1] = "";
	AUTO_FD fd = is_stdio(file) ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3)
				    : open(file, O_RDONLY | O_CLOEXEC);
	struct progress p;
	struct err e = ERR_INIT;
	int r;

	if (fd < 0) {
		(void)err_set(&e, ERR_IO, errno, "%s", file);
		return cmd_fail(c, &e, NULL);
	}
	out_progress(&p, "loading the snapshot");
	core_cancel_begin(&p);
	r = backend_local.snapshots->load(fd, as, cmd_snapshot_flags(c), &p, name, &e);
	core_cancel_end();
	out_progress_end();
	if (r < 0 && core_cancelled())
		core_die_of(core_cancelled());
	if (r == 0)
		return cmd_snapshot_tell(c, "loaded", name);
	hint = cmd_snapshot_misfit(c, r);
	if (!hint && e.code == ERR_EXISTS)
		hint = "give it another name: asb snapshot load FILE NAME";
	return cmd_fail(c, &e, hint);
}
