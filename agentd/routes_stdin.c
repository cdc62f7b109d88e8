/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "app.h"
#include "exec.h"
#include "lib/jsn.h"
#include "lib/str.h"

/*
 * POST /v1/execs/{id}/stdin: the body goes to the command as fast as it reads. Input has offsets,
 * so that a request that was cut can be sent again: what was taken already is skipped. A newer
 * request takes over from one that still waits (its client has most likely gone without our
 * noticing).
 */

struct feed {
	struct exec_feeder f; /* first */
	struct exec *e;	      /* NULL when it has ended, or somebody else feeds it */
	struct httpd_req *r;
	uint64_t skip; /* bytes of this body that were taken before */
	bool eof;
	bool again;    /* the body was sent with an offset */
	bool complete; /* it has been read */
};

static void answer(struct httpd_req *r, uint64_t offset)
{
	cJSON *o = cJSON_CreateObject();

	if (o && !jsn_add_u64(o, "offset", offset))
		jsn_free(&o);
	httpd_reply_json(r, 200, o);
}

static void detach(struct feed *f)
{
	if (f->e)
		exec_unfeed(f->e, &f->f);
	f->e = NULL;
}

static void gone(struct feed *f)
{
	detach(f);
	httpd_reply_error(f->r, 410, "the command has ended or closed its input");
}

static void on_closed(struct exec_feeder *base)
{
	struct feed *f = (struct feed *)(void *)base;
	bool ended = f->e->in.feeder == NULL; /* else another request feeds it now */

	f->e = NULL;
	if (ended)
		gone(f);
	else
		httpd_reply_error(f->r, 409, "another request feeds this command");
}

/* A terminal stays open: its end of input is a character, which a repeated request does not type once
 * more. 0, -EAGAIN, -EPIPE. */
static int type_eof(struct exec *e, bool again)
{
	int r = 0;

	if (!again || e->in.eof_at != e->in.offset + 1)
		r = exec_tty_eof(e);
	if (r == 0)
		e->in.eof_at = e->in.offset + 1;
	return r;
}

static void finish(struct feed *f)
{
	struct exec *e = f->e;
	int r = f->eof && e->pty ? type_eof(e, f->again) : 0;

	if (r == -EAGAIN)
		return; /* on_writable comes back here */
	if (r < 0) {
		gone(f);
		return;
	}
	detach(f);
	if (f->eof && !e->pty && !e->in.eof) {
		e->in.eof = true;
		exec_in_close(e);
	}
	answer(f->r, e->in.offset);
}

static void on_writable(struct exec_feeder *base)
{
	struct feed *f = (struct feed *)(void *)base;

	if (f->complete)
		finish(f);
	else
		httpd_wake(f->r);
}

static ssize_t sink(void *arg, const char *p, size_t n)
{
	struct feed *f = arg;
	size_t skip = f->skip < n ? (size_t)f->skip : n;
	ssize_t k;

	if (!f->e)
		return (ssize_t)n; /* answered already */
	if (n == 0) {
		f->complete = true;
		finish(f);
		return 0;
	}
	f->skip -= skip;
	if (skip == n)
		return (ssize_t)n;
	if (f->e->in.eof) {
		detach(f);
		httpd_reply_error(f->r, 409, "the input is closed");
		return 0;
	}
	k = exec_write(f->e, p + skip, n - skip);
	if (k < 0) {
		gone(f);
		return 0;
	}
	return (ssize_t)skip + k;
}

static void on_end(void *arg)
{
	struct feed *f = arg;

	detach(f);
	free(f);
}

/* *RET_SKIP: how much of the body was taken before. 0, -EINVAL, -ERANGE for a gap. */
static int read_query(struct httpd_req *r, const struct exec *e, uint64_t *ret_skip, bool *ret_eof)
{
	const char *offset = httpd_query(r, "offset"), *eof = httpd_query(r, "eof");
	uint64_t at = e->in.offset;

	if (offset && str_to_u64(offset, 0, UINT64_MAX, &at) < 0)
		return -EINVAL;
	if (eof && strcmp(eof, "0") != 0 && strcmp(eof, "1") != 0)
		return -EINVAL;
	if (at > e->in.offset)
		return -ERANGE;
	*ret_skip = e->in.offset - at;
	*ret_eof = eof && eof[0] == '1';
	return 0;
}

/* A closed input still answers a repetition that gives its offset, whose bytes are then all
 * skipped. */
static bool can_feed(struct httpd_req *r, const struct exec *e)
{
	if (!e->in.wanted || e->in.own)
		httpd_reply_error(r, 409,
				  "the command has no input: start it with \"stdin\": true");
	else if (e->in.eof && !httpd_query(r, "offset"))
		httpd_reply_error(r, 409, "the input is closed");
	else if (e->leader_ended || (e->in.fd < 0 && !e->in.eof))
		httpd_reply_error(r, 410, "the command has ended or closed its input");
	else
		return true;
	return false;
}

static void begin(struct httpd_req *r, struct exec *e, uint64_t skip, bool eof)
{
	struct feed *f = calloc(1, sizeof(*f));

	if (!f) {
		httpd_reply_error(r, 503, "out of memory");
		return;
	}
	*f = (struct feed){ .f = { on_writable, on_closed },
			    .e = e,
			    .r = r,
			    .skip = skip,
			    .eof = eof,
			    .again = httpd_query(r, "offset") != NULL };
	exec_feed(e, &f->f);
	httpd_on_end(r, on_end, f);
	httpd_set_sink(r, sink, f);
}

void route_exec_stdin(struct httpd_req *r)
{
	struct exec *e = exec_find(httpd_segment(r, 0));
	uint64_t skip;
	bool eof;
	int ret;

	if (!e) {
		httpd_reply_error(r, 404, "no such exec: %s", httpd_segment(r, 0));
		return;
	}
	if (!can_feed(r, e))
		return;
	ret = read_query(r, e, &skip, &eof);
	if (ret == -EINVAL)
		httpd_reply_error(r, 400, "offset must be a number, and eof 0 or 1");
	else if (ret < 0)
		httpd_reply_error(r, 409,
				  "input is missing before this offset: %llu bytes were taken",
				  (unsigned long long)e->in.offset);
	else
		begin(r, e, skip, eof);
}
