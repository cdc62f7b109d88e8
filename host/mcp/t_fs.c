/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host/agent/ask.h"
#include "host/mcp/tools.h"
#include "lib/str.h"

/* Names of files in a sandbox, by the agent's own routes: nothing of the image is needed. */

#define FS_PATH_MAX 4096
#define FS_LIMIT_NS (120 * 1000000000LL)

char *fs_path(const struct mcp_job *j, const char *path)
{
	AUTO_BUF b;

	buf_init(&b, FS_PATH_MAX);
	if (buf_addf(&b, "%s%s%s", path[0] == '/' ? "" : j->cfg->workdir, path[0] == '/' ? "" : "/",
		     path) < 0)
		return NULL;
	return buf_take(&b);
}

int fs_request(struct buf *b, const char *begin, const char *path, const char *rest)
{
	int r = buf_adds(b, begin);

	for (const unsigned char *p = (const unsigned char *)path; *p && r == 0; p++)
		r = strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~/",
			   *p)
			    ? buf_add(b, p, 1)
			    : buf_addf(b, "%%%02X", *p);
	return r < 0 ? r : buf_adds(b, rest);
}

int fs_post(const struct core_named *n, const char *path, cJSON *body, cJSON **ret, struct err *e)
{
	char *text = body ? cJSON_PrintUnformatted(body) : NULL;
	struct ask a = { .backend = n->backend,
			 .id = n->record.microvm_id,
			 .method = "POST",
			 .path = path,
			 .body = text,
			 .limit_ns = FS_LIMIT_NS };
	int r = text ? agent_ask(&a, ret, e) : -ENOMEM;

	free(text);
	cJSON_Delete(body);
	return r;
}

bool fs_make_workdir(const struct mcp_job *j, const struct core_named *n)
{
	cJSON *body = cJSON_CreateObject();

	if (body && jsn_add_str(body, "path", j->cfg->workdir) &&
	    jsn_add_bool(body, "parents", true))
		return fs_post(n, "/v1/fs/mkdir", body, NULL, NULL) == 0;
	cJSON_Delete(body);
	return false;
}

/* A question whose only member so far is PATH. */
static cJSON *about(const char *path)
{
	cJSON *o = cJSON_CreateObject();

	if (o && path && jsn_add_str(o, "path", path))
		return o;
	cJSON_Delete(o);
	return NULL;
}

/* Asks OP of the sandbox of J about BODY (freed), and says what it refuses as the Python project does. */
static int ask(struct mcp_job *j, const char *op, cJSON *body, cJSON **ret, struct err *e)
{
	struct core_named n;
	char path[64];
	int r = body ? job_reach(j, &n, "SandboxError", e)
		     : err_set(e, ERR_INVALID, ENAMETOOLONG, "the path");

	if (r < 0) {
		cJSON_Delete(body);
		return r;
	}
	ignore_result(str_format(path, sizeof(path), "/v1/fs/%s", op)); /* it fits */
	r = fs_post(&n, path, body, ret, e);
	core_named_done(&n);
	if (r < 0 && e->code != ERR_UNAVAILABLE && e->code != ERR_TIMEOUT)
		j->code = "fs_error";
	return r;
}

/* One question about "path" whose answer is that it was done: WORD. */
static int do_it(struct mcp_job *j, const char *op, const char *flag, const char *other,
		 const char *word, struct err *e)
{
	char *path = fs_path(j, job_str(j, "path"));
	cJSON *body = about(path);
	int r;

	if (body && ((flag && !jsn_add_bool(body, flag, true)) ||
		     (other && !jsn_add_bool(body, other, true)))) {
		cJSON_Delete(body);
		body = NULL;
	}
	r = ask(j, op, body, NULL, e);
	if (r == 0 && (!jsn_add_str(j->data, "path", path) || !jsn_add_bool(j->data, word, true)))
		r = -ENOMEM;
	free(path);
	return r;
}

int tool_fs_mkdir(struct mcp_job *j, struct err *e)
{
	return do_it(j, "mkdir", "parents", NULL, "created", e);
}

int tool_fs_remove(struct mcp_job *j, struct err *e)
{
	return do_it(j, "remove", "force", job_bool(j, "recursive") ? "recursive" : NULL, "removed",
		     e);
}

