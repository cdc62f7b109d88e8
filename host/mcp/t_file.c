/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host/agent/ask.h"
#include "host/agent/compat.h"
#include "host/agent/copy.h"
#include "host/agent/stream.h"
#include "host/mcp/policy.h"
#include "host/mcp/tools.h"
#include "lib/b64.h"
#include "lib/fd.h"
#include "lib/str.h"

/* The content of files, to the model and to files of this machine. */

#define CHUNK (64U << 10)

static int open_file(struct mcp_job *j, const struct core_named *n, const char *path, bool upload,
		     struct stream **ret, struct err *e)
{
	struct stream_spec s = { .backend = n->backend,
				 .id = n->record.microvm_id,
				 .method = upload ? "PUT" : "GET",
				 .upload = upload,
				 .cancel = j->progress.cancel };
	AUTO_BUF b;

	buf_init(&b, CHUNK);
	if (!path || fs_request(&b, "/v1/files?path=", path, upload ? "&parents=1" : "") < 0)
		return err_set(e, ERR_INVALID, ENAMETOOLONG, "the path");
	s.path = b.p;
	return stream_open(&s, ret, e);
}

/* --- read --- */

struct reading {
	struct buf kept;
	uint64_t skip, seen; /* bytes before what is wanted; bytes that came in all */
};

/* Until the end, or until there is more than is wanted. */
static int read_part(struct stream *s, struct reading *r)
{
	char p[4096];
	ssize_t n;

	while ((n = stream_read(s, p, sizeof(p))) > 0) {
		size_t from = r->seen < r->skip ? (size_t)(r->skip - r->seen) : 0, k;

		r->seen += (uint64_t)n;
		if (from >= (size_t)n)
			continue;
		k = (size_t)n - from;
		if (k > r->kept.cap - r->kept.len)
			k = r->kept.cap - r->kept.len;
		if (buf_add(&r->kept, p + from, k) < 0)
			return -ENOMEM;
		if (r->kept.len == r->kept.cap)
			return 1;
	}
	return (int)n;
}

/* By an agent that has whole files only (compat.h). E is of the attempt before. */
static int read_whole(const struct mcp_job *j, const struct core_named *n, const char *path,
		      struct reading *r, struct err *e)
{
	const struct compat_file f = { .backend = n->backend,
				       .id = n->record.microvm_id,
				       .path = path,
				       .cancel = j->progress.cancel };
	AUTO_BUF all = { .cap = COMPAT_FILE_MAX + 4 };
	size_t left, room = r->kept.cap;
	int k;

	*e = (struct err)ERR_INIT;
	k = compat_read(&f, &all, e);
	if (k < 0)
		return k;
	r->seen = all.len;
	left = all.len > r->skip ? all.len - (size_t)r->skip : 0;
	return left ? buf_add(&r->kept, all.p + r->skip, left < room ? left : room) : 0;
}

/* The size of the file, as far as it has one; 0 else. */
static uint64_t size_of(const struct core_named *n, const char *path)
{
	cJSON *body = cJSON_CreateObject();
	AUTO_JSN *doc = NULL;
	uint64_t size = 0;

	if (body && !jsn_add_str(body, "path", path)) {
		cJSON_Delete(body);
		return 0;
	}
	if (fs_post(n, "/v1/fs/stat", body, &doc, NULL) == 0)
		ignore_result(jsn_u64(doc, "size", 0, 1ULL << 53, &size, NULL)); /* else 0 */
	return size;
}

static bool is_text(const char *p, size_t n)
{
	return n == 0 || (!memchr(p, '\0', n) && str_is_utf8(p, n));
}

/* TOTAL: bytes of the file from the offset on. */
static int tell_content(struct mcp_job *j, const struct reading *r, uint64_t total, bool base64)
{
	const char *p = r->kept.p ? r->kept.p : "";
	size_t cap = job_cap(j), k = mcp_cut(p, r->kept.len, cap);
	AUTO_BUF coded;
	cJSON *t;
	bool good;

	base64 = base64 || !is_text(p, k);
	buf_init(&coded, B64_LEN(MCP_TEXT_MAX) + 1);
	if (base64) {
		k = r->kept.len > cap / 4 * 3 ? cap / 4 * 3 : r->kept.len;
		if (b64_append(&coded, p, k) < 0)
			return -ENOMEM;
	}
	t = cJSON_AddObjectToObject(j->data, "content");
	good = t &&
	       (base64 ? jsn_add_str(t, "text", coded.p ? coded.p : "")
		       : jsn_add_text(t, "text", p, k)) &&
	       jsn_add_bool(t, "truncated", k < total) &&
	       jsn_add_str(j->data, "encoding", base64 ? "base64" : "text");
	if (good && k < total)
		good = jsn_add_u64(t, "total_bytes", base64 ? B64_LEN(total) : total) &&
		       jsn_add_u64(t, "returned_bytes", base64 ? coded.len : k) &&
		       jsn_add_u64(j->data, "next_offset", r->skip + k);
	return good && jsn_add_u64(j->data, "size", r->skip + total) ? 0 : -ENOMEM;
}

