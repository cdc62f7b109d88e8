/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "app.h"
#include "lib/b64.h"
#include "lib/fd.h"
#include "lib/jsn.h"
#include "lib/proto.h"
#include "limits.h"
#include "parts.h"
#include "pyval.h"

/*
 * POST /v1/fs/read and /v1/fs/write. Only regular files: opening a FIFO or a device could block,
 * and reading one never ends. Relative paths start where commands start. Symbolic links are
 * followed.
 *
 * Reading: the answer's length is the size at the time of opening; the content is read and encoded
 * while it is sent, a little at a time. Files that say that they are empty (/proc) are read whole
 * first, up to SMALL_MAX.
 *
 * Writing goes into the file that is there, as the original does: inode, mode, owner, hard links
 * and the target of a symbolic link stay what they are, which a rename would change. So that a full
 * disk does not cost the old content, room for the new one is reserved (fallocate(2)) before the
 * first old byte is overwritten, and the file is cut to its new length at the end, not at the
 * beginning. A crash in the middle leaves a mixture: whoever wants atomic replacement writes beside
 * and renames.
 */

#define SMALL_MAX (1UL << 20)

static const char not_regular[] = "not a regular file: %s";

struct job {
	struct app *a;
	struct httpd_req *r; /* NULL when the client has gone */
	cJSON *body;	     /* owned; DATA points into it */
	char *path;	     /* owned, absolute */
	int fd;		     /* owned */
	const char *data;
	size_t len, done;
	struct loop_timer next; /* writing */
	struct buf small;	/* reading */
	struct parts parts;
};

static void free_job(struct job *j)
{
	loop_disarm(&j->next);
	buf_done(&j->small);
	fd_close(&j->fd);
	cJSON_Delete(j->body);
	free(j->path);
	free(j);
}

static void on_end(void *arg)
{
	struct job *j = arg;

	j->r = NULL;
	if (!j->next.loop) /* a write goes on without its client */
		free_job(j);
}

/* Takes BODY. NULL when R has been answered. */
static struct job *new_job(struct httpd_req *r, cJSON *body)
{
	struct app *a = httpd_server_arg(r);
	const char *path = jsn_get(body, "path")->valuestring;
	AUTO_BUF full = { .cap = 64UL << 10 };
	struct job *j = calloc(1, sizeof(*j));
	int ok = 0;

	if (path[0] != '/')
		ok = buf_addf(&full, "%s/", envbase_home(a->env.vars));
	if (ok == 0)
		ok = buf_adds(&full, path);
	if (!j || ok < 0) {
		free(j);
		cJSON_Delete(body);
		httpd_reply_error(r, 503, "out of memory");
		return NULL;
	}
	*j = (struct job){ .a = a, .r = r, .body = body, .fd = -1, .path = buf_take(&full) };
	buf_init(&j->small, SMALL_MAX);
	return j;
}

/* The path as the caller wrote it, for messages. */
static const char *given(const struct job *j)
{
	return jsn_get(j->body, "path")->valuestring;
}

/* --- read --- */
static ssize_t on_pull(void *arg, char *p, size_t max)
{
	struct job *j = arg;

	return parts_pull(&j->parts, p, max);
}

static void send_file(struct job *j, uint64_t size)
{
	static const char head[] = "{\"content\":\"", tail[] = "\",\"encoding\":\"base64\"}";

	parts_text(&j->parts, head, sizeof(head) - 1);
	if (j->small.len)
		parts_base64(&j->parts, j->small.p, j->small.len);
	else
		parts_file(&j->parts, j->fd, size);
	parts_text(&j->parts, tail, sizeof(tail) - 1);
	httpd_reply_stream(j->r, 200, "application/json", parts_length(&j->parts), on_pull, j);
}

/* Opens for reading; answers and returns false when that fails. */
static bool open_to_read(struct job *j, struct stat *st)
{
	j->fd = j->path ? open(j->path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY) : -1;
	if (j->fd < 0 || fstat(j->fd, st) < 0) {
		if (errno == ENOENT)
			httpd_reply_error(j->r, 404, "no such file: %s", given(j));
		else if (errno == ENXIO || errno == ENODEV)
			httpd_reply_error(j->r, 400, not_regular, given(j));
		else
			py_os_error(j->r, 400, errno, given(j));
		return false;
	}
	if (S_ISDIR(st->st_mode))
		py_os_error(j->r, 400, EISDIR, given(j));
	else if (!S_ISREG(st->st_mode))
		httpd_reply_error(j->r, 400, not_regular, given(j));
	else if ((uint64_t)st->st_size > PROTO_MAX_BODY)
		httpd_reply_error(j->r, 413, "file too large: %s has %lld bytes, the limit is %lu",
				  given(j), (long long)st->st_size, PROTO_MAX_BODY);
	else
		return true;
	return false;
}