/* --- entries --- */

/* st_mode of an entry, as Python's oct() writes it. */
static bool add_mode(cJSON *o, const cJSON *entry, const char *type)
{
	static const struct {
		const char *name;
		unsigned bits;
	} types[] = { { "file", 0100000 }, { "dir", 040000 },	  { "symlink", 0120000 },
		      { "fifo", 010000 },  { "socket", 0140000 }, { "char", 020000 },
		      { "block", 060000 } };
	const char *mode = "0";
	char text[16];
	unsigned long bits;
	size_t i = 0;

	ignore_result(jsn_str(entry, "mode", &mode, NULL)); /* else 0 */
	bits = strtoul(mode, NULL, 8) & 07777;
	while (i < ARRAY_LEN(types) && strcmp(types[i].name, type) != 0)
		i++;
	if (i < ARRAY_LEN(types))
		bits |= types[i].bits;
	(void)snprintf(text, sizeof(text), "0o%lo", bits);
	return jsn_add_str(o, "mode", text);
}

static const char *entry_type(const cJSON *entry)
{
	const char *type = "";

	ignore_result(jsn_str(entry, "type", &type, NULL)); /* else unknown */
	return type;
}

static bool add_number(cJSON *o, const char *name, const cJSON *entry, const char *from,
		       double unit)
{
	double v = 0;

	ignore_result(jsn_double(entry, from, &v, NULL)); /* else 0 */
	return cJSON_AddNumberToObject(o, name, v / unit) != NULL;
}

/* KIND: what it is when links are followed. */
static bool fill_entry(cJSON *o, const cJSON *entry, const char *kind)
{
	const char *type = entry_type(entry);

	return jsn_add_bool(o, "is_dir", !strcmp(kind, "dir")) &&
	       jsn_add_bool(o, "is_symlink", !strcmp(type, "symlink")) &&
	       add_number(o, "size", entry, "size", 1) && add_mode(o, entry, type) &&
	       add_number(o, "mtime", entry, "mtime_ms", 1000);
}

static bool add_entry(cJSON *list, const cJSON *entry)
{
	const char *name = "", *error = NULL;
	cJSON *o = cJSON_CreateObject();

	if (!o || !cJSON_AddItemToArray(list, o))
		return false;
	ignore_result(jsn_str(entry, "name", &name, NULL)); /* else "" */
	if (!jsn_add_text(o, "name", name, strlen(name)))
		return false;
	if (jsn_str(entry, "error", &error, NULL) == 1 && !jsn_get(entry, "type"))
		return jsn_add_text(o, "error", error, strlen(error));
	return fill_entry(o, entry, entry_type(entry));
}

struct listed { /* sizeof a bare pointer looks like a slip to clang-tidy */
	const cJSON *entry;
};

static int by_name(const void *a, const void *b)
{
	const struct listed *p = a, *q = b;
	const char *x = "", *y = "";

	ignore_result(jsn_str(p->entry, "name", &x, NULL)); /* else "" */
	ignore_result(jsn_str(q->entry, "name", &y, NULL)); /* else "" */
	return strcmp(x, y);
}

static int add_entries(cJSON *list, const cJSON *entries)
{
	size_t n = (size_t)cJSON_GetArraySize(entries), i = 0;
	struct listed *all = calloc(n + 1, sizeof(*all));
	const cJSON *x;
	int r = all ? 0 : -ENOMEM;

	cJSON_ArrayForEach(x, entries)
	{
		if (all && cJSON_IsObject(x) && i < n)
			all[i++].entry = x;
	}
	if (all)
		qsort(all, i, sizeof(*all), by_name);
	for (size_t k = 0; k < i && r == 0; k++)
		r = add_entry(list, all[k].entry) ? 0 : -ENOMEM;
	free(all);
	return r;
}