int tool_fs_read(struct mcp_job *j, struct err *e)
{
	char *path = fs_path(j, job_str(j, "path"));
	struct reading rd = { .skip = job_num(j, "offset") > 0 ? (uint64_t)job_num(j, "offset")
							       : 0 };
	struct stream *s = NULL;
	struct core_named n;
	uint64_t size;
	int r = job_reach(j, &n, "SandboxError", e);

	if (r < 0) {
		free(path);
		return r;
	}
	buf_init(&rd.kept, job_cap(j) + 4);
	r = open_file(j, &n, path, false, &s, e);
	if (r == 0)
		r = read_part(s, &rd);
	if (s && r < 0) {
		r = stream_end(s, NULL, e);
		r = r < 0 ? r : -EIO;
	}
	stream_free(s);
	if (r == -ENOSYS)
		r = read_whole(j, &n, path, &rd, e);
	if (r < 0)
		j->code =
			e->code == ERR_NOT_FOUND || e->code == ERR_DENIED || e->code == ERR_INVALID
				? "AgentError"
				: NULL;
	size = r == 1 ? size_of(&n, path) : rd.seen;
	core_named_done(&n);
	if (r >= 0) {
		if (size < rd.skip + rd.kept.len)
			size = rd.skip + rd.kept.len;
		r = jsn_add_str(j->data, "path", path)
			    ? tell_content(j, &rd, size - rd.skip,
					   !strcmp(job_str(j, "encoding"), "base64"))
			    : -ENOMEM;
	}
	buf_done(&rd.kept);
	free(path);
	return r;
}

/* --- write --- */

static int put(struct mcp_job *j, const struct core_named *n, const char *path, const void *p,
	       size_t len, struct err *e)
{
	const struct compat_file f = { .backend = n->backend,
				       .id = n->record.microvm_id,
				       .path = path,
				       .cancel = j->progress.cancel };
	struct stream *s = NULL;
	int r = open_file(j, n, path, true, &s, e);

	if (r == 0) {
		ignore_result(stream_write(s, p, len)); /* stream_end tells */
		r = stream_end(s, NULL, e);
	}
	stream_free(s);
	if (r == -ENOSYS) {
		*e = (struct err)ERR_INIT;
		r = compat_write(&f, p, len, e);
	}
	return r;
}

int tool_fs_write(struct mcp_job *j, struct err *e)
{
	const char *content = job_str(j, "content");
	char *path = fs_path(j, job_str(j, "path")), *raw = NULL;
	struct core_named box;
	size_t n;
	int r = job_bytes(j, "content", &raw, &n, e);

	if (r == 0)
		r = job_reach(j, &box, "SandboxError", e);
	if (r == 0) {
		r = put(j, &box, path, raw ? raw : content, n, e);
		core_named_done(&box);
		if (r < 0 && e->code != ERR_UNAVAILABLE)
			j->code = "AgentError";
	}
	if (r == 0 &&
	    (!jsn_add_str(j->data, "path", path) || !jsn_add_u64(j->data, "bytes_written", n)))
		r = -ENOMEM;
	free(raw);
	free(path);
	return r;
}

/* --- one file from here, and to here --- */

static int send_file(struct mcp_job *j, struct stream *s, int fd, uint64_t size, uint64_t *ret)
{
	char p[4096];
	ssize_t n;
	int r = 0;

	while ((n = read(fd, p, sizeof(p))) > 0 && r == 0) {
		r = stream_write(s, p, (size_t)n);
		*ret += (uint64_t)n;
		job_bytes_done(j, *ret, size);
	}
	return n < 0 ? -errno : r == -EPIPE ? 0 : r;
}

static int tell_copied(struct mcp_job *j, const char *a, const char *x, const char *b,
		       const char *y, uint64_t n)
{
	return jsn_add_str(j->data, a, x) && jsn_add_str(j->data, b, y) &&
			       jsn_add_u64(j->data, "bytes_written", n)
		       ? 0
		       : -ENOMEM;
}