static void read_file(struct job *j)
{
	struct stat st;
	int r = 0;

	if (!open_to_read(j, &st))
		return;
	if (st.st_size == 0)
		r = fd_read_all(j->fd, &j->small);
	if (r == -ENOSPC)
		httpd_reply_error(j->r, 413, "file too large: %s", given(j));
	else if (r < 0)
		py_os_error(j->r, 400, -r, given(j));
	else
		send_file(j, (uint64_t)st.st_size);
}

void route_fs_read(struct httpd_req *r)
{
	static const struct py_field fields[] = { { "path", PY_STRING, true },
						  { NULL, PY_STRING, false } };
	cJSON *body = py_body(r, fields);
	struct job *j = body ? new_job(r, body) : NULL;

	if (!j)
		return;
	if (app_enter(r, on_end, j) < 0)
		free_job(j);
	else
		read_file(j);
}

/* --- write --- */
static void finish_write(struct job *j, int errnum)
{
	if (errnum == 0 && ftruncate(j->fd, (off_t)j->len) < 0)
		errnum = errno;
	if (!j->r) {
		free_job(j);
		return;
	}
	if (errnum) {
		py_os_error(j->r, 400, errnum, given(j));
	} else {
		cJSON *o = cJSON_CreateObject();

		if (o && !jsn_add_u64(o, "bytes_written", j->len))
			jsn_free(&o);
		httpd_reply_json(j->r, 200, o);
	}
}

static void write_some(struct loop_timer *t)
{
	struct job *j = t->arg;
	size_t n = j->len - j->done < LIMIT_WRITE_CHUNK ? j->len - j->done : LIMIT_WRITE_CHUNK;
	ssize_t k = n ? pwrite(j->fd, j->data + j->done, n, (off_t)j->done) : 0;

	if (k < 0 && errno != EINTR) {
		finish_write(j, errno);
		return;
	}
	j->done += k > 0 ? (size_t)k : 0;
	if (j->done == j->len)
		finish_write(j, 0);
	else
		loop_arm(&j->a->loop, &j->next, 0);
}

/* Content as bytes: base64 is decoded in place. 0 or -EINVAL. */
static int decode_content(struct job *j)
{
	cJSON *c = jsn_get(j->body, "content");
	const cJSON *enc = jsn_get(j->body, "encoding");

	j->data = c->valuestring;
	j->len = strlen(c->valuestring);
	if (enc && strcmp(enc->valuestring, "base64") != 0)
		return 0; /* text */
	return b64_decode(c->valuestring, j->len, c->valuestring, &j->len);
}

static int make_parents(const char *path)
{
	const char *slash = strrchr(path, '/');
	AUTO_BUF dir = { .cap = 64UL << 10 };
	int r;

	if (!slash || slash == path)
		return 0;
	r = buf_add(&dir, path, (size_t)(slash - path));
	return r < 0 ? r : fd_mkdirs(dir.p, 0777); /* less the umask */
}

/* Opens the file that J names and makes sure that the content will fit. 0, or a positive errno; -1
 * when answered. */
static int open_to_write(struct job *j)
{
	struct stat st;
	int r = j->path ? make_parents(j->path) : -ENOMEM;

	if (r < 0)
		return -r;
	j->fd = open(j->path, O_WRONLY | O_CREAT | O_NONBLOCK | O_CLOEXEC | O_NOCTTY, 0666);
	if (j->fd < 0 && errno != ENXIO && errno != ENODEV)
		return errno;
	if (j->fd < 0 || (fstat(j->fd, &st) == 0 && !S_ISREG(st.st_mode))) {
		httpd_reply_error(j->r, 400, not_regular, given(j));
		return -1;
	}
	/* File systems without fallocate find out while writing. */
	if (j->len && fallocate(j->fd, FALLOC_FL_KEEP_SIZE, 0, (off_t)j->len) < 0 &&
	    (errno == ENOSPC || errno == EDQUOT || errno == EFBIG))
		return errno;
	return 0;
}

static void write_file(struct job *j)
{
	int r;

	if (decode_content(j) < 0) {
		httpd_reply_error(j->r, 400, "invalid base64 content");
		return;
	}
	r = open_to_write(j);
	if (r > 0)
		py_os_error(j->r, 400, r, given(j));
	if (r)
		return;
	j->next.fn = write_some;
	j->next.arg = j;
	write_some(&j->next);
}

void route_fs_write(struct httpd_req *r)
{
	static const struct py_field fields[] = { { "path", PY_STRING, true },
						  { "content", PY_STRING, true },
						  { "encoding", PY_STRING, false },
						  { NULL, PY_STRING, false } };
	cJSON *body;
	struct job *j;

	if (!app_admits(r))
		return;
	body = py_body(r, fields);
	j = body ? new_job(r, body) : NULL;
	if (!j)
		return;
	if (app_enter(r, on_end, j) < 0)
		free_job(j);
	else
		write_file(j);
}