int tool_fs_list(struct mcp_job *j, struct err *e)
{
	const char *want = job_str(j, "path");
	char *path = fs_path(j, want ? want : j->cfg->workdir);
	const cJSON *entries = NULL;
	AUTO_JSN *doc = NULL;
	cJSON *list;
	int r = ask(j, "list", about(path), &doc, e);

	if (r == 0 && jsn_array(doc, "entries", &entries, e) != 1)
		r = -EPROTO;
	list = cJSON_AddArrayToObject(j->data, "entries");
	if (r == 0)
		r = list && jsn_add_str(j->data, "path", path) ? add_entries(list, entries)
							       : -ENOMEM;
	free(path);
	return r;
}

/* --- stat --- */

/* What PATH is when its links are followed; "" when they lead nowhere. */
static void followed(struct mcp_job *j, const char *path, char out[static 16])
{
	AUTO_JSN *doc = NULL;
	const char *code = j->code;
	struct err e = ERR_INIT;

	out[0] = '\0';
	if (ask(j, "stat", about(path), &doc, &e) == 0)
		ignore_result(str_format(out, 16, "%s",
					 entry_type(doc))); /* of a known length, else cut */
	j->code = code;
}

int tool_fs_stat(struct mcp_job *j, struct err *e)
{
	char *path = fs_path(j, job_str(j, "path"));
	cJSON *body = about(path);
	AUTO_JSN *doc = NULL;
	char kind[16];
	int r;

	if (body && !jsn_add_bool(body, "follow", false)) {
		cJSON_Delete(body);
		body = NULL;
	}
	r = ask(j, "stat", body, &doc, e);
	if (r == 0) {
		ignore_result(str_format(kind, sizeof(kind), "%s",
					 entry_type(doc))); /* it fits, else cut */
		if (!strcmp(kind, "symlink"))
			followed(j, path, kind);
		if (!jsn_add_str(j->data, "path", path) || !fill_entry(j->data, doc, kind) ||
		    !jsn_add_bool(j->data, "is_file", !strcmp(kind, "file")) ||
		    !add_number(j->data, "uid", doc, "uid", 1) ||
		    !add_number(j->data, "gid", doc, "gid", 1))
			r = -ENOMEM;
	}
	free(path);
	return r;
}

int tool_fs_exists(struct mcp_job *j, struct err *e)
{
	char *path = fs_path(j, job_str(j, "path"));
	AUTO_JSN *doc = NULL;
	bool exists = false;
	int r = ask(j, "exists", about(path), &doc, e);

	if (r == 0)
		ignore_result(jsn_bool(doc, "exists", &exists, NULL)); /* else false */
	if (r < 0 && j->code && !strcmp(j->code, "fs_error"))
		r = 0; /* what cannot be looked at is not there, as for the Python project */
	if (r == 0 &&
	    (!jsn_add_str(j->data, "path", path) || !jsn_add_bool(j->data, "exists", exists)))
		r = -ENOMEM;
	free(path);
	return r;
}

/* --- copy and rename, as cp -r and mv --- */

/* DST itself, or its place in the directory DST. */
static char *target(struct mcp_job *j, const char *src, const char *dst)
{
	const char *name = strrchr(src, '/');
	char kind[16];
	AUTO_BUF b;

	buf_init(&b, FS_PATH_MAX);
	followed(j, dst, kind);
	if (buf_addf(&b, "%s%s", dst, strcmp(kind, "dir") || !name || !name[1] ? "" : name) < 0)
		return NULL;
	return buf_take(&b);
}

int tool_fs_move(struct mcp_job *j, struct err *e)
{
	bool copy = j->tool->arg != NULL;
	char *src = fs_path(j, job_str(j, "src")), *dst = fs_path(j, job_str(j, "dst"));
	char *to = src && dst ? target(j, src, dst) : NULL;
	cJSON *body = to ? cJSON_CreateObject() : NULL;
	int r;

	if (body && (!jsn_add_str(body, "from", src) || !jsn_add_str(body, "to", to) ||
		     !jsn_add_bool(body, "overwrite", true) ||
		     (copy && !jsn_add_bool(body, "recursive", true)))) {
		cJSON_Delete(body);
		body = NULL;
	}
	r = ask(j, copy ? "copy" : "rename", body, NULL, e);
	if (r == 0 && (!jsn_add_str(j->data, "src", src) || !jsn_add_str(j->data, "dst", dst)))
		r = -ENOMEM;
	free(src);
	free(dst);
	free(to);
	return r;
}