int tool_fs_from_host(struct mcp_job *j, struct err *e)
{
	char *host = NULL, *dest = fs_path(j, job_str(j, "dest"));
	AUTO_FD fd = -1;
	struct stream *s = NULL;
	struct core_named n;
	struct stat st = { .st_size = 0 };
	uint64_t bytes = 0;
	int r = policy_path(j, job_str(j, "host_path"), &host, e);

	if (r == 0) {
		fd = open(host, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
		if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
			r = job_fail(j, e, "not_found", "%.300s is no file that can be read", host);
	}
	if (r == 0)
		r = job_reach(j, &n, "SandboxError", e);
	if (r == 0) {
		r = open_file(j, &n, dest, true, &s, e);
		if (r == 0)
			r = send_file(j, s, fd, (uint64_t)st.st_size, &bytes);
		if (s && r == 0)
			r = stream_end(s, NULL, e);
		else if (s && !e->code)
			(void)err_set(e, ERR_IO, -r, "%.300s", host);
		stream_free(s);
		core_named_done(&n);
	}
	if (r == 0)
		r = tell_copied(j, "host_path", host, "dest", dest, bytes);
	free(host);
	free(dest);
	return r;
}

/* Into a new file beside HOST, which takes its name when it is whole. */
static int receive_file(struct mcp_job *j, struct stream *s, const char *host, uint64_t *ret,
			struct err *e)
{
	AUTO_BUF tmp;
	char p[4096];
	ssize_t n = 0;
	int fd, r = 0;

	buf_init(&tmp, 8192);
	if (buf_addf(&tmp, "%s.asb-XXXXXX", host) < 0)
		return err_set(e, ERR_INVALID, ENAMETOOLONG, "the path");
	fd = mkostemp(tmp.p, O_CLOEXEC);
	if (fd < 0)
		return err_set(e, ERR_IO, errno, "%.300s", host);
	while (r == 0 && (n = stream_read(s, p, sizeof(p))) > 0) {
		r = fd_write_all(fd, p, (size_t)n);
		*ret += (uint64_t)n;
		job_bytes_done(j, *ret, 0);
	}
	if (r < 0)
		(void)err_set(e, ERR_IO, -r, "%.300s", host);
	else if (n < 0)
		r = stream_end(s, NULL, e) < 0 ? (int)n : -EIO;
	if (r == 0 && (fchmod(fd, 0644) < 0 || rename(tmp.p, host) < 0))
		r = err_set(e, ERR_IO, errno, "%.300s", host);
	if (r < 0)
		(void)unlink(tmp.p);
	fd_close(&fd);
	return r;
}

int tool_fs_to_host(struct mcp_job *j, struct err *e)
{
	char *host = NULL, *src = fs_path(j, job_str(j, "src")), *parent = NULL;
	struct stream *s = NULL;
	struct core_named n;
	uint64_t bytes = 0;
	int r = policy_path(j, job_str(j, "host_path"), &host, e);

	if (r == 0) {
		parent = strdup(host);
		r = parent ? fd_mkdirs(dirname(parent), 0755) : -ENOMEM;
		if (r < 0)
			(void)err_set(e, ERR_IO, -r, "%.300s", host);
	}
	if (r == 0)
		r = job_reach(j, &n, "SandboxError", e);
	if (r == 0) {
		core_cancel_begin(&j->progress);
		r = open_file(j, &n, src, false, &s, e);
		if (r == 0)
			r = receive_file(j, s, host, &bytes, e);
		core_cancel_end();
		stream_free(s);
		core_named_done(&n);
	}
	if (r == 0)
		r = tell_copied(j, "src", src, "host_path", host, bytes);
	free(parent);
	free(host);
	free(src);
	return r;
}

/* --- whole directories --- */

static void on_copied(void *arg, uint64_t bytes)
{
	struct mcp_job *j = arg;

	job_bytes_done(j, bytes, 0);
}

int tool_fs_tree(struct mcp_job *j, struct err *e)
{
	bool in = j->tool->arg != NULL;
	char *host = NULL, *guest = fs_path(j, job_str(j, in ? "dest" : "src"));
	struct copy_count count = { 0 };
	struct core_named n;
	int r = guest ? policy_path(j, job_str(j, "host_path"), &host, e) : -ENOMEM;

	if (r == 0)
		r = job_reach(j, &n, "SandboxError", e);
	if (r == 0) {
		struct copy_spec s = { .backend = n.backend,
				       .id = n.record.microvm_id,
				       .guest = guest,
				       .local = host,
				       .progress = on_copied,
				       .arg = j };

		core_cancel_begin(&j->progress);
		s.cancel = j->progress.cancel;
		r = in ? copy_in(&s, &count, e) : copy_out(&s, &count, e);
		core_cancel_end();
		core_named_done(&n);
	}
	if (r == 0 &&
	    (!jsn_add_u64(j->data, "members", count.members) ||
	     tell_copied(j, "host_path", host, in ? "dest" : "src", guest, count.bytes) < 0))
		r = -ENOMEM;
	free(host);
	free(guest);
	return r;
}
